"""Forgetting equals never having known: the state after any requests is the one learned without the erased data."""

import numpy as np
import pytest
from hypothesis import Phase, given, reject, settings
from hypothesis import strategies as st

from erasable.chain import Config, known_requests
from erasable.data import Interactions, RatingScale, split_holdout
from erasable.errors import DataRefused
from erasable.grouping.groups import independent_labels
from erasable.requests import Request
from erasable.seeding import id_keys, normals
from kit.choosing import examples
from kit.fitting import fitting_config
from kit.in_buckets import FEW, SIZES, by_name, in_buckets_of
from kit.ways import WAYS, config_of

# Tables are made from a seed: a smaller example would say no more, and takes minutes to look for.
as_drawn = (Phase.explicit, Phase.reuse, Phase.generate)
SCALES = {False: RatingScale(1, 1), True: RatingScale(1, 5)}


def configs_of(**choices):
    """Draw settings of one kind; each choice is a list to draw from."""
    common = {"epochs": [1, 2, 3, 4], "holdout": [0.0, 0.3], "seed": list(range(6))}
    return st.builds(
        fitting_config, **{name: st.sampled_from(values) for name, values in {**common, **choices}.items()}
    )


STEPS = {
    "model": ["nmf", "dmf"],
    "groups": [1, 2, 3, 4, 5],
    "epoch_budget": ["shared", "full"],
    "batch": [3, 40, 2048],
    "negatives": [0, 1, 4],
}
CLOSED = {"regularisation": [0.1, 2.0, 50.0]}
NEIGHBOURS = {"neighbours": [1, 4, 200, "all"]}
CHAINS = configs_of(**STEPS, strategy=["laser", "laser", "sisa"])
KINDS_OF_CONFIGS = {
    "all at once": configs_of(**STEPS, strategy=["retrain"], rows=["stage", "solved"]),
    "solved rows": configs_of(**STEPS, rows=["solved"]),
    "anchors": configs_of(**STEPS, anchors=[0.0001, 0.3, 0.7], strategy=["laser", "laser", "retrain"]),
    "als": configs_of(**CLOSED, model=["als"], factors=[1, 3, 8], anchors=[0.3, 0.7, 1.0]),
    "ease": configs_of(**CLOSED, **NEIGHBOURS, model=["ease"], rows=["stage", "solved"]),
    "anchored ease": configs_of(**CLOSED, **NEIGHBOURS, model=["ease"], anchors=[0.0001, 0.3, 0.7]),
    "item-knn": configs_of(model=["item-knn"], neighbours=[1, 4, 200], shrinkage=[0.0, 2.0], anchors=[1.0, 0.3]),
    "popular": configs_of(model=["popular"], anchors=[1.0, 0.3]),
}
configs = st.one_of(CHAINS, CHAINS, *KINDS_OF_CONFIGS.values())


@st.composite
def worlds(draw):
    """Say what a random table looks like: seed, users, items and whether there are ratings."""
    return draw(st.tuples(st.integers(0, 10**6), st.integers(5, 30), st.integers(5, 25), st.booleans()))


def some_requests(draw, tables, rows):
    """Draw up to three requests about what is held: whole users, or some of a user's interactions."""
    users = draw(st.lists(st.sampled_from(rows.users.texts()), min_size=1, max_size=3, unique=True))
    requests = []
    for user in users:
        own = sorted(item for _, item, _ in tables.as_rows(rows.of_users([user])))
        some = draw(st.just([]) | st.lists(st.sampled_from(own), min_size=1, max_size=len(own), unique=True))
        requests.append(Request(user, tuple(some) or None))
    return requests


def remaining(rows, requests):
    whole = [request.user for request in requests if request.everything]
    pairs = [(request.user, item) for request in requests for item in request.items or ()]
    return rows.without(users=whole, pairs=pairs)


@pytest.fixture(autouse=True)
def _in_buckets(request):
    """Half of the cases have many buckets."""
    with in_buckets_of(by_name(request.node.name)):
        yield


def learn_in_buckets(draw, chains, *what, **more):
    """Learn in one bucket or many, whatever the rest of the case has: how many there are decides nothing."""
    with in_buckets_of(draw(st.sampled_from([2, FEW, *SIZES.values()]))):
        return chains.learn(*what, **more)


def assert_same(learned, scratch):
    assert learned.names == scratch.names
    assert learned.contents() == scratch.contents()
    assert learned.rows() == scratch.rows()
    one, other = learned.state.dataset, scratch.state.dataset
    assert [group.digest() for group in one.groups] == [group.digest() for group in other.groups]
    assert one.held_out.digest() == other.held_out.digest()
    assert_same_counts(one.counts, other.counts)
    assert [link.samples for link in learned.state.chain] == [link.samples for link in scratch.state.chain]


