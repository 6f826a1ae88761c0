import pytest

from erasable.chain import Config, Erasure, known_requests
from erasable.data import RatingScale
from erasable.errors import UnknownInteraction, UnknownUser, WrongUse
from erasable.requests import Request

POSITIONS = {"a": 0, "b": 1, "c": 1}


@pytest.fixture
def known(chains, tables):
    rows = tables.table({"a": "pqrstu", "b": "pq", "c": "r"}, catalogue="pqrstuv")
    return chains.dataset(rows, Config(model="nmf", groups=2, holdout=0.5, seed=1), POSITIONS, RatingScale(1, 1))


def test_a_request_without_items_means_everything():
    assert Request("a").everything
    assert not Request("a", ("p",)).everything


def test_joining_takes_users_and_pairs_together():
    joined = Erasure.of([Request("a", ("p", "q")), Request("b"), Request("a", ("q", "r"))])
    assert joined == Erasure(frozenset("b"), frozenset({("a", "p"), ("a", "q"), ("a", "r")}))


@pytest.mark.parametrize("requests", [("whole", "some"), ("some", "whole")])
def test_a_user_to_be_forgotten_whole_needs_no_pairs(requests):
    kinds = {"whole": Request("a"), "some": Request("a", ("p",))}
    assert Erasure.of([kinds[kind] for kind in requests]) == Erasure(frozenset("a"), frozenset())


def test_no_requests_erase_nothing(known):
    assert Erasure.of([]) == Erasure(frozenset(), frozenset())
    left = Erasure.of([]).apply(known)
    assert [group.digest() for group in left.groups] == [group.digest() for group in known.groups]


def test_applying_leaves_what_was_not_asked_for(known, tables):
    left = Erasure.of([Request("b"), Request("a", ("p", "s"))]).apply(known)
    assert tables.as_rows(left.data_of(["a"])) == {("a", item, 1.0) for item in "qrtu"}
    assert tables.as_rows(left.data_of(["c"])) == {("c", "r", 1.0)}
    with pytest.raises(UnknownUser):
        left.data_of(["b"])


def test_requests_about_what_is_held_are_known_held_out_or_not(known):
    assert len(known.held_out) > 0
    requests = [Request("a", tuple("pqrstu")), Request("b", ("q",)), Request("c")]
    assert known_requests(requests, known) == requests


@pytest.mark.parametrize("request_", [Request("nobody"), Request("nobody", ("p",)), Request("A"), Request("")], ids=str)
def test_an_unknown_user_is_refused(known, request_):
    with pytest.raises(UnknownUser, match=f"nothing is held about the user {request_.user!r}"):
        known_requests([Request("a"), request_], known)


@pytest.mark.parametrize("item", ["p", "v", "w"], ids=["someone else's", "nobody's", "not in the catalogue"])
def test_an_interaction_that_the_user_has_not_is_refused(known, item):
    with pytest.raises(UnknownInteraction, match=f"user 'c' has no interaction with item {item!r}"):
        known_requests([Request("c", ("r", item))], known)


def test_the_first_fault_is_the_one_that_is_named(known):
    requests = [Request("a"), Request("c", ("p",)), Request("nobody")]
    with pytest.raises(UnknownInteraction):
        known_requests(requests, known)


def test_what_is_unknown_can_be_left_out(known):
    requests = [Request("nobody"), Request("a"), Request("c", ("p",)), Request("b", ("q",))]
    assert known_requests(requests, known, ignore_unknown=True) == [Request("a"), Request("b", ("q",))]
    assert known_requests([Request("nobody")], known, ignore_unknown=True) == []


def test_with_unknown_items_left_out_those_that_are_known_remain(known):
    """Otherwise an interaction that someone asked to be forgotten, and that is held, would be kept in silence."""
    kept = known_requests([Request("a", ("p", "v", "q"))], known, ignore_unknown=True)
    assert kept == [Request("a", ("p", "q"))]


def test_a_request_that_names_no_item_is_not_taken_for_everything():
    with pytest.raises(WrongUse, match="names no item"):
        Request("a", ())
