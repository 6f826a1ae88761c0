"""The log: whatever is removed, changed, put in or put elsewhere is found, and where."""

import json
import re
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import combinations

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from erasable.errors import WorkspaceDamaged
from erasable.proof import log as audit_chain
from erasable.proof.log import (
    BEGINNING,
    Head,
    add_record,
    first_fault,
    head_of,
    newer_record,
    records_of,
    says_more_than_known,
)

FACTS = [("learn", {"version": 1}), ("verify", {"identical": True}), ("forget", {"certificates": {"ab": "cd"}})]
PLACES = range(1, 6)


def chain_of(*facts) -> bytes:
    chain = b""
    for what, more in facts:
        chain = add_record(chain, what, more)
    return chain


@pytest.fixture(scope="module")
def chain() -> bytes:
    return chain_of(*FACTS, ("verify", {"identical": None}), ("save", {"note": "é\n"}))


@pytest.fixture(scope="module")
def lines(chain) -> list[bytes]:
    return chain.splitlines(keepends=True)


def digest_of(content: bytes) -> str:
    return blake2b(content, digest_size=32).hexdigest()


def hash_of(record) -> str:
    return digest_of(rfc8785.dumps(record))


def forged(number: int, previous: str, **more) -> bytes:
    """Return a made-up record whose own hash is right."""
    record = {"number": number, "previous": previous, "at": "2026-01-01T00:00:00+00:00", "what": "forget", **more}
    return rfc8785.dumps(record | {"hash": hash_of(record)}) + b"\n"


def made_anew(lines: list[bytes], first: int) -> bytes:
    """Return the chain with other records from some number on, all hashes right."""
    chain = b"".join(lines[: first - 1])
    for _ in range(first, len(lines) + 1):
        chain = add_record(chain, "learn", {"made": "up"})
    return chain


class TestAWholeChain:
    def test_has_no_fault(self, chain):
        assert first_fault(chain) is None
        assert first_fault(b"") is None

    def test_each_record_carries_number_time_kind_facts_and_the_hash_of_the_one_before(self, chain):
        records = records_of(chain)
        assert [record["number"] for record in records] == [1, 2, 3, 4, 5]
        assert [record["what"] for record in records] == ["learn", "verify", "forget", "verify", "save"]
        assert records[2]["certificates"] == {"ab": "cd"}
        assert [record["previous"] for record in records] == [BEGINNING, *(record["hash"] for record in records[:-1])]
        for record in records:
            assert abs(datetime.now(UTC) - datetime.fromisoformat(record["at"])) < timedelta(minutes=5)

    def test_an_outsider_can_compute_the_hashes(self, chain):
        for line in chain.splitlines():
            record = json.loads(line)
            assert rfc8785.dumps(record) == line
            assert hash_of(record | {"hash": ""}) == record["hash"]

    def test_its_head_is_the_last_record(self, chain, lines):
        assert head_of(b"") == Head(0, "0" * 64)
        for number in PLACES:
            assert head_of(b"".join(lines[:number])) == Head(number, json.loads(lines[number - 1])["hash"])

    def test_it_leads_through_every_head_that_it_had(self, chain, lines):
        heads = tuple(head_of(b"".join(lines[:number])) for number in range(6))
        assert first_fault(chain, heads) is None

    def test_adding_a_record_changes_nothing_before(self, chain):
        longer = add_record(chain, "verify", {})
        assert longer.startswith(chain)
        assert first_fault(longer, (head_of(chain),)) is None


