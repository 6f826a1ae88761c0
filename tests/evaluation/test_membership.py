"""What an attacker can measure, on states made by hand and on one that was trained."""

from dataclasses import replace

import numpy as np
import pytest

from erasable.chain import Checkpoint, Config, MemoryStore, State, train_chain
from erasable.evaluation.attack import LOOKS, Suspects, balanced_loss, mean_rank, membership_scores, relearning_epochs
from erasable.models import Effort, Parameters
from kit.handmade import ITEMS
from kit.tables import table

SERVED, RELEARNED = slice(0, 2), slice(2, 4)


def suspects_of(rows, items, positions=None, seed=0) -> Suspects:
    interactions = table(rows, items)
    return Suspects(interactions, np.array(positions or [0] * len(interactions.users)), seed)


def known_and_not(state, position) -> Suspects:
    """Return everyone of a group, and one person more with the same items as the first of them."""
    group = state.dataset.groups[position]
    items = group.items.texts()
    rows: dict[str, dict[str, float]] = {user: {} for user in group.users}
    for user, item, rating in zip(group.user_index, group.item_index, group.rating, strict=True):
        rows[group.users[user]][items[item]] = float(rating)
    rows["zz-newcomer"] = next(iter(rows.values()))
    return suspects_of(rows, items)


def changed(state, store, change) -> MemoryStore:
    """Return the checkpoints with each one's parameters changed."""
    copy = MemoryStore()
    for link in state.chain:
        parameters = store.get(link.fingerprint).parameters
        shared, rows = (
            {name: array.copy() for name, array in part.items()} for part in (parameters.shared, parameters.rows)
        )
        change(shared, rows)
        copy.put(Checkpoint(link.fingerprint, link.parent, Parameters(shared, rows)))
    return copy


def with_seed(state, seed) -> State:
    """Return the same chain as if it had learned with another seed."""
    config = state.dataset.config.changed(seed=seed)
    return State(replace(state.dataset, config=config), state.chain)


def learned_otherwise(state, **settings) -> tuple[State, MemoryStore]:
    """Learn the same data with other settings."""
    store = MemoryStore()
    config = state.dataset.config.changed(**settings)
    return train_chain(replace(state.dataset, config=config), store, Effort()), store


@pytest.fixture(scope="module")
def well_trained(trained):
    return learned_otherwise(trained[0], epochs=60, batch=32, learning_rate=0.01)


@pytest.fixture(scope="module")
def models(trained):
    return learned_otherwise(trained[0], strategy="sisa", aggregate="own")


class TestMeanRank:
    def test_runs_from_the_best_to_the_worst(self):
        scores = np.array([0.1, 0.9, 0.5, 0.3, 0.0], dtype=np.float32)
        assert mean_rank(scores, np.array([1])) == 0
        assert mean_rank(scores, np.array([4])) == 1
        assert mean_rank(scores, np.array([1, 2, 4])) == pytest.approx((0 + 1 + 4) / 3 / 4)

    def test_equal_scores_share_their_ranks(self):
        assert mean_rank(np.array([2, 2, 2, 1], dtype=np.float32), np.array([0])) == pytest.approx(1 / 3)

    def test_a_catalogue_of_one_item_has_one_rank(self):
        assert mean_rank(np.array([2], dtype=np.float32), np.array([0])) == 0


class TestBalancedLoss:
    def test_counts_own_items_and_others_the_same_however_many(self):
        probabilities = np.array([0.5, 0.5, 0.25])
        found = balanced_loss(probabilities, np.array([0, 1]), np.array([1.0, 0.5]), np.array([2]))
        assert found == pytest.approx(np.log(2) - np.log(0.75))

    def test_someone_who_has_everything_is_judged_by_that(self):
        assert balanced_loss(np.array([0.5]), np.array([0]), np.array([1.0]), np.array([], int)) == pytest.approx(
            0.6931, abs=1e-4
        )


@pytest.mark.parametrize(
    ("interactions", "settings", "epochs"),
    [(4096, {"negatives": 0}, 200), (4097, {"negatives": 0}, 134), (1, {}, 400), (1_000_000, {}, 1), (0, {}, 400)],
)
def test_rows_are_learned_anew_in_about_as_many_steps_whatever_the_data(interactions, settings, epochs):
    assert relearning_epochs(interactions, Config(model="nmf", **settings)) == epochs


