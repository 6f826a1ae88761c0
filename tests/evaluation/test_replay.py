import numpy as np
import pytest

from erasable.chain import Checkpoint, Config, Dataset, MemoryStore, State, arrange, train_chain
from erasable.data import Catalogue, RatingScale, SyntheticSettings, split_holdout, synthesise
from erasable.evaluation import Comparison, compare, replay
from erasable.evaluation.replay import array_difference
from erasable.grouping.points import ALONE
from erasable.models import Effort


@pytest.fixture(scope="module", params=["nmf", "dmf"])
def trained(request):
    data = synthesise(SyntheticSettings(users=60, items=40, groups=3, per_user=8, seed=1)).interactions
    config = Config(model=request.param, groups=3, holdout=0.1, epochs=2, batch=64)
    training, held_out = split_holdout(data, config.holdout, config.seed)
    groups = tuple(training.select(training.user_index % 3 == position) for position in range(3))
    dataset = Dataset.of_groups(config, Catalogue.from_items(data.items), RatingScale(1, 1), groups, held_out)
    store = MemoryStore()
    return train_chain(dataset, store, Effort()), store


@pytest.fixture(scope="module")
def regrouping():
    """A chain whose groups are decided anew whenever it is trained."""
    data = synthesise(SyntheticSettings(users=30, items=20, groups=3, per_user=5, seed=1)).interactions
    config = Config(model="nmf", groups=3, grouping="random", policy="regroup", epochs=2)
    frame = Dataset.of_nobody(config, Catalogue.from_items(data.items), RatingScale(1, 1))
    store = MemoryStore()
    return train_chain(arrange(data, frame, ALONE), store, Effort()), store


def with_change(state: State, store: MemoryStore, position: int, name: str, change) -> MemoryStore:
    """Return the checkpoints with one array changed in place at one position."""
    changed = MemoryStore()
    for number, link in enumerate(state.chain):
        checkpoint = store.get(link.fingerprint)
        arrays = {key: array.copy() for key, array in checkpoint.arrays().items()}
        if number == position:
            change(arrays, name)
        changed.put(Checkpoint.from_arrays(link.fingerprint, link.parent, arrays))
    return changed


def replayed(state: State, store: MemoryStore, threads: int = 1) -> MemoryStore:
    """Train everything again."""
    return replay(state, Effort(threads), store, range(len(state.chain)))


def flip_lowest_bit(arrays, name):
    arrays[name].view(np.uint32).flat[5] ^= 1


def add_one(arrays, name):
    arrays[name] += 1


def test_a_replay_gives_the_same_bytes(trained):
    state, store = trained
    arrays = sum(len(store.get(link.fingerprint).arrays()) for link in state.chain)
    assert compare(state, store, replayed(state, store, threads=2)) == Comparison(True, arrays, None)


def test_a_replay_of_everything_asks_for_no_checkpoint(trained):
    state, store = trained
    found = compare(state, store, replayed(state, MemoryStore()))
    assert (found.identical, found.difference) == (True, None)


class TestSomePositions:
    @pytest.mark.parametrize("positions", [(0,), (1,), (2,), (1, 2), (0, 2)])
    def test_a_replay_gives_the_same_bytes_and_only_those_stages_are_compared(self, trained, positions):
        state, store = trained
        arrays = sum(len(store.get(state.chain[place].fingerprint).arrays()) for place in positions)
        found = replay(state, Effort(), store, positions)
        assert compare(state, store, found, positions) == Comparison(True, arrays, None)

    def test_only_those_stages_are_trained(self, trained):
        state, store = trained
        samples = []
        replay(state, Effort(advance=samples.append), store, [2])
        assert sum(samples) == state.chain[2].samples < sum(link.samples for link in state.chain)

    def test_no_position_trains_nothing_and_compares_nothing(self, trained):
        state, store = trained
        samples = []
        found = replay(state, Effort(advance=samples.append), store, [])
        assert (samples, compare(state, store, found, [])) == ([], Comparison(True, 0, None))

    def test_it_begins_at_the_checkpoint_before(self, trained):
        """So that another one gives other bytes."""
        state, store = trained
        planted = with_change(state, store, 1, "shared.item", add_one)
        difference = compare(state, store, replay(state, Effort(), planted, [2]), [2]).difference
        assert difference.startswith("stage 3: ")
        assert compare(state, store, replay(state, Effort(), planted, [1, 2]), [1, 2]).identical

    def test_a_stage_that_is_replayed_is_not_taken_from_those_kept(self, trained):
        state, store = trained
        planted = with_change(state, store, 2, "rows.user", flip_lowest_bit)
        assert "stage 3: rows.user" in compare(state, planted, replay(state, Effort(), planted, [2]), [2]).difference
        partial = MemoryStore()
        partial.put(store.get(state.chain[0].fingerprint))
        assert compare(state, store, replay(state, Effort(), partial, [1, 2]), [1, 2]).identical

    def test_a_bit_elsewhere_is_not_looked_at(self, trained):
        state, store = trained
        planted = with_change(state, store, 0, "rows.user", flip_lowest_bit)
        assert compare(state, planted, store, [1, 2]).identical
        assert not compare(state, planted, store, [0, 1]).identical
        assert not compare(state, planted, store).identical

    def test_data_that_differ_are_found_at_the_stage_that_is_replayed(self, trained):
        state, store = trained
        user = state.dataset.groups[2].users[0]
        other = State(state.dataset.without(users=[user], pairs=[]), state.chain)
        found = compare(other, store, replay(other, Effort(), store, [2]), [2])
        assert found.difference.startswith("stage 3: the data held do not give")

    def test_the_first_difference_along_the_chain_is_told_in_whatever_order_positions_are_given(self, trained):
        state, store = trained
        planted = with_change(state, store, 0, "rows.user", flip_lowest_bit)
        planted = with_change(state, planted, 2, "rows.user", flip_lowest_bit)
        assert compare(state, planted, store, [2, 0]).difference.startswith("stage 1: ")


