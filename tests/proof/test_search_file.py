"""The search file: who is erased and not certified; nothing is lost on the way to disk, and every format is read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from erasable.errors import SuppressionUnknown
from erasable.proof.search_file import NOTHING_SOUGHT, Search, read_search
from erasable.requests import Request
from kit.asking import FACTS, accepted_before, erased, search, sought

users = st.sampled_from(["ann", "bob", "cat", "é😀"])
items = st.none() | st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(tuple)
requests = st.lists(st.builds(Request, users, items), min_size=1, max_size=8)
TRACE = {
    "user": "ann",
    "items": None,
    "rows": [["a", 5.0, None], ["b", 4.0, 12.5]],
    "personal": [["<f4", "0000803f"]],
    "texts": ["5a" * 8],
    "own_items": ["only-hers"],
}


def before_3(*people: dict, **more: object) -> bytes:
    """Return the file as 0.1 wrote it once people were erased."""
    accepted = json.loads(accepted_before(Request("ann"), Request("bob", ("a",))))["accepted"]
    done = {**FACTS, "traces": [TRACE, {**TRACE, "user": "bob", "items": ["a"], "texts": [], "own_items": []}], **more}
    return json.dumps({"accepted": accepted, "suppression": [["list", "key"]], "erased": done}).encode()


class TestWhatIsLeft:
    @pytest.mark.parametrize(
        ("held", "asked", "left"),
        [
            (("ann", None), ("ann", None), None),
            (("ann", None), ("ann", ("a",)), None),
            (("ann", ("a", "b")), ("ann", ("a",)), None),
            (("ann", ("a", "b")), ("ann", ("b", "a")), None),
            (("ann", ("a",)), ("ann", ("a", "b")), ("ann", ("b",))),
            (("ann", ("a",)), ("ann", None), ("ann", None)),
            (("ann", None), ("bob", None), ("bob", None)),
            (("ann", None), ("bob", ("a",)), ("bob", ("a",))),
        ],
    )
    def test_of_what_is_asked_for(self, held, asked, left):
        assert search(Request(*held)).left_of(Request(*asked)) == (Request(*left) if left else None)

    def test_of_anything_where_nobody_is_sought(self):
        assert NOTHING_SOUGHT.left_of(Request("ann")) == Request("ann")

    def test_of_two_erasures_of_one_person_both_count(self):
        found = Search(erasures=(erased(Request("ann", ("a",))), erased(Request("ann", ("b",)))))
        assert found.left_of(Request("ann", ("a", "b"))) is None


class TestWhoIsInIt:
    def test_whoever_is_certified_leaves_and_the_others_stay(self):
        found = Search(erasures=(erased(Request("ann"), Request("bob")), erased(Request("cat"))))
        ann, _, cat = found.people
        left = found.without([ann.request_id, cat.request_id])
        assert [one.user for one in left.people] == ["bob"]
        assert len(left.erasures) == 1
        assert [one.user for one in found.of([cat.request_id]).people] == ["cat"]

    def test_where_something_was_found_is_kept_with_the_person(self):
        found = search(Request("ann"), Request("bob"))
        ann, _ = found.people
        again = read_search(found.found_at({ann.request_id: "notes.txt (line 1)"}).encoded())
        assert [one.found for one in again.people] == ["notes.txt (line 1)", None]

    def test_whoever_is_left_is_certified_for_what_was_made_again_since(self):
        assert [one.rerun for one in search(Request("ann")).made_again([0, 2]).erasures] == [(0, 1, 2)]

    def test_nothing_personal_shows_in_a_traceback(self):
        found = sought(Request("ann", ("an-item",)), "case 4711", rows=(("an-item", 5.0, None),), found="ann.txt")
        for secret in (found.salt, "ann", "an-item", "4711"):
            assert secret not in repr(Search(erasures=(erased().model_copy(update={"people": (found,)}),)))


class TestOnDisk:
    @given(requests)
    def test_what_is_written_is_read_again(self, some):
        found = search(*some)
        assert read_search(found.encoded()) == found

    def test_without_content_there_is_nobody(self):
        assert read_search(b"") == NOTHING_SOUGHT
        assert NOTHING_SOUGHT.encoded() == b""
        assert search(Request("ann")).of(()).encoded() == b""

    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            (b'{"accepted":[{"user":"ann"}],"erased":null}', "who is being erased can't be read, so nobody is served"),
            (b'{"format":3,"erasures":[{"people":[{"user":"ann"}]}]}', "can't be read"),
            (
                b'{"format":4,"asked":[{"user":"ann"}]}',
                "has the format 4 .* a later version wrote it.*nobody is served",
            ),
            (b'{"format":"ann"}', "can't be read"),
            (b'{"format":true,"accepted":[]}', "can't be read"),
            (b'["ann"]', "can't be read"),
            (b'{"format":3,"erasures":[],"erasures":[]}', "can't be read"),
            (b'{"format":3,"erasures":[],"z":NaN}', "can't be read"),
            (b"\xff", "can't be read"),
            (b"[" * 5000, "can't be read"),
        ],
    )
    def test_what_this_version_can_not_read_is_refused_and_nobody_is_named(self, asked, said):
        with pytest.raises(SuppressionUnknown, match=said) as refused:
            read_search(asked)
        assert "ann" not in str(refused.value)

    @pytest.mark.parametrize(
        "change",
        [{"salt": "x"}, {"request_id": "../../etc/passwd"}, {"received": "yesterday"}, {"user": None}],
        ids=str,
    )
    def test_what_could_not_be_certified_is_refused_when_it_is_read(self, change):
        fields = json.loads(search(Request("ann")).encoded())
        fields["erasures"][0]["people"][0] |= change
        with pytest.raises(SuppressionUnknown, match="can't be read"):
            read_search(json.dumps(fields).encode())

    @pytest.mark.parametrize("more", [1, -0.5, "é", None, [1, [2]], {"deep": {"er": True}}], ids=str)
    def test_what_a_newer_version_has_added_stays_when_it_is_written_again(self, more):
        fields = json.loads(search(Request("ann"), Request("bob")).encoded())
        for part in (fields, fields["erasures"][0], fields["erasures"][0]["people"][1]):
            part["more"] = more
        found = read_search(json.dumps(fields).encode())
        again = found.without([next(found.people).request_id]).made_again([0]).found_at({})
        written = json.loads(again.encoded())
        (left,) = written["erasures"]
        assert [written["more"], left["more"], left["people"][0]["more"]] == [more] * 3

    def test_nobody_can_change_it_in_place(self):
        with pytest.raises(ValidationError):
            next(search(Request("ann")).people).user = "bob"


class TestEarlierFormats:
    @pytest.mark.parametrize("number", ["", '"format": 2, '], ids=["0.1", "2"])
    def test_who_was_accepted_and_not_begun_is_told_apart_from_who_is_erased(self, number):
        content = accepted_before(Request("ann"), Request("bob", ("a",))).replace(b"{", b"{" + number.encode(), 1)
        found = read_search(content)
        assert found.erasures == ()
        assert [one.request.items for one in found.accepted] == [None, ("a",)]
        assert found.users == {"ann", "bob"}

    @pytest.mark.parametrize("number", ["", '"format": 2, '], ids=["0.1", "2"])
    def test_who_is_erased_is_sought_for_the_same_as_before(self, number):
        (found,) = read_search(before_3().replace(b"{", b"{" + number.encode(), 1)).erasures
        ann, bob = found.people
        assert (ann.user, ann.rows, ann.personal) == (
            "ann",
            (("a", 5.0, None), ("b", 4.0, 12.5)),
            (("<f4", "0000803f"),),
        )
        assert (bob.user, bob.items) == ("bob", ("a",))
        assert (found.texts, found.own_items, found.suppression) == (("5a" * 8,), ("only-hers",), (("list", "key"),))
        assert (found.rerun, found.version, found.cost_at_most) == ((1, 2), None, None)

    def test_it_is_written_in_the_format_of_now(self):
        found = read_search(before_3())
        assert json.loads(found.encoded())["format"] == 3
        assert read_search(found.encoded()) == found