def assert_same_counts(one, other):
    for name in ("rows", "trained", "learned", "histories", "slots", "people", "whole", "of_stages"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.held_out == other.held_out


def forget_and_clean_up(chains, learned, requests):
    """Forget as the caller does: only what is known, and the old checkpoints are destroyed afterwards."""
    known = known_requests(requests, learned.state.dataset)
    after = chains.forget(learned, known, threads=2)
    learned.store.keep_only(after.names)
    return after


@given(world=worlds(), config=configs, data=st.data())
@settings(deadline=None, max_examples=examples(30, 80), phases=as_drawn)
def test_after_any_sequence_of_requests_the_state_is_the_one_learned_without_them(tables, chains, world, config, data):
    rows = tables.random_table(*world)
    config = config if config.groups == 1 else config.changed(groups=min(config.groups, len(rows.users)))
    positions, scale = chains.positions_of(rows, config), SCALES[world[-1]]
    learned = learn_in_buckets(data.draw, chains, rows, config, positions, scale)
    for _ in range(data.draw(st.integers(1, 4))):
        if len(rows) == 0:
            break
        requests = some_requests(data.draw, tables, rows)
        rows = remaining(rows, requests)
        learned = forget_and_clean_up(chains, learned, requests)
        assert_same(learned, chains.learn(rows, config, positions, scale))


def fitting_changes(config: Config, changes: dict) -> dict:
    """Return the changes that the model and the strategy of a configuration have."""
    return {name: value for name, value in changes.items() if name in config.flat()}


@given(world=worlds(), config=configs, data=st.data())
@settings(deadline=None, max_examples=examples(18, 50), phases=as_drawn)
def test_with_independent_groups_not_even_the_groups_have_to_be_given(tables, chains, world, config, data):
    config = config.changed(**fitting_changes(config, {"grouping": "independent", "policy": "independent"}))
    rows, scale = tables.random_table(*world), SCALES[world[-1]]
    learned = learn_in_buckets(data.draw, chains, rows, config, scale=scale)
    requests = some_requests(data.draw, tables, rows)
    rows = remaining(rows, requests)
    assert_same(forget_and_clean_up(chains, learned, requests), chains.learn(rows, config, scale=scale))


GROUPINGS = st.sampled_from(["random", "bkm", "cbkm", "cbkm-near", "clpa", "cgmm"])
ORDERS = st.sampled_from(["easy", "hard", "count", "number"])


@pytest.mark.full
@given(
    world=worlds(), config=configs, grouping=GROUPINGS, order=ORDERS, minimum=st.sampled_from([0, 2, 4]), data=st.data()
)
@settings(deadline=None, max_examples=examples(18, 50), phases=as_drawn)
def test_regrouped_it_is_what_learning_without_them_gives_groups_filter_and_all(
    tables, chains, world, config, grouping, order, minimum, data
):
    changes = {"grouping": grouping, "order": order, "policy": "regroup", "min_interactions": minimum}
    config = config.changed(**fitting_changes(config, changes))
    rows, scale = tables.random_table(*world), SCALES[world[-1]]
    try:
        learned = learn_in_buckets(data.draw, chains, rows, config, scale=scale)
    except DataRefused:  # the filter leaves nobody
        reject()
    for _ in range(data.draw(st.integers(1, 2))):
        held = Interactions.merge([*learned.state.dataset.groups, learned.state.dataset.held_out])
        if not len(held):
            break
        requests = some_requests(data.draw, tables, held)
        rows = remaining(rows, requests)
        learned = forget_and_clean_up(chains, learned, requests)
        try:
            scratch = chains.learn(rows, config, scale=scale)
        except DataRefused:  # the filter leaves nobody; learning refuses that, an erasure is carried out
            assert learned.state.dataset.interactions == 0
            break
        assert_same(learned, scratch)


GIVEN = [way for way in WAYS if way != "regrouped"]  # which has no groups to be given


@pytest.mark.full
@pytest.mark.parametrize("way", GIVEN)
@pytest.mark.parametrize("holdout", [0.0, 0.3])
def test_all_interactions_of_a_user_one_by_one_are_the_whole_user(tables, chains, way, holdout):
    rows = tables.random_table(3, users=12, items=10)
    config = config_of(way, holdout=holdout)
    positions = chains.positions_of(rows, config)
    user = "u0000"  # who has every item
    learned = chains.learn(rows, config, positions)
    for item in rows.items.texts():
        learned = forget_and_clean_up(chains, learned, [Request(user, (item,))])
        rows = rows.without(pairs=[(user, item)])
        assert_same(learned, chains.learn(rows, config, positions))
    assert user not in rows.users
    whole = chains.learn(tables.random_table(3, users=12, items=10), config, positions)
    assert_same(forget_and_clean_up(chains, whole, [Request(user)]), learned)


@pytest.mark.parametrize("way", GIVEN)
def test_an_interaction_that_is_only_held_out_leaves_the_chain_and_the_holdout_loses_it(tables, chains, way):
    rows = tables.random_table(4, users=12, items=10)
    config = config_of(way, holdout=0.3)
    positions = chains.positions_of(rows, config)
    learned = chains.learn(rows, config, positions)
    user, item, _ = sorted(tables.as_rows(learned.state.dataset.held_out))[0]
    after = forget_and_clean_up(chains, learned, [Request(user, (item,))])
    assert after.names == learned.names
    assert (user, item) not in {row[:2] for row in tables.as_rows(after.state.dataset.held_out)}
    assert_same(after, chains.learn(rows.without(pairs=[(user, item)]), config, positions))


@pytest.mark.parametrize("way", GIVEN)
def test_the_order_of_requests_does_not_matter(tables, chains, way):
    rows = tables.random_table(5, users=14, items=10)
    config = config_of(way, holdout=0.3)
    first, second = Request("u0003"), Request("u0009", (rows.items[int(tables.items_of(rows, 9)[0])],))
    ends = []
    for steps in ([[first], [second]], [[second], [first]], [[first, second]], [[second, first]]):
        learned = chains.learn(rows, config)
        for requests in steps:
            learned = forget_and_clean_up(chains, learned, requests)
        ends.append((learned.names, learned.contents()))
    assert all(end == ends[0] for end in ends)


@pytest.mark.parametrize("way", GIVEN)
def test_everyone_can_be_forgotten_one_after_the_other(tables, chains, way):
    rows = tables.random_table(6, users=8, items=9)
    config = config_of(way, holdout=0.3)
    positions = chains.positions_of(rows, config)
    learned = chains.learn(rows, config, positions)
    for user in rows.users.texts():
        learned = forget_and_clean_up(chains, learned, [Request(user)])
        rows = rows.without(users=[user])
        assert_same(learned, chains.learn(rows, config, positions))
    assert learned.state.dataset.interactions == 0


def test_forgetting_one_user_reaches_every_later_checkpoint(tables, chains):
    """The other side of exactness: bytes do depend on the user, so equal bytes after forgetting mean something."""
    rows = tables.random_table(7, users=12, items=10)
    config = Config(model="nmf", groups=3, epochs=3)
    learned = chains.learn(rows, config)
    before = learned.contents()
    user = next(user for user in rows.users.texts() if learned.state.dataset.find(user).group == 0)
    after = forget_and_clean_up(chains, learned, [Request(user)]).contents()
    assert all(before[position]["shared.item"] != after[position]["shared.item"] for position in range(3))


# What belongs to others never moves.


@given(world=worlds(), seed=st.integers(0, 5), data=st.data())
@settings(deadline=None, max_examples=40)
def test_removing_anything_moves_nobody_else(tables, world, seed, data):
    rows = tables.random_table(*world)
    requests = some_requests(data.draw, tables, rows)
    touched = {request.user for request in requests}
    left = remaining(rows, requests)
    for facts in (starts, groups, lambda table, key: holdouts(tables, table, key)):
        before, after = facts(rows, seed), facts(left, seed)
        others = before.keys() - touched
        assert {user: after[user] for user in others} == {user: before[user] for user in others}


def starts(rows, seed):
    table = normals(id_keys(seed, "user", rows.users), 16)
    return {user: row.tobytes() for user, row in zip(rows.users.texts(), table, strict=True)}


def groups(rows, seed):
    return dict(zip(rows.users.texts(), independent_labels(rows, 4, seed).tolist(), strict=True))


def holdouts(tables, rows, seed):
    train, held = split_holdout(rows, 0.3, seed)
    parts = {user: (set(), set()) for user in rows.users.texts()}
    for side, part in enumerate((train, held)):
        for user, item, _ in tables.as_rows(part):
            parts[user][side].add(item)
    return parts


def test_the_table_that_examples_are_drawn_from_has_a_user_with_every_item(tables):
    rows = tables.random_table(0, users=6, items=7)
    assert np.diff(rows.user_starts)[:2].tolist() == [7, 1]
