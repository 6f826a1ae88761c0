"""The state never depends on the path: any order of learning and forgetting gives what learning the outcome gives."""

from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from erasable.chain import Dataset, Earlier, MemoryStore, arrange, grown, known_requests, train_chain
from erasable.chain.arrangement import matched
from erasable.chain.matching import difference
from erasable.data import Interactions, RatingScale
from erasable.errors import Refused
from erasable.grouping.points import ALONE
from erasable.models import Effort
from erasable.requests import Request
from kit.choosing import examples
from kit.in_buckets import SIZES, in_buckets_of
from kit.ways import WAYS, config_of

as_drawn = (Phase.explicit, Phase.reuse, Phase.generate)
SCALE = RatingScale(1, 5)


def learn(chains, rows, config, positions=None):
    store = MemoryStore()
    arranged = arrange(rows, Dataset.of_nobody(config, None, SCALE), ALONE, positions)
    return chains.LearnedChain(train_chain(arranged, store, Effort()), store)


def learn_more(chains, learned, coming):
    after = grown(learned.state.dataset, coming, ALONE)
    state = train_chain(after, learned.store, Effort(2), Earlier.of(learned.state))
    return chains.LearnedChain(state, learned.store)


def sync(chains, learned, export):
    held = learned.state.dataset
    after = matched(held, export, difference(held, export), ALONE)
    state = train_chain(after, learned.store, Effort(2), Earlier.of(learned.state))
    return chains.LearnedChain(state, learned.store)


def from_scratch(chains, learned, rows):
    """Learn the outcome with the same groups, where they are decided once."""
    known = learned.state.dataset
    decided = known.config.policy == "fixed"
    positions = {user: place for place, group in enumerate(known.groups) for user in group.users} if decided else None
    return learn(chains, rows, known.config, positions)


def assert_same(learned, scratch):
    assert learned.names == scratch.names
    assert learned.contents() == scratch.contents()
    assert learned.rows() == scratch.rows()
    assert learned.state.dataset.held_out.digest() == scratch.state.dataset.held_out.digest()
    assert learned.state.dataset.items == scratch.state.dataset.items
    assert learned.state.dataset.data_name == scratch.state.dataset.data_name


def used_items(rows):
    """Return a table over the items that stand in it, as a reader gives it."""
    return Interactions.merge([rows]).with_items(rows.items.take(sorted(set(rows.item_index.tolist()))))


def joined(tables, rows, coming):
    """Return the rows of both; of two rows of one pair the later stays."""
    cells = {(user, item): rating for user, item, rating in sorted(tables.as_rows(rows))}
    cells |= {(user, item): rating for user, item, rating in sorted(tables.as_rows(coming))}
    by_user = {}
    for (user, item), rating in cells.items():
        by_user.setdefault(user, {})[item] = rating
    return tables.table(by_user)


@st.composite
def histories(draw):
    """Draw a table to begin with, and what happens: a table that comes, how many people go, or all there is now."""
    events = st.one_of(
        st.tuples(st.just("more"), st.integers(0, 10**6)),
        st.tuples(st.just("forget"), st.integers(1, 3)),
        st.tuples(st.just("sync"), st.integers(0, 10**6)),
    )
    return draw(st.integers(0, 10**6)), draw(st.lists(events, min_size=1, max_size=4))


def some_table(tables, seed, first_user=0, first_item=0):
    """Make up a table whose users and items overlap those of others in part."""
    rows = tables.random_table(seed, users=7, items=8, ratings=True)
    shift = seed % 4 if first_user else 0
    by_user = {}
    for user, item, rating in sorted(tables.as_rows(rows)):
        name, number = f"u{int(user[1:]) + first_user * shift:04d}", f"i{int(item[1:]) + first_item * (seed % 3):03d}"
        by_user.setdefault(name, {})[number] = rating
    return tables.table(by_user)