class TestWhatIsFound:
    @pytest.mark.parametrize("number", [1, 2, 3, 4])
    def test_a_record_removed(self, lines, number):
        left = b"".join(lines[: number - 1] + lines[number:])
        assert first_fault(left) == f"record {number} is missing: record {number + 1} stands in its place"

    def test_the_last_record_removed_by_a_head_written_down_elsewhere(self, chain, lines):
        left = b"".join(lines[:-1])
        assert first_fault(left) is None
        expected = "the records after number 4 are missing: a certificate names record 5"
        assert first_fault(left, (head_of(chain),)) == expected

    @pytest.mark.parametrize("bit", range(8))
    def test_any_bit_of_any_byte(self, chain, lines, bit):
        numbers = [number for number, line in enumerate(lines, start=1) for _ in line]
        for place, number in enumerate(numbers):
            changed = bytearray(chain)
            changed[place] ^= 1 << bit
            last = place == len(chain) - 1
            expected = "record 5 is cut off" if last else f"record {number} was changed"
            found = first_fault(bytes(changed))
            assert found == expected or found == newer_record(bytes(changed)) is not None, place

    @pytest.mark.parametrize(("one", "other"), [*combinations(PLACES, 2)])
    def test_two_records_swapped(self, lines, one, other):
        swapped = list(lines)
        swapped[one - 1], swapped[other - 1] = swapped[other - 1], swapped[one - 1]
        expected = f"record {one} is missing: record {other} stands in its place"
        assert first_fault(b"".join(swapped)) == expected

    def test_a_chain_cut_off_anywhere(self, chain, lines):
        ends = {len(b"".join(lines[:number])): number for number in range(5)}
        for length in range(len(chain)):
            cut = chain[:length]
            if length in ends:
                expected = f"the records after number {ends[length]} are missing: a certificate names record 5"
                assert first_fault(cut) is None
            else:
                expected = f"record {sum(length > end for end in ends)} is cut off"
                assert first_fault(cut) == expected
            assert first_fault(cut, (head_of(chain),)) == expected

    @pytest.mark.parametrize("after", range(5))
    def test_a_record_put_in_whose_own_hash_is_right(self, lines, after):
        previous = head_of(b"".join(lines[:after])).hash
        longer = b"".join([*lines[:after], forged(after + 1, previous), *lines[after:]])
        assert first_fault(longer) == f"record {after + 2} is missing: record {after + 1} stands in its place"

    @pytest.mark.parametrize("number", PLACES)
    def test_a_record_exchanged_for_another_whose_own_hash_is_right(self, chain, lines, number):
        previous = head_of(b"".join(lines[: number - 1])).hash
        exchanged = b"".join([*lines[: number - 1], forged(number, previous), *lines[number:]])
        by_itself = f"record {number + 1} does not follow the one before it: one of the two was put there afterwards"
        by_its_head = "record 5 is not the one that a certificate names: the log was rewritten"
        assert first_fault(exchanged, (head_of(chain),)) == (by_its_head if number == 5 else by_itself)

    @pytest.mark.parametrize("number", PLACES)
    def test_a_record_that_names_another_one_before(self, lines, number):
        elsewhere = b"".join([*lines[: number - 1], forged(number, "ab" * 32)])
        assert first_fault(elsewhere).startswith(f"record {number} does not follow the one before it")

    @pytest.mark.parametrize("first", PLACES)
    def test_a_chain_made_anew_from_some_record_on_by_a_head_written_down_elsewhere(self, chain, lines, first):
        anew = made_anew(lines, first)
        assert first_fault(anew) is None
        for number in PLACES:
            pinned = head_of(b"".join(lines[:number]))
            expected = f"record {number} is not the one that a certificate names: the log was rewritten"
            assert first_fault(anew, (pinned,)) == (expected if number >= first else None)

    def test_the_first_head_that_it_does_not_lead_through_is_named(self, chain, lines):
        heads = tuple(head_of(b"".join(lines[:number])) for number in PLACES)
        assert first_fault(made_anew(lines, 3), heads).startswith("record 3 is not the one")

    @pytest.mark.parametrize(
        "line",
        [b"", b"null", b"[]", b'"text"', b"1", b"{}", b"\xff", b'{"hash":NaN}', b"[" * 5000, b'{"hash":"\\ud800"}'],
    )
    def test_a_line_that_is_no_record(self, chain, line):
        assert first_fault(line + b"\n" + chain) == "record 1 was changed"
        assert first_fault(chain + line + b"\n") == "record 6 was changed"

    @pytest.mark.parametrize("left_out", ["number", "previous", "at", "what", "hash"])
    def test_a_record_without_one_of_its_fields(self, left_out):
        record = json.loads(forged(1, BEGINNING))
        del record[left_out]
        if left_out != "hash":
            del record["hash"]
            record["hash"] = hash_of(record)
        assert first_fault(rfc8785.dumps(record) + b"\n") == "record 1 was changed"

    def test_the_same_record_written_in_another_way(self, lines):
        for written in (lines[0].replace(b":", b": ", 1), lines[0].replace(b"\n", b"\r\n"), b" " + lines[0]):
            assert first_fault(written) == "record 1 was changed"


