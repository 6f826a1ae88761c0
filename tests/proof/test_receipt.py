"""Receipts: each opens its own certificate, and no other; nothing that was changed opens any."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.errors import NewerDocument, Refused
from erasable.proof.certificate import CertifiedScan, new_key
from erasable.proof.issuing import Outcome, Receipt, issue_certificates, read_receipt
from erasable.proof.log import Head
from erasable.requests import Request
from erasable.workspace import Stamp
from kit.asking import erased, sought
from kit.handmade import handmade

OF_0_1 = {"kind", "request_id", "user_id", "items", "salt", "about"}
ASKED = (Request("ann"), Request("bob", ("b", "a")), Request("cat", ("a",)))


@pytest.fixture(scope="module")
def done():
    return erased(*ASKED)


@pytest.fixture(scope="module")
def certificates(done):
    scan = CertifiedScan(files="< 10", size="< 1 MB", kinds=(), searched=())
    scanned = "2026-01-01T00:00:03+00:00"
    outcome = Outcome(handmade().state, {}, Stamp(2, "ab" * 32), Head(1, "cd" * 32), scan, scanned, None)
    return issue_certificates(done, outcome, new_key())


@pytest.fixture(scope="module")
def receipts(done):
    return [Receipt.of(one) for one in done.people]


def test_a_receipt_opens_its_own_certificate_and_no_other(receipts, certificates):
    opened = [[receipt.opens(certificate) for certificate in certificates] for receipt in receipts]
    assert opened == [[True, False, False], [False, True, False], [False, False, True]]


def test_the_same_request_made_twice_has_two_receipts(certificates):
    assert not Receipt.of(sought(Request("ann"))).opens(certificates[0])


def test_the_order_of_the_items_does_not_matter(receipts, certificates):
    assert receipts[1].items == ("b", "a")
    assert receipts[1].model_copy(update={"items": ("a", "b")}).opens(certificates[1])


@pytest.mark.parametrize("whose", [0, 1, 2])
@pytest.mark.parametrize(
    "change",
    [
        {"user_id": "dan"},
        {"user_id": "ann "},
        {"items": ("a", "b", "c")},
        {"items": ("c",)},
        {"items": ()},
        {"salt": "00" * 32},
        {"request_id": "00" * 16},
    ],
)
def test_a_changed_receipt_opens_nothing(receipts, certificates, whose, change):
    changed = receipts[whose].model_copy(update=change)
    assert not any(changed.opens(certificate) for certificate in certificates)


def test_some_items_are_not_everything(receipts, certificates):
    assert not receipts[1].model_copy(update={"items": None}).opens(certificates[1])
    assert not receipts[0].model_copy(update={"items": ("a",)}).opens(certificates[0])


def test_one_bit_of_the_salt_counts(receipts, certificates):
    salt = bytes.fromhex(receipts[0].salt)
    for place in range(len(salt)):
        changed = bytearray(salt)
        changed[place] ^= 1 << place % 8
        assert not receipts[0].model_copy(update={"salt": changed.hex()}).opens(certificates[0])


@given(st.text(min_size=1), st.none() | st.lists(st.text(min_size=1), min_size=1, max_size=3).map(tuple))
def test_what_is_written_in_full_or_in_short_is_read_again(user, items):
    receipt = Receipt.of(sought(Request(user, items)))
    assert read_receipt(receipt.encoded()) == receipt
    assert read_receipt(receipt.in_short().encode()) == receipt
    assert "\n" not in receipt.in_short()


class TestTheReference:
    @pytest.fixture
    def accepted(self):
        return sought(Request("ann"), "case 4711")

    @pytest.fixture
    def certificate(self, accepted):
        asked = erased().model_copy(update={"people": (accepted,)})
        outcome = Outcome(handmade().state, {}, Stamp(2, "ab" * 32), Head(1, "cd" * 32), None, "", None)
        return issue_certificates(asked, outcome, new_key())[0]

    def test_stands_in_the_receipt_which_opens_the_certificate(self, accepted, certificate):
        receipt = Receipt.of(accepted)
        assert json.loads(receipt.encoded())["reference"] == "case 4711"
        assert receipt.opens(certificate)

    def test_another_one_opens_nothing(self, accepted, certificate):
        assert not Receipt.of(accepted).model_copy(update={"reference": "case 4712"}).opens(certificate)

    def test_one_that_was_made_up_opens_nothing(self, certificates, receipts):
        assert not receipts[0].model_copy(update={"reference": "case 4711"}).opens(certificates[0])

    def test_whoever_has_forgotten_it_can_still_show_whom_the_certificate_is_about(self, accepted, certificate):
        assert Receipt.of(accepted).model_copy(update={"reference": None}).opens(certificate)


class TestFormats:
    def test_a_receipt_says_its_format(self, receipts):
        assert json.loads(receipts[0].encoded())["format"] == 2

    def test_one_of_0_1_names_none_and_is_read(self, receipts, certificates):
        old = {name: value for name, value in json.loads(receipts[0].encoded()).items() if name in OF_0_1}
        found = read_receipt(json.dumps(old).encode())
        assert found.format == 1
        assert found.opens(certificates[0])

    @pytest.mark.parametrize("more", [1, -0.5, "é", None, [1, [2]], {"deep": {"er": True}}], ids=str)
    def test_one_of_a_newer_version_is_read_with_all_that_it_says(self, receipts, certificates, more):
        newer = json.loads(receipts[0].encoded()) | {"more": more}
        found = read_receipt(json.dumps(newer).encode())
        assert found.opens(certificates[0])
        assert json.loads(found.encoded()) == newer
        assert found.newer
        assert not receipts[0].newer

    def test_a_newer_format_is_told_as_such(self, receipts):
        for changes in ({"format": 3}, {"format": 3, "salt": None}):
            content = json.dumps(json.loads(receipts[0].encoded()) | changes).encode()
            with pytest.raises(NewerDocument, match=r"it has the format 3 .* a later version wrote it"):
                read_receipt(content)

    def test_what_two_readers_may_read_differently_is_refused(self, receipts):
        content = receipts[0].encoded()
        twice = content.replace(b'"user_id":', b'"user_id":"somebody else","user_id":')
        for changed in (twice, b"\xef\xbb\xbf" + content, content.decode().encode("utf-16")):
            assert changed != content
            with pytest.raises(Refused, match="it is not a receipt"):
                read_receipt(changed)


def test_it_says_what_it_is_for(receipts):
    facts = json.loads(receipts[1].encoded())
    assert facts["kind"] == "receipt of erasure"
    assert "keeps no copy" in facts["about"]
    assert (facts["user_id"], facts["items"]) == ("bob", ["b", "a"])
    assert {*json.loads(receipts[1].in_short())} == {"format", "request_id", "user_id", "items", "salt"}


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "certificate of erasure"},
        {"salt": "no hexadecimal"},
        {"salt": "ab" * 31},
        {"salt": "ab" * 100},
        {"salt": "AB" * 32},
        {"format": 0},
        {"format": True},
        {"format": "2"},
        {"user_id": None},
        {"items": "a"},
    ],
)
def test_what_is_no_receipt_is_refused_with_the_remedy(receipts, change):
    content = json.dumps(json.loads(receipts[0].encoded()) | change).encode()
    with pytest.raises(Refused, match="give a file that forget made"):
        read_receipt(content)


@pytest.mark.parametrize("content", [b"", b"text", b"[]", b"\xff", b"{}"])
def test_what_is_not_even_a_paper_is_refused(content):
    with pytest.raises(Refused, match="it is not a receipt of erasure"):
        read_receipt(content)


def test_a_certificate_is_no_receipt(certificates):
    with pytest.raises(Refused):
        read_receipt(certificates[0].content)
