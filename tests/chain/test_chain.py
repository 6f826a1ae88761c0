from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from erasable.chain import ORIGIN, Checkpoint, Config, Earlier, MemoryStore, link_names, links_to_run, train_chain
from erasable.data import Catalogue, Ids, RatingScale
from erasable.errors import Refused
from erasable.models import Effort, Parameters, Stage
from erasable.models.registry import make_model

CONFIG = Config(model="nmf", groups=3, epochs=3, batch=16, seed=1)
POSITIONS = {"a": 0, "b": 0, "c": 1, "d": 1, "e": 2, "f": 2}
SCALE = RatingScale(1, 5)


@pytest.fixture
def rows(tables):
    return tables.table({"a": "pqr", "b": "qs", "c": "prt", "d": "st", "e": "pq", "f": "rst"})


@pytest.fixture
def known(chains, rows):
    return chains.dataset(rows, CONFIG, POSITIONS, SCALE)


@pytest.fixture
def learned(chains, rows):
    return chains.learn(rows, CONFIG, POSITIONS, SCALE)


def changed(known, **config):
    return replace(known, config=known.config.changed(**config))


def same(names, others):
    return [name == other for name, other in zip(names, others, strict=True)]


# Names


def test_names_are_a_function_of_the_dataset(known, chains, rows):
    assert link_names(known) == link_names(chains.dataset(rows, CONFIG, POSITIONS, SCALE))
    assert len(set(link_names(known))) == 3


@pytest.mark.parametrize(
    ("gone", "kept"), [("a", [False] * 3), ("c", [True, False, False]), ("f", [True, True, False])]
)
def test_a_name_covers_its_own_group_and_the_ones_before_and_nothing_of_the_later(known, gone, kept):
    assert same(link_names(known.without([gone], [])), link_names(known)) == kept


def test_a_name_covers_each_rating(chains, tables, known):
    rated = {"p": 2.0, "r": 1.0, "t": 1.0}
    other = tables.table({"a": "pqr", "b": "qs", "c": rated, "d": "st", "e": "pq", "f": "rst"})
    names = link_names(chains.dataset(other, CONFIG, POSITIONS, SCALE))
    assert same(names, link_names(known)) == [True, False, False]


def test_a_name_covers_who_the_rows_belong_to(chains, tables, known):
    renamed = tables.table({"a": "pqr", "b": "qs", "c2": "prt", "d": "st", "e": "pq", "f": "rst"})
    names = link_names(chains.dataset(renamed, CONFIG, {**POSITIONS, "c2": 1}, SCALE))
    assert same(names, link_names(known)) == [True, False, False]


@pytest.mark.parametrize(
    "other",
    [{"seed": 2}, {"model": "dmf"}, {"batch": 8}, {"negatives": 1}, {"learning_rate": 0.5}, {"epochs": 4}],
    ids=str,
)
def test_every_name_covers_seed_and_stage_settings(known, other):
    assert same(link_names(changed(known, **other)), link_names(known)) == [False] * 3


@pytest.mark.parametrize("other", [{"holdout": 0.5}, {"policy": "regroup"}, {"epochs": 2}], ids=str)
def test_no_name_covers_what_no_stage_sees(known, other):
    """Two and three epochs shared by three groups are one epoch each."""
    assert link_names(changed(known, **other)) == link_names(known)


def test_no_name_covers_what_is_held_out(known):
    assert link_names(known.with_groups(held_out=known.groups[0])) == link_names(known)


def test_every_name_covers_the_catalogue_and_the_scale(known):
    other_items = Catalogue.from_items([*known.items.texts(), "z"])
    declared = replace(known.over(other_items.items), catalogue=other_items)
    assert same(link_names(declared), link_names(known)) == [False] * 3
    assert same(link_names(replace(known, scale=RatingScale(1, 10))), link_names(known)) == [False] * 3


def test_how_the_scale_was_written_is_no_difference(known):
    """A scale that was recognised is written 1–5, one that was given on the command line 1.0–5.0."""
    assert link_names(replace(known, scale=RatingScale(1.0, 5.0))) == link_names(known)


