"""Pending requests: one for each person, whoever asks twice is joined, and nothing is lost on the way to disk."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from erasable.errors import SuppressionUnknown
from erasable.proof.pending import NOTHING_PENDING, Accepted, Erased, Pending, read_pending
from erasable.unlearning import Erasure, Request

users = st.sampled_from(["ann", "bob", "cat", "é😀"])
items = st.none() | st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(tuple)
requests = st.lists(st.builds(Request, users, items), max_size=8)
ERASED = Erased(
    at="2026-01-01T00:00:00+00:00",
    seconds=1.25,
    threads=2,
    rerun=(1, 2),
    cost_ratio=0.5,
    data_before="ab" * 32,
    utility_before={"hr@10": 0.25},
)


def pending(*asked: Request) -> Pending:
    return NOTHING_PENDING.joined_with(asked)


class TestAccepting:
    def test_each_person_gets_a_random_id_and_a_salt_of_their_own(self):
        accepted = pending(Request("ann"), Request("bob")).accepted + pending(Request("ann")).accepted
        assert len({one.request_id for one in accepted}) == len({one.salt for one in accepted}) == 3
        assert all(re.fullmatch("[0-9a-f]{32}", one.request_id) for one in accepted)
        assert all(re.fullmatch("[0-9a-f]{64}", one.salt) for one in accepted)

    def test_it_is_written_down_when_they_asked(self):
        (accepted,) = pending(Request("ann")).accepted
        assert abs(datetime.now(UTC) - datetime.fromisoformat(accepted.received)) < timedelta(minutes=5)

    def test_neither_salt_nor_person_shows_in_a_traceback(self):
        found = NOTHING_PENDING.joined_with([Accepted.of(Request("ann", ("an-item",)), "case 4711")])
        for secret in (found.accepted[0].salt, "ann", "an-item", "4711"):
            assert secret not in repr(found)

    def test_an_item_named_twice_counts_once(self):
        assert pending(Request("ann", ("a", "b", "a"))).requests == [Request("ann", ("a", "b"))]


class TestJoining:
    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ([("ann", None), ("ann", None)], [("ann", None)]),
            ([("ann", ("a",)), ("ann", ("b", "a"))], [("ann", ("a", "b"))]),
            ([("ann", ("a",)), ("ann", None)], [("ann", None)]),
            ([("ann", None), ("ann", ("a",))], [("ann", None)]),
            ([("ann", ("a",)), ("bob", None), ("ann", ("b",))], [("ann", ("a", "b")), ("bob", None)]),
            ([], []),
        ],
    )
    def test_several_requests_of_one_person_become_one(self, asked, expected):
        assert pending(*(Request(*one) for one in asked)).requests == [Request(*one) for one in expected]

    def test_whoever_asks_again_keeps_id_time_and_salt(self):
        first = pending(Request("ann", ("a",)))
        again = first.joined_with([Request("bob"), Request("ann")])
        before, after = first.accepted[0], again.accepted[0]
        assert (after.request_id, after.received, after.salt) == (before.request_id, before.received, before.salt)
        assert again.users == {"ann", "bob"}
        assert first.requests == [Request("ann", ("a",))]

    def test_the_reference_is_the_one_that_was_given_first(self):
        first = NOTHING_PENDING.joined_with([Accepted.of(Request("ann")), Accepted.of(Request("ann"), "one")])
        again = first.joined_with([Accepted.of(Request("ann"), "two")])
        assert [found.accepted[0].reference for found in (first, again)] == ["one", "one"]

    def test_what_is_known_about_the_erasure_stays(self):
        done = pending(Request("ann")).model_copy(update={"erased": ERASED, "suppression": (("list", "key"),)})
        joined = done.joined_with([Request("bob")])
        assert (joined.erased, joined.suppression) == (ERASED, (("list", "key"),))

    @given(requests, requests)
    def test_joined_they_erase_what_they_erase_one_by_one(self, some, more):
        joined = pending(*some).joined_with(more)
        assert Erasure.of(joined.requests) == Erasure.of([*some, *more])
        assert len(joined.accepted) == len(joined.users) == len({one.user for one in [*some, *more]})


class TestWhatIsLeft:
    @pytest.mark.parametrize(
        ("held", "asked", "left"),
        [
            (("ann", None), ("ann", None), None),
            (("ann", None), ("ann", ("a",)), None),
            (("ann", ("a", "b")), ("ann", ("a",)), None),
            (("ann", ("a", "b")), ("ann", ("b", "a")), None),
            (("ann", ("a", "a")), ("ann", ("a",)), None),
            (("ann", ("a",)), ("ann", ("a", "b")), ("ann", ("b",))),
            (("ann", ("a",)), ("ann", None), ("ann", None)),
            (("ann", None), ("bob", None), ("bob", None)),
            (("ann", None), ("bob", ("a",)), ("bob", ("a",))),
        ],
    )
    def test_of_what_is_asked_for(self, held, asked, left):
        assert pending(Request(*held)).left_of(Request(*asked)) == (Request(*left) if left else None)

    def test_of_anything_where_nothing_is_pending(self):
        assert NOTHING_PENDING.left_of(Request("ann")) == Request("ann")

    @given(requests, st.builds(Request, users, items))
    def test_nothing_is_left_if_joining_it_erases_no_more(self, some, asked):
        found = pending(*some)
        erases_no_more = Erasure.of(found.joined_with([asked]).requests) == Erasure.of(found.requests)
        assert (found.left_of(asked) is None) is erases_no_more
        assert found.joined_with([asked]).left_of(asked) is None


class TestOnDisk:
    @given(requests, st.booleans())
    def test_what_is_written_is_read_again(self, some, is_erased):
        more = {"erased": ERASED, "suppression": (("/lists/list", "/keys/key"),)} if is_erased else {}
        found = pending(*some).model_copy(update=more)
        assert read_pending(found.encoded()) == found

    def test_without_content_there_is_nothing(self):
        assert read_pending(b"") == NOTHING_PENDING
        assert NOTHING_PENDING.requests == []

    def test_what_this_version_does_not_know_is_refused(self):
        asked = b'{"accepted":[{"user":"ann"}],"erased":null,"more":1}'
        with pytest.raises(SuppressionUnknown, match="nobody is served") as refused:
            read_pending(asked)
        assert "ann" not in str(refused.value)

    def test_nobody_can_change_it_in_place(self):
        with pytest.raises(ValidationError):
            pending(Request("ann")).accepted[0].user = "bob"
