"""Pending requests: one for each person, whoever asks twice is joined, and nothing is lost on the way to disk."""

import json
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

    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            (b'{"accepted":[{"user":"ann"}],"erased":null}', "who is being erased can't be read, so nobody is served"),
            (
                b'{"format":3,"asked":[{"user":"ann"}]}',
                "has the format 3 .* a later version wrote it.*nobody is served",
            ),
            (b'{"format":"ann"}', "can't be read"),
            (b'{"format":true,"accepted":[]}', "can't be read"),
            (b'["ann"]', "can't be read"),
            (b"\xff", "can't be read"),
            (b"[" * 5000, "can't be read"),
        ],
    )
    def test_what_this_version_can_not_read_is_refused_and_nobody_is_named(self, asked, said):
        with pytest.raises(SuppressionUnknown, match=said) as refused:
            read_pending(asked)
        assert "ann" not in str(refused.value)

    @pytest.mark.parametrize(
        "change",
        [{"salt": "x"}, {"request_id": "../../etc/passwd"}, {"received": "yesterday"}, {"user": None}],
        ids=str,
    )
    def test_what_could_not_be_carried_out_is_refused_when_it_is_read(self, change):
        fields = json.loads(pending(Request("ann")).encoded())
        fields["accepted"][0] |= change
        with pytest.raises(SuppressionUnknown, match="can't be read"):
            read_pending(json.dumps(fields).encode())

    def test_it_says_its_format_and_0_1_names_none(self):
        found = pending(Request("ann")).encoded()
        assert json.loads(found)["format"] == 2
        assert read_pending(found.replace(b'"format":2,', b"")) == read_pending(found)

    @pytest.mark.parametrize("more", [1, -0.5, "é", None, [1, [2]], {"deep": {"er": True}}], ids=str)
    def test_what_a_newer_version_has_added_stays_when_it_is_written_again(self, more):
        fields = json.loads(pending(Request("ann")).model_copy(update={"erased": ERASED}).encoded())
        for part in (fields, fields["accepted"][0], fields["erased"]):
            part["more"] = more
        again = read_pending(json.dumps(fields).encode()).joined_with([Request("bob")]).put_on("list", "key")
        written = json.loads(again.encoded())
        assert [written["more"], written["accepted"][0]["more"], written["erased"]["more"]] == [more] * 3
        assert len(written["accepted"]) == 2

    def test_nobody_can_change_it_in_place(self):
        with pytest.raises(ValidationError):
            pending(Request("ann")).accepted[0].user = "bob"