def test_stages_to_run_are_those_whose_names_differ(learned, known):
    chain, names = learned.state.chain, link_names(known)
    assert links_to_run(names, chain) == ()
    assert links_to_run(names, ()) == (0, 1, 2)
    assert links_to_run(names, chain[:2]) == (2,)
    assert links_to_run([names[0], "other", names[2]], chain) == (1,)
    assert links_to_run(["other", *names[1:]], chain) == (0,)


# Training


def test_each_stage_starts_from_the_one_before(learned, known):
    model = make_model(CONFIG)
    shared = model.start(known.known(0).ids, CONFIG.seed)
    for position, name in enumerate(learned.names):
        shared = model.extended(shared, known.known(position).ids, CONFIG.seed)
        stage = Stage(known.learners(position), SCALE, CONFIG.stage_epochs, CONFIG.seed, position)
        trained = model.train(shared, stage, Effort())
        kept = learned.store.get(name).parameters
        assert all(kept.shared[array].tobytes() == trained.shared[array].tobytes() for array in trained.shared)
        assert kept.rows["user"].tobytes() == trained.rows["user"].tobytes()
        shared = trained.shared


def test_links_name_their_checkpoints_parents_and_samples(learned, known):
    chain = learned.state.chain
    assert [link.fingerprint for link in chain] == link_names(known)
    assert [link.parent for link in chain] == [ORIGIN, *learned.names[:-1]]
    assert [learned.store.get(link.fingerprint).parent for link in chain] == [link.parent for link in chain]
    # One epoch each; 5 interactions in every group, each with 4 negatives.
    assert [link.samples for link in chain] == [25, 25, 25]
    assert all(link.seconds >= 0 for link in chain)


def test_a_checkpoint_holds_the_rows_of_its_own_users_only(learned):
    assert [learned.store.get(name).parameters.rows["user"].shape[0] for name in learned.names] == [2, 2, 2]


def test_checkpoints_are_different_objects_with_different_bytes(learned):
    checkpoints = [learned.store.get(name) for name in learned.names]
    for early, late in pairwise(checkpoints):
        for name, array in early.parameters.shared.items():
            assert not np.shares_memory(array, late.parameters.shared[name])
            assert array.tobytes() != late.parameters.shared[name].tobytes()


def test_training_on_keeps_what_is_there_and_gives_the_same_state(learned, known, chains):
    before = learned.contents()
    again = train_chain(known, learned.store, Effort(), earlier=Earlier(learned.state.chain))
    assert again.chain == learned.state.chain
    assert learned.contents() == before


def test_training_from_half_a_chain_gives_the_whole_one(learned, known, chains):
    store = MemoryStore()
    for name in learned.names[:2]:
        store.put(learned.store.get(name))
    resumed = chains.LearnedChain(train_chain(known, store, Effort(), earlier=Earlier(learned.state.chain[:2])), store)
    assert resumed.names == learned.names
    assert resumed.contents() == learned.contents()


def test_early_checkpoints_stay_as_they_are_when_a_user_of_a_later_group_goes(learned, known, chains):
    before = learned.contents()
    state = train_chain(known.without(["c"], []), learned.store, Effort(), earlier=Earlier(learned.state.chain))
    after = chains.LearnedChain(state, learned.store)
    assert after.contents()[0] == before[0]
    assert after.contents()[1] != before[1]
    assert learned.contents() == before  # the old checkpoints are beside the new ones


def test_an_emptied_group_is_a_stage_that_changes_nothing(learned, known, chains):
    state = train_chain(known.without(["c", "d"], []), learned.store, Effort(), earlier=Earlier(learned.state.chain))
    after = chains.LearnedChain(state, learned.store)
    first, second = (learned.store.get(name).parameters for name in after.names[:2])
    assert {name: array.tobytes() for name, array in first.shared.items()} == {
        name: array.tobytes() for name, array in second.shared.items()
    }
    assert second.rows["user"].shape[0] == 0
    assert state.chain[1].samples == 0
    assert len(set(after.names)) == 3