@pytest.mark.parametrize("way", WAYS)
@given(history=histories(), holdout=st.sampled_from([0.0, 0.3]), data=st.data())
@settings(deadline=None, max_examples=examples(4, 12), phases=as_drawn)
def test_any_order_of_learning_and_forgetting_gives_what_learning_the_outcome_gives(
    tables, chains, way, history, holdout, data
):
    seed, events = history
    rows = some_table(tables, seed)
    config = config_of(way, holdout=holdout)
    with in_buckets_of(data.draw(st.sampled_from([2, *SIZES.values()]))):  # and what is compared with lies in one
        learned = learn(chains, rows, config)
    for what, number in events:
        if what == "more":
            coming = some_table(tables, number, first_user=1, first_item=1)
            rows = joined(tables, rows, coming)
            with in_buckets_of(data.draw(st.sampled_from([1, *SIZES.values()]))):
                learned = learn_more(chains, learned, coming)
        elif what == "sync":
            rows = some_table(tables, number, first_user=1, first_item=1)
            with in_buckets_of(data.draw(st.sampled_from([1, *SIZES.values()]))):
                learned = sync(chains, learned, rows)
        elif len(rows.users) > number:
            people = data.draw(st.permutations(rows.users.texts()))[:number]
            requests = known_requests([Request(user) for user in people], learned.state.dataset)
            learned = chains.forget(learned, requests, threads=2)
            rows = rows.without(users=people)
        learned.store.keep_only(learned.names)
        assert_same(learned, from_scratch(chains, learned, rows))


@pytest.mark.parametrize("way", ["solved rows", "anchors", "als", "anchored ease"])
def test_new_users_are_served_without_any_training(tables, chains, way):
    rows = tables.random_table(3, users=12, items=9, ratings=True)
    learned = learn(chains, rows, config_of(way))
    coming = tables.table({"zoe": {"i001": 5.0, "i003": 4.0}}).with_items(rows.items)
    more = learn_more(chains, learned, coming)
    stages = learned.state.dataset.stages
    assert more.names[:stages] == learned.names[:stages]
    assert "zoe" in more.state.dataset.groups[-1].users


def test_of_a_chain_new_users_become_a_last_group(tables, chains):
    rows = tables.random_table(3, users=12, items=9, ratings=True)
    learned = learn(chains, rows, config_of("chain"))
    more = learn_more(chains, learned, tables.table({"zoe": {"i001": 5.0, "i003": 4.0}}))
    assert more.names[:3] == learned.names
    assert len(more.names) == 4


def test_new_interactions_of_a_known_user_rerun_from_the_own_group_only(tables, chains):
    rows = tables.random_table(3, users=12, items=9, ratings=True)
    learned = learn(chains, rows, config_of("chain"))
    user = learned.state.dataset.groups[1].users[0]
    more = learn_more(chains, learned, tables.table({user: {"i007": 1.0, "i006": 2.0}}))
    assert [one == other for one, other in zip(more.names, learned.names, strict=True)] == [True, False, False]


def test_new_items_are_known_from_the_stage_on_that_needs_them(tables, chains):
    rows = tables.random_table(3, users=12, items=9, ratings=True)
    learned = learn(chains, rows, config_of("chain"))
    user = learned.state.dataset.groups[1].users[0]
    more = learn_more(chains, learned, tables.table({user: {"new": 5.0}}))
    assert [len(content["shared.item"][2]) for content in more.contents()] == [9 * 32 * 4, 10 * 32 * 4, 10 * 32 * 4]


def test_more_is_refused_where_a_filter_was_applied(tables, chains):
    rows = tables.random_table(3, users=12, items=9, ratings=True)
    known = learn(chains, rows, config_of("chain")).state.dataset
    filtered = replace(known, config=config_of("chain", min_interactions=2))
    with pytest.raises(Refused, match="filter"):
        grown(filtered, rows.of_users([rows.users[0]]), ALONE)