def test_under_regroup_the_groups_are_decided_again(regrouping):
    state, store = regrouping
    assert compare(state, store, replayed(state, store)).identical
    # What is replayed is a function of the data alone, not of the groups that the state claims.
    first, *others = state.dataset.groups
    swapped = State(state.dataset.with_groups(groups=(*others, first)), state.chain)
    assert compare(state, store, replayed(swapped, store)).identical


def test_one_planted_bit_is_found_and_named(trained):
    state, store = trained
    planted = with_change(state, store, 1, "shared.item", flip_lowest_bit)
    found = compare(state, planted, replayed(state, planted))
    assert not found.identical
    size = store.get(state.chain[1].fingerprint).parameters.shared["item"].size
    assert found.difference.startswith(f"stage 2: shared.item differs in 1 of {size} numbers, by at most ")
    assert 0 < float(found.difference.rsplit(" ", 1)[1]) < 1e-6


def test_a_bit_in_a_personal_row_is_found(trained):
    state, store = trained
    planted = with_change(state, store, 2, "rows.user", flip_lowest_bit)
    assert "stage 3: rows.user" in compare(state, planted, store).difference


def test_a_missing_array_is_found(trained):
    state, store = trained
    planted = with_change(state, store, 0, "rows.user", lambda arrays, name: arrays.pop(name))
    assert "stage 1: it holds the arrays" in compare(state, planted, store).difference


def test_a_missing_checkpoint_is_found(trained):
    state, store = trained
    partial = MemoryStore()
    partial.put(store.get(state.chain[0].fingerprint))
    assert "stage 2: its checkpoint" in compare(state, partial, store).difference
    assert "stage 2: the data held do not give" in compare(state, store, partial).difference


def test_a_chain_that_lacks_a_stage_is_found(trained):
    state, store = trained
    short = State(state.dataset, state.chain[:2])
    assert compare(short, store, store).difference == "there are 3 steps and 2 checkpoints"


def test_data_that_differ_from_what_was_learned_are_found(trained):
    state, store = trained
    user = state.dataset.groups[2].users[0]
    other = State(state.dataset.without(users=[user], pairs=[]), state.chain)
    found = compare(other, store, replayed(other, store))
    assert found.difference.startswith("stage 3: the data held do not give")


def test_another_parent_is_found(trained):
    state, store = trained
    link = state.chain[0]
    elsewhere = MemoryStore()
    elsewhere.put(Checkpoint(link.fingerprint, "elsewhere", store.get(link.fingerprint).parameters))
    assert "it follows origin, replayed elsewhere" in compare(state, store, elsewhere).difference


def test_type_and_shape_count():
    numbers = np.zeros((2, 3), np.float32)
    assert array_difference(numbers, numbers.copy()) is None
    assert array_difference(numbers, numbers.astype(np.float64)) == "is float32(2, 3), replayed float64(2, 3)"
    assert array_difference(numbers, numbers.reshape(3, 2)) == "is float32(2, 3), replayed float32(3, 2)"


def test_the_largest_difference_is_told():
    expected, replayed = np.array([1.0, 2.0, 3.0]), np.array([1.5, 2.0, 5.0])
    assert array_difference(expected, replayed) == "differs in 2 of 3 numbers, by at most 2"


def test_minus_zero_is_another_byte():
    assert array_difference(np.array([0.0]), np.array([-0.0])) == "differs in 1 of 1 numbers, by at most 0"