def test_nobody_left_is_a_chain_that_ends_where_it_began(learned, known):
    state = train_chain(
        known.without(list("abcdef"), []), learned.store, Effort(), earlier=Earlier(learned.state.chain)
    )
    start = make_model(CONFIG).start(Ids.of([]), CONFIG.seed)
    end = learned.store.get(state.chain[-1].fingerprint).parameters.shared
    assert {name: array.tobytes() for name, array in end.items()} == {
        name: array.tobytes() for name, array in start.items()
    }


@pytest.mark.parametrize(("budget", "each"), [("shared", 2), ("full", 4)])
def test_groups_share_the_epochs_or_get_all_of_them(chains, rows, budget, each):
    config = Config(model="nmf", groups=3, epochs=4, epoch_budget=budget)
    chain = chains.learn(rows, config, POSITIONS).state.chain
    assert [link.samples for link in chain] == [each * 25] * 3


def test_a_chain_of_the_same_stage_epochs_is_the_same_chain_whatever_the_budget(chains, rows):
    shared = chains.learn(rows, Config(model="nmf", groups=3, epochs=6), POSITIONS)
    full = chains.learn(rows, Config(model="nmf", groups=3, epochs=2, epoch_budget="full"), POSITIONS)
    assert shared.names == full.names
    assert shared.contents() == full.contents()


def test_retrain_is_one_stage_on_everything(chains, rows):
    learned = chains.learn(rows, Config(model="nmf", strategy="retrain", epochs=4), dict.fromkeys(POSITIONS, 0))
    assert len(learned.names) == 1
    assert learned.state.chain[0].samples == 4 * 75
    assert (
        learned.contents()
        == chains.learn(rows, Config(model="nmf", groups=1, epochs=4), dict.fromkeys(POSITIONS, 0)).contents()
    )


def test_what_is_held_out_never_reaches_a_stage(chains, tables):
    """Two tables that differ only in a rating that is held out give the same chain."""
    plain = {user: dict.fromkeys("pqrstuvw", 3.0) for user in "abcdef"}
    config = CONFIG.changed(holdout=0.5)
    first = chains.learn(tables.table(plain), config, POSITIONS, SCALE)
    user, item, _ = next(iter(sorted(tables.as_rows(first.state.dataset.held_out))))
    plain[user][item] = 5.0
    second = chains.learn(tables.table(plain), config, POSITIONS, SCALE)
    assert first.names == second.names
    assert first.contents() == second.contents()


def test_threads_do_not_change_a_chain(known, learned, chains):
    store = MemoryStore()
    assert chains.LearnedChain(train_chain(known, store, Effort(threads=3)), store).contents() == learned.contents()


def test_a_chain_refuses_numbers_that_are_not_finite(learned, known):
    first = learned.store.get(learned.names[0])
    broken = {name: np.full_like(array, np.inf) for name, array in first.parameters.shared.items()}
    learned.store.put(Checkpoint(first.fingerprint, first.parent, Parameters(broken, first.parameters.rows)))
    with pytest.raises(Refused, match="diverged at stage 2: give a smaller learning_rate"):
        train_chain(known, learned.store, Effort(), earlier=Earlier(learned.state.chain[:1]))


def test_under_sisa_every_stage_begins_at_the_origin_and_knows_nothing_of_the_others(chains, tables):
    rows = tables.random_table(7, users=12, items=9)
    config = Config(model="nmf", strategy="sisa", groups=3, epochs=3)
    positions = chains.positions_of(rows, config)
    learned = chains.learn(rows, config, positions)
    assert {link.parent for link in learned.state.chain} == {ORIGIN}
    first = [user for user, position in positions.items() if position == 0]
    without = chains.learn(rows.without(users=first[:1]), config, positions)
    assert [one == other for one, other in zip(learned.names, without.names, strict=True)] == [False, True, True]


@pytest.mark.parametrize("threads", [2, 3])
def test_under_sisa_stages_at_once_give_the_same_bytes(chains, tables, threads):
    rows = tables.random_table(7, users=12, items=9)
    config = Config(model="nmf", strategy="sisa", groups=4, epochs=8)
    alone = chains.learn(rows, config)
    together = MemoryStore()
    state = train_chain(alone.state.dataset, together, Effort(threads))
    assert chains.LearnedChain(state, together).contents() == alone.contents()