class TestAsServed:
    def test_a_known_person_is_scored_with_the_own_row(self, learned):
        # ann scores a to e with 5 to 1: her items stand first and fourth.
        found = membership_scores(learned.state, learned.checkpoints, suspects_of({"ann": ["a", "d"]}, ITEMS), 1)
        assert found.shape == (len(LOOKS), 1)
        assert found[1, 0] == pytest.approx(-(0 + 3) / 2 / 4)

    def test_the_loss_is_that_of_own_items_and_as_many_others(self, learned):
        found = membership_scores(
            learned.state, learned.checkpoints, suspects_of({"ann": ["a", "b", "c", "d"]}, ITEMS), 1
        )
        own = np.mean(np.log1p(np.exp(-np.array([5.0, 4, 3, 2]))))
        assert found[0, 0] == pytest.approx(-(own + np.log1p(np.exp(1.0))), rel=1e-5)

    def test_people_of_every_group_are_found(self, learned):
        rows = {"ann": ["a"], "bob": ["b"], "cat": ["c"]}
        found = membership_scores(learned.state, learned.checkpoints, suspects_of(rows, ITEMS), 1)
        assert found[1].tolist() == [0, 0, 0]

    def test_someone_unknown_starts_from_a_row_of_the_own_id_and_seed(self, trained):
        state, store = trained
        people = known_and_not(state, 0)
        found = membership_scores(state, store, people, 1)[SERVED]
        other_seed = membership_scores(with_seed(state, 9), store, people, 1)[SERVED]
        np.testing.assert_array_equal(found[:, :-1], other_seed[:, :-1])
        assert np.all(found[:, -1] != other_seed[:, -1])

    def test_who_else_is_asked_about_does_not_matter(self, trained):
        state, store = trained
        people = known_and_not(state, 0)
        everyone = membership_scores(state, store, people, 1)[SERVED]
        rows = people.interactions.of_users([people.interactions.users[3], "zz-newcomer"])
        two = membership_scores(state, store, Suspects(rows, np.zeros(2, int), 0), 1)[SERVED]
        np.testing.assert_array_equal(two, everyone[:, [3, -1]])

    def test_a_known_person_is_known_better_than_someone_with_the_same_items(self, well_trained):
        state, store = well_trained
        found = membership_scores(state, store, known_and_not(state, 1), 1)[SERVED]
        assert np.all(found[:, 0] > found[:, -1])


class TestSharedParameters:
    def test_personal_rows_do_not_matter(self, trained):
        state, store = trained
        people = known_and_not(state, 0)

        def spoil(shared, rows):
            rows["user"] += 1

        before, after = (membership_scores(state, one, people, 1) for one in (store, changed(state, store, spoil)))
        np.testing.assert_array_equal(before[RELEARNED], after[RELEARNED])
        assert np.all(before[SERVED, :-1] != after[SERVED, :-1])

    def test_only_those_of_the_last_stage_matter_in_a_chain(self, trained):
        state, store = trained
        people = known_and_not(state, 0)
        first = state.chain[0].fingerprint
        spoiled = store.copy()
        old = store.get(first)
        shared = {name: array + 1 for name, array in old.parameters.shared.items()}
        spoiled.put(Checkpoint(first, old.parent, Parameters(shared, old.parameters.rows)))
        np.testing.assert_array_equal(
            membership_scores(state, spoiled, people, 1), membership_scores(state, store, people, 1)
        )

    def test_items_are_scored_with_them_as_they_are(self, trained):
        """Learning rows anew moves a copy of the shared parameters; those that are attacked stay in their place."""
        state, store = trained
        contents = {name: array.tobytes() for name, array in store.get(state.chain[-1].fingerprint).arrays().items()}
        membership_scores(state, store, known_and_not(state, 0), 1)
        assert contents == {n: a.tobytes() for n, a in store.get(state.chain[-1].fingerprint).arrays().items()}

    def test_the_seed_of_the_suspects_decides(self, trained):
        state, store = trained
        people = known_and_not(state, 0)
        one, other = (membership_scores(state, store, replace(people, seed=seed), 1) for seed in (1, 2))
        assert np.any(one[3] != other[3])
        # The rank as served draws nothing.
        np.testing.assert_array_equal(one[1], other[1])

    def test_the_seed_of_the_chain_does_not(self, trained):
        state, store = trained
        people = known_and_not(state, 0)
        one, other = (membership_scores(chain, store, people, 1) for chain in (state, with_seed(state, 9)))
        np.testing.assert_array_equal(one[RELEARNED], other[RELEARNED])

    def test_the_same_items_are_learned_anew_about_as_well_by_anyone(self, well_trained):
        state, store = well_trained
        served, relearned = membership_scores(state, store, known_and_not(state, 1), 1)[[0, 2]]
        assert relearned[-1] > served[-1]
        assert abs(relearned[0] - relearned[-1]) < 0.3 * (served[0] - served[-1])


class TestSisa:
    @pytest.mark.full
    def test_known_people_are_judged_by_their_own_groups_model_wherever_they_are_put(self, models):
        state, store = models
        people = known_and_not(state, 0)
        first, second = (
            membership_scores(state, store, replace(people, positions=np.full(len(people.positions), place)), 1)
            for place in (0, 1)
        )
        np.testing.assert_array_equal(first[SERVED, :-1], second[SERVED, :-1])
        assert np.all(first[SERVED, -1] != second[SERVED, -1])

    def test_another_groups_model_does_not_matter(self, models):
        state, store = models
        people = known_and_not(state, 0)
        last = state.chain[1].fingerprint
        spoiled = store.copy()
        old = store.get(last)
        shared = {name: array + 1 for name, array in old.parameters.shared.items()}
        spoiled.put(Checkpoint(last, old.parent, Parameters(shared, old.parameters.rows)))
        np.testing.assert_array_equal(
            membership_scores(state, spoiled, people, 1), membership_scores(state, store, people, 1)
        )


def test_threads_change_no_byte(trained):
    state, store = trained
    people = known_and_not(state, 0)
    assert membership_scores(state, store, people, 1).tobytes() == membership_scores(state, store, people, 3).tobytes()
