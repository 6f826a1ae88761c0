from dataclasses import replace
from math import log2

import pyarrow as pa
import pytest

from erasable.data import Catalogue, Interactions, RatingScale, SyntheticSettings, split_holdout, synthesise
from erasable.errors import Refused, WrongUse
from erasable.evaluation import sampled_candidates, whole_catalogue
from erasable.models import Effort
from erasable.training import Config, Knowledge, MemoryStore, train_chain


def a_test_set(*pairs):
    users, items = (pa.array([pair[side] for pair in pairs], pa.string()) for side in (0, 1))
    return Interactions.from_columns(users, items)[0]


def test_whole_catalogue_worked_by_hand(learned):
    # ann's list is b c d e, with b and e relevant; cat's is d a b e, with e relevant.
    found = whole_catalogue(learned.state, learned.checkpoints, learned.state.knowledge.held_out, threads=1)
    ann, cat = (1 + 1 / log2(5)) / (1 + 1 / log2(3)), 1 / log2(5)
    assert (found.protocol, found.users) == ("whole catalogue", 2)
    assert list(found.values) == ["hr@10", "ndcg@10", "recall@10", "hr@20", "ndcg@20", "recall@20"]
    assert found.values["hr@10"] == found.values["recall@20"] == 1
    assert found.values["ndcg@10"] == pytest.approx((ann + cat) / 2)


def test_users_that_are_not_known_are_left_out(learned):
    test = a_test_set(("ann", "b"), ("nobody", "b"))
    found = whole_catalogue(learned.state, learned.checkpoints, test, threads=1)
    assert (found.users, found.values["ndcg@10"]) == (1, 1)


def test_items_outside_the_catalogue_are_relevant_and_never_hit(learned):
    test = a_test_set(("ann", "b"), ("ann", "x"), ("ann", "y"))
    found = whole_catalogue(learned.state, learned.checkpoints, test, threads=1)
    assert found.values["recall@10"] == pytest.approx(1 / 3)


def test_a_test_set_numbered_otherwise_gives_the_same(learned):
    test = a_test_set(("ann", "b"), ("ann", "e"), ("cat", "e"))
    assert test.items != learned.state.knowledge.held_out.items
    one, other = (
        whole_catalogue(learned.state, learned.checkpoints, rows, threads=1)
        for rows in (test, learned.state.knowledge.held_out)
    )
    assert one == other


def test_a_test_set_without_a_known_user_is_refused(learned):
    empty = learned.state.knowledge.held_out.without(users=["ann", "cat"])
    for test in (empty, a_test_set(("nobody", "a"))):
        with pytest.raises(Refused, match="--holdout"):
            whole_catalogue(learned.state, learned.checkpoints, test, threads=1)


def test_sampled_candidates_ranks_the_test_item_among_the_given_ones(learned):
    # bob: the test item a (0) comes after d (3); c (-1) comes last, and e (3) is no candidate.
    test, candidates = a_test_set(("bob", "a")), {"bob": ["c", "d", "unheard-of"]}
    found = sampled_candidates(learned.state, learned.checkpoints, test, candidates, threads=1)
    assert found.protocol == "sampled candidates"
    assert found.values["ndcg@10"] == pytest.approx(1 / log2(3))


def test_sampled_candidates_can_miss(learned):
    test, candidates = a_test_set(("bob", "x")), {"bob": ["c", "d"]}
    found = sampled_candidates(learned.state, learned.checkpoints, test, candidates, threads=1)
    assert found.values["hr@10"] == 0


def test_a_user_without_candidates_is_refused(learned):
    test = a_test_set(("ann", "b"), ("bob", "a"))
    with pytest.raises(WrongUse, match="'bob'"):
        sampled_candidates(learned.state, learned.checkpoints, test, {"ann": ["c"]}, threads=1)


@pytest.fixture(scope="module")
def trained():
    data = synthesise(SyntheticSettings(users=60, items=40, groups=2, per_user=8, seed=1)).interactions
    config = Config(groups=2, holdout=0.2, epochs=2)
    training, held_out = split_holdout(data, config.holdout, config.seed)
    groups = tuple(training.select(training.user_index % 2 == position) for position in (0, 1))
    knowledge = Knowledge(config, Catalogue.from_items(data.items), RatingScale(1, 1), groups, held_out)
    store = MemoryStore()
    return train_chain(knowledge, store, Effort()), store


@pytest.mark.parametrize("threads", [2, 3, 500])
def test_threads_change_nothing(trained, threads):
    state, store = trained
    test = state.knowledge.held_out
    candidates = {user: state.knowledge.catalogue.items.texts()[:15] for user in test.users}
    assert whole_catalogue(state, store, test, 1) == whole_catalogue(state, store, test, threads)
    one, many = (sampled_candidates(state, store, test, candidates, number) for number in (1, threads))
    assert one == many


def test_a_forgotten_user_is_in_no_test_set(trained):
    state, store = trained
    test = state.knowledge.held_out
    gone = replace(state, knowledge=state.knowledge.without(users=[test.users[0]], pairs=[]))
    chain = train_chain(gone.knowledge, store, Effort(), trained=state.chain)
    assert whole_catalogue(chain, store, test, 1).users == len(test.users) - 1
    assert whole_catalogue(chain, store, gone.knowledge.held_out, 1).users == len(test.users) - 1