class TestFormats:
    def written(self, number: int = 1, previous: str = BEGINNING, **more) -> bytes:
        """Return a record of format 2 that is written in another way than ours: nothing but its bytes is hashed."""
        known = {"format": 2, "number": number, "previous": previous, "at": "2026-01-01", "what": "learn", **more}
        unsealed = (json.dumps(known)[:-1] + ', "hash":""}').encode()
        return unsealed.replace(b'"hash":""', b'"hash":"%s"' % digest_of(unsealed).encode()) + b"\n"

    def test_records_of_0_1_name_none_and_are_followed_by_ours(self):
        old = forged(1, BEGINNING, version=1)
        assert "format" not in json.loads(old)
        longer = add_record(old, "verify", {})
        assert first_fault(longer) is None
        assert [record.get("format") for record in records_of(longer)] == [None, 2]

    @pytest.mark.parametrize("more", [1, -0.5, "é", None, True, [1, [2]], {"deep": {"er": 2**70}}], ids=str)
    def test_a_field_that_is_not_known_here_is_covered_and_it_is_said_that_there_is_one(self, more):
        chain = self.written(colour=more)
        assert (first_fault(chain), says_more_than_known(chain)) == (None, True)
        assert not says_more_than_known(self.written(version=1))
        for place in range(len(chain)):
            changed = bytearray(chain)
            changed[place] ^= 1
            assert first_fault(bytes(changed)) is not None, chain[:place]

    def test_what_our_records_say_is_known(self):
        assert not says_more_than_known(chain_of(*FACTS, ("learn", {"public_key": "ab", "readmitted": 1})))

    @pytest.mark.parametrize("number", [3, 2**40])
    def test_a_newer_format_is_told_as_such(self, number):
        found = first_fault(self.written(format=number))
        assert found == newer_record(self.written(format=number))
        assert found.startswith(f"record 1 has the format {number} and this version of erasable reads up to 2: a later")

    @pytest.mark.parametrize("number", [0, -1, True, "2", 2.0, None, [2]])
    def test_a_format_that_never_was_is_a_change(self, number):
        assert first_fault(self.written(format=number)) == "record 1 was changed"

    @pytest.mark.parametrize("more", ['"number": 1, ', '"a": NaN, ', '"a": 1e999, ', '"a": "\\ud800", '])
    def test_what_two_readers_may_read_differently_is_a_change_though_its_hash_is_right(self, more):
        unsealed = self.written().replace(b"{", b"{" + more.encode(), 1)
        unsealed = re.sub(rb'"hash":"\w+"', b'"hash":""', unsealed).rstrip(b"\n")
        line = unsealed.replace(b'"hash":""', b'"hash":"%s"' % digest_of(unsealed).encode()) + b"\n"
        assert first_fault(line) == "record 1 was changed"

    def test_the_end_of_a_chain_that_is_no_record_is_damage(self):
        for line in (b"null\n", b"{}\n", b"\xff\n", b"[" * 5000, b'{"a":%s}\n' % (b"9" * 5000)):
            for read in (head_of, records_of, says_more_than_known):
                with pytest.raises(WorkspaceDamaged, match="restore the workspace"):
                    read(line)


what = st.sampled_from(["learn", "forget", "verify", "save"])
names = st.text(min_size=1).filter(lambda name: name not in {*audit_chain.RECORD_FIELDS, *audit_chain.FACTS})
facts = st.dictionaries(names, st.none() | st.booleans() | st.integers(0, 2**60) | st.text(), max_size=3)
longer_chains = st.lists(st.tuples(what, facts), min_size=1, max_size=20).map(lambda parts: chain_of(*parts))


class TestAnyChain:
    @given(longer_chains)
    def test_has_no_fault_and_reads_as_it_was_written(self, chain):
        assert first_fault(chain, (head_of(chain),)) is None
        assert len(records_of(chain)) == head_of(chain).number

    @given(longer_chains, st.data())
    def test_shows_a_change_of_any_one_byte(self, chain, data):
        place, by = data.draw(st.integers(0, len(chain) - 1)), data.draw(st.integers(1, 255))
        changed = bytearray(chain)
        changed[place] ^= by
        number = chain[:place].count(b"\n") + 1
        expected = (f"record {number} was changed", f"record {number} is cut off", newer_record(bytes(changed)))
        found = first_fault(bytes(changed))
        assert found is not None
        assert found in expected

    @given(longer_chains, st.data())
    def test_shows_that_bytes_are_missing(self, chain, data):
        start = data.draw(st.integers(0, len(chain) - 1))
        end = data.draw(st.integers(start + 1, len(chain)))
        assert first_fault(chain[:start] + chain[end:], (head_of(chain),)) is not None

    @given(longer_chains, st.data())
    def test_shows_records_in_another_order_or_taken_twice(self, chain, data):
        lines = chain.splitlines(keepends=True)
        chosen = data.draw(st.lists(st.sampled_from(lines), max_size=len(lines) + 1).filter(lambda some: some != lines))
        assert first_fault(b"".join(chosen), (head_of(chain),)) is not None

    @given(longer_chains, longer_chains)
    def test_shows_that_another_was_put_in_its_place(self, chain, other):
        if not other.startswith(chain):
            assert first_fault(other, (head_of(chain),)) is not None
