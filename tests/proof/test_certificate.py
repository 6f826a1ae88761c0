"""The certificate: anyone can check it, nobody can change it, and it says nothing about a person."""

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from erasable import fingerprint
from erasable.chain import Config, State, environment_for
from erasable.errors import NewerDocument, Refused
from erasable.operations import DiskStorage, Inputs, forget, learn
from erasable.proof import data_digest, salted_digest
from erasable.proof.certificate import Certificate, Statement, new_key, public_key_of, read_certificate, sign
from erasable.proof.checking import certificate_fault, chain_fault, held_fault, records_about
from erasable.proof.issuing import Receipt
from erasable.requests import Request
from kit.choosing import cases, some
from kit.plain_digests import plain_digests

PERSON, ITEM = "someone-with-a-long-unmistakable-id", "an-unmistakable-item"
OTHERS = ("bob-the-second-user", "cat-the-third-user", "dan-the-fourth-user")
Place = tuple[Any, ...]


def shop() -> pa.Table:
    users = [PERSON, PERSON, *(user for user in OTHERS for _ in range(2))]
    items = [ITEM, "b", "a", "b", "a", "c", "b", "c"]
    return pa.table({"user_id": users, "item_id": items, "rating": [5, 4, 3, 2, 1, 5, 4, 3]})


def loaded(storage: DiskStorage) -> tuple[State, str, list[str]]:
    """Return what is held, the salt of the version, and the fingerprints of all arrays."""
    with storage.reading() as session:
        state = session.state()
        state = replace(state, dataset=state.dataset.recounted())
        arrays = [fingerprint.of_arrays(session.checkpoints.get(link.fingerprint).arrays()) for link in state.chain]
        return state, session.stamp.salt, arrays


@dataclass(frozen=True)
class Issued:
    """A certificate in the folder of its workspace, and what was there before the erasure."""

    folder: Path
    content: bytes
    receipt: Receipt
    before: tuple[State, str, list[str]]
    after: tuple[State, str, list[str]]

    @property
    def facts(self) -> dict[str, Any]:
        return json.loads(self.content)

    @property
    def certificate(self) -> Certificate:
        return read_certificate(self.content)

    def key(self) -> bytes:
        return (self.folder / "signing-key.txt").read_bytes()


@pytest.fixture(scope="module")
def issued(tmp_path_factory) -> Issued:
    """The certificate of someone who was erased from a small shop, through the front door."""
    folder = tmp_path_factory.mktemp("certificate") / "shop"
    learn(shop(), folder, Config(model="nmf", groups=2, epochs=2, holdout=0.5, min_interactions=1))
    storage = DiskStorage(folder)
    before = loaded(storage)
    done = forget(storage, [Request(PERSON)])
    (path,) = done.certificates
    return Issued(folder, Path(path).read_bytes(), done.receipts[0], before, loaded(storage))


def leaves(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of everything in a JSON value that holds nothing else."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inside = list(inside)
    for name, part in inside:
        yield from leaves(part, (*place, name))
    if not inside:
        yield place


def other_than(value: Any) -> Any:
    """Return something else of the same kind, and of the same form where it has one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str) and re.fullmatch("[0-9a-f]{32,}", value):
        return ("0" if value[0] != "0" else "1") + value[1:]
    return {"nothing": None, "text": f"{value}x", "empty": ["x"]}[
        "text" if isinstance(value, str) else "nothing" if value else "empty"
    ]


def changed_at(facts: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return the same facts but for one."""
    changed = copy.deepcopy(facts)
    inner = changed
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = other_than(inner[place[-1]])
    return changed


def signed_by(key: bytes, facts: dict[str, Any]) -> bytes:
    """Return the facts as a certificate that is signed, made without the library's own certificate."""
    unsigned = rfc8785.dumps(facts | {"public_key": public_key_of(key), "signature": ""})
    return unsigned.replace(b'"signature":""', f'"signature":"{sign(key, unsigned)}"'.encode())


def is_refused(content: bytes) -> bool:
    try:
        read_certificate(content)
    except Refused:
        return True
    return False


class TestAnyoneCanCheckIt:
    def test_with_the_signature_and_the_bytes_of_the_file_alone(self, issued):
        facts = json.loads(issued.content)
        assert rfc8785.dumps(facts) == issued.content
        signature = facts["signature"]
        signed = issued.content.replace(signature.encode(), b"")
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(facts["public_key"]))
        public.verify(bytes.fromhex(signature), signed)
        with pytest.raises(InvalidSignature):
            public.verify(bytes.fromhex(signature), signed.replace(b'"version":2', b'"version":9'))

    def test_the_key_is_that_of_the_workspace_which_its_first_record_names(self, issued):
        (audit,) = issued.folder.glob("audit-*.jsonl")
        assert issued.facts["public_key"] == public_key_of(issued.key())
        assert json.loads(audit.read_bytes().splitlines()[0])["public_key"] == issued.facts["public_key"]

    def test_it_is_known_by_the_bytes_that_were_read(self, issued):
        assert issued.certificate.content == issued.content
        assert issued.certificate.digest() == fingerprint.of_bytes(issued.content)

    def test_one_signed_by_an_outsider_without_the_library_reads_as_well(self, issued):
        assert read_certificate(signed_by(issued.key(), issued.facts)) == issued.certificate


class TestNobodyCanChangeIt:
    @pytest.mark.parametrize("mask", some([0x20, 0x01], 1))
    def test_one_bit_of_any_byte_is_noticed(self, issued, mask):
        # 0x20 makes a capital of a small letter, which most readers of hexadecimal do not mind.
        for place in range(len(issued.content)):
            changed = bytearray(issued.content)
            changed[place] ^= mask
            assert is_refused(bytes(changed)), issued.content[max(0, place - 20) : place + 1]

    def test_a_byte_more_or_less_is_noticed(self, issued):
        for place in range(0, len(issued.content), 7):
            assert is_refused(issued.content[:place] + issued.content[place + 1 :])
            assert is_refused(issued.content[:place] + b" " + issued.content[place:])

    def test_every_field_that_is_changed_and_not_signed_again_is_noticed(self, issued):
        places = list(leaves(issued.facts))
        assert {place[0] for place in places} == {*Statement.model_fields}
        for place in places:
            assert is_refused(rfc8785.dumps(changed_at(issued.facts, place))), place

    def test_every_field_that_is_changed_and_signed_with_another_key_is_noticed(self, issued):
        other, original = new_key(), issued.facts["public_key"]
        with DiskStorage(issued.folder).reading() as session:
            held = session.documents(), session.issued(), session.stamp
            for place in leaves(issued.facts):
                content = signed_by(other, changed_at(issued.facts, place))
                if not is_refused(content):
                    found = certificate_fault(read_certificate(content), *held)
                    assert found == "the certificate was signed with another key: it is of another workspace", place
                # To keep the key that everyone knows helps nobody who does not have its other half.
                assert is_refused(rfc8785.dumps(json.loads(content) | {"public_key": original})), place

    def test_every_field_that_is_changed_by_whoever_holds_the_key_is_noticed_in_the_workspace(self, issued):
        changeable = 0
        with DiskStorage(issued.folder).reading() as session:
            held = session.documents(), session.issued(), session.stamp
            for place in leaves(issued.facts):
                content = signed_by(issued.key(), changed_at(issued.facts, place))
                if place[0] in ("signature", "public_key") or is_refused(content):
                    continue
                changeable += 1
                found = certificate_fault(read_certificate(content), *held)
                assert found is not None, place
                unknown = {("version",): "was restored", ("request_id",): "removed there"}
                assert unknown.get(place, "has another certificate for the same request") in found, place
        assert changeable > 50

    def test_what_it_says_about_data_and_settings_is_compared_with_what_is_held(self, issued):
        covered = set()
        with DiskStorage(issued.folder).reading() as session:
            state, stamp, environment = session.state(), session.stamp, session.state().environment
            assert held_fault(issued.certificate, state, stamp, environment) is None
            for place in leaves(issued.facts):
                content = signed_by(issued.key(), changed_at(issued.facts, place))
                if not is_refused(content) and held_fault(read_certificate(content), state, stamp, environment):
                    covered.add(place)
        compared = {"settings", "environment", "rating_scale", "revision"}
        named = {place for place in leaves(issued.facts) if place[0] in compared}
        assert covered == {("data", "after"), ("catalogue", "declared"), ("catalogue", "digest"), *named}

    def test_what_the_log_says_about_the_chain_is_compared_with_what_is_held(self, issued):
        with DiskStorage(issued.folder).reading() as session:
            record = records_about([issued.facts["request_id"]], session.documents())[issued.facts["request_id"]]

            def fault(changed):
                held = session.state(), session.checkpoints, session.stamp
                return chain_fault(issued.certificate, changed, *held)

            assert fault(record) is None
            for place in leaves(record["steps"]):
                if place[-1] != "kept":
                    changed = copy.deepcopy(record)
                    step = changed["steps"][place[0]]
                    step[place[1]] = other_than(step[place[1]])
                    assert fault(changed) == f"stage {place[0] + 1} is not the one that its record names"
            assert fault(record | {"steps": record["steps"][:1]}) == "the chain has another length than certified"

    def test_a_field_left_out_is_refused_even_if_it_is_signed(self, issued):
        for name in issued.facts:
            if name not in ("signature", "public_key", "kind", "format", "revision"):  # revision may be missing
                facts = {other: value for other, value in issued.facts.items() if other != name}
                with pytest.raises(Refused, match=rf"its field {name} is not as certificates have it"):
                    read_certificate(signed_by(issued.key(), facts))

    def test_the_same_content_written_in_another_way_is_refused(self, issued):
        facts = issued.facts
        ways = [
            json.dumps(facts, indent=2),
            json.dumps(facts),
            json.dumps(dict(reversed(facts.items())), separators=(",", ":"), ensure_ascii=False),
            issued.content.decode() + "\n",
            issued.content.decode().replace('"version":2}', '"version":2.0}'),
            issued.content.decode().replace('"version":2}', '"version":"2"}'),
            issued.content.decode().replace('"format":3', '"format":3,"format":3'),
        ]
        for written in ways:
            assert written.encode() != issued.content
            with pytest.raises(Refused, match=r"its signature does not fit|it is not JSON|more than one way"):
                read_certificate(written.encode())
        with pytest.raises(Refused):
            read_certificate(b"\xef\xbb\xbf" + issued.content)

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-Infinity"])
    def test_what_is_no_number_is_refused_too(self, issued, number):
        written = re.sub(r'"threads":[^,]+', f'"threads":{number}', issued.content.decode())
        in_settings = re.sub(r'"learning_rate":[^,]+', f'"learning_rate":{number}', issued.content.decode())
        for content in (written, in_settings):
            assert number in content
            with pytest.raises(Refused):
                read_certificate(content.encode())

    def test_it_can_not_be_changed_in_place(self, issued):
        with pytest.raises(ValueError, match="frozen"):
            issued.certificate.version = 3


class TestWhatIsNoCertificate:
    @pytest.mark.parametrize("content", [b"", b"text", b"{", b"\xff\xfe", b"[" * 5000])
    def test_no_json(self, content):
        with pytest.raises(Refused, match=r"it is not JSON: give the \.json file that forget made"):
            read_certificate(content)

    @pytest.mark.parametrize("content", [b"[]", b"1", b"null", b"{}", b'{"kind":"receipt of erasure"}'])
    def test_something_else(self, content):
        with pytest.raises(Refused, match=r"it is not a certificate of erasure: give the \.json file that forget made"):
            read_certificate(content)

    def test_a_receipt(self, issued):
        with pytest.raises(Refused, match="it is not a certificate of erasure"):
            read_certificate(issued.receipt.encoded())

    @pytest.mark.parametrize("number", [1, 0, -3, True, "3", None, 3.5])
    def test_one_of_a_format_that_never_was(self, issued, number):
        with pytest.raises(Refused, match=r"it has the format .*, which was never released"):
            read_certificate(signed_by(issued.key(), issued.facts | {"format": number}))

    def test_one_without_a_signature(self, issued):
        for signature in ("", "00" * 64, issued.facts["signature"].upper(), issued.facts["signature"] + " "):
            with pytest.raises(Refused, match="its signature does not fit"):
                read_certificate(rfc8785.dumps(issued.facts | {"signature": signature}))


class TestWhatItSays:
    def test_what_was_done_and_what_it_rests_on(self, issued):
        facts, (state, salt, _) = issued.facts, issued.after
        assert (facts["kind"], facts["version"], facts["scope"]) == (
            "certificate of erasure",
            2,
            "all data of one person",
        )
        assert (facts["policy"], facts["filter"], facts["rating_scale"]) == ("fixed", "frozen", [1, 5])
        assert facts["settings"].items() <= state.dataset.config.flat().items()
        assert facts["environment"] == environment_for(state.dataset.config)
        assert facts["catalogue"] == {
            "declared": False,
            "items": "< 10",
            "origin": "those that people have: what only the erased had is gone with them",
            "digest": salted_digest(salt, state.dataset.items.digest()),
        }
        assert facts["utility"]["users"] == "< 10"
        assert facts["audit"]["number"] == 1

    def test_data_before_and_after_under_the_salt_of_their_version(self, issued):
        (before, old_salt, _), (after, salt, _) = issued.before, issued.after
        assert issued.facts["data"] == {
            "before": data_digest(old_salt, before.dataset),
            "after": data_digest(salt, after.dataset),
        }

    def test_the_days_in_their_order(self, issued):
        days = [date.fromisoformat(issued.facts["days"][step]) for step in ("asked", "erased", "searched", "issued")]
        assert days == sorted(days)

    def test_a_declared_catalogue_and_independent_groups_are_named(self, tmp_path):
        (tmp_path / "items").write_text(f"a\nb\nc\n{ITEM}\n")
        config = Config(model="nmf", grouping="independent", groups=2, epochs=2, rating_scale=(0, 5))
        learn(shop(), tmp_path / "shop", config, Inputs(catalogue=tmp_path / "items"))
        (path,) = forget(DiskStorage(tmp_path / "shop"), [Request(PERSON)]).certificates
        facts = json.loads(Path(path).read_bytes())
        assert facts["policy"] == "independent"
        assert facts["catalogue"]["declared"] is True
        assert facts["filter"] == "none"
        assert facts["utility"] is None
        assert facts["settings"]["rating_scale"] == [0, 5]


class TestNothingPersonal:
    def test_neither_the_person_nor_the_items_nor_others_are_named(self, issued):
        pages = [path.read_text() for path in (issued.folder / "certificates").iterdir()]
        assert len(pages) == 2
        for text in pages:
            for name in (PERSON, ITEM, *OTHERS):
                assert name not in text
        for item in "abc":
            assert f'"{item}"' not in issued.content.decode()

    def test_nothing_in_it_is_a_digest_that_a_guess_could_be_tested_against(self, issued):
        text = issued.content.decode()
        for state, _, arrays in (issued.before, issued.after):
            plain = [*(link.fingerprint for link in state.chain), *arrays, *plain_digests(state.dataset)]
            assert not [digest for digest in plain if digest in text]
        for guess in (PERSON.encode(), rfc8785.dumps({"items": None, "user_id": PERSON})):
            assert fingerprint.of_bytes(guess) not in text

    def test_no_salt_and_no_private_key_is_in_it(self, issued):
        text = issued.content.decode()
        for secret in (issued.before[1], issued.after[1], issued.receipt.salt, issued.key().decode()):
            assert len(secret) == 64
            assert secret not in text

    def test_the_salt_in_force_lies_in_the_manifest_and_goes_with_the_version(self, tmp_path):
        learn(shop(), tmp_path / "shop", Config(model="nmf", groups=2, epochs=2))
        storage, gone = DiskStorage(tmp_path / "shop"), set()
        for user in (PERSON, OTHERS[0]):
            gone.add(loaded(storage)[1])
            (path,) = forget(storage, [Request(user)]).certificates
            state, salt, arrays = loaded(storage)
            with storage.reading() as session:
                chain = records_about([Path(path).stem], session.documents())[Path(path).stem]["steps"]
            assert salt not in gone
            assert [stage["digest"] for stage in chain] == [
                salted_digest(salt, link.fingerprint) for link in state.chain
            ]
            assert [stage["result"] for stage in chain] == [salted_digest(salt, digest) for digest in arrays]
            everything = b"".join(file.read_bytes() for file in storage.path.rglob("*") if file.is_file())
            assert salt.encode() in everything
            for old in gone:
                assert old.encode() not in everything
                assert bytes.fromhex(old) not in everything


class TestOfANewerVersion:
    def more(self, issued, place: Place) -> dict[str, Any]:
        """Return what the certificate says with one field more at a place."""
        facts = copy.deepcopy(issued.facts)
        inner = facts
        for step in place:
            inner = inner[step]
        inner["more"] = {"nested": [1, "é", 2**60], "signature": "another"}
        return facts

    def written_by(self, key: bytes, facts: dict[str, Any]) -> bytes:
        """Return a certificate that is written in another way than ours: nothing but its bytes is signed."""
        text = json.dumps(facts | {"public_key": public_key_of(key), "signature": ""}, separators=(", ", ":"))
        unsigned = text.encode()
        return unsigned.replace(b'"signature":""', f'"signature":"{sign(key, unsigned)}"'.encode())

    @pytest.mark.parametrize(
        "place",
        cases({".".join(place): place for place in ((), ("data",), ("days",), ("scan",), ("audit",))}, ["", "scan"]),
    )
    def test_a_field_that_is_not_known_here_is_covered_and_it_is_said_that_there_is_one(self, issued, place):
        content = self.written_by(issued.key(), self.more(issued, place))
        found = read_certificate(content)
        assert found.newer
        assert not issued.certificate.newer
        assert found.digest() == fingerprint.of_bytes(content)
        assert found.model_copy(update={"content": b"", "newer": False}) == issued.certificate.model_copy(
            update={"content": b""}
        )
        for place in range(len(content)):
            changed = bytearray(content)
            changed[place] ^= 1
            assert is_refused(bytes(changed)), content[max(0, place - 20) : place + 1]

    @pytest.mark.parametrize("more", [1, -0.5, "é", None, [1, [2]], {"deep": {"er": 2**70}}], ids=str)
    def test_it_may_be_of_any_type(self, issued, more):
        assert read_certificate(self.written_by(issued.key(), issued.facts | {"more": more})).newer

    @pytest.mark.parametrize("without", ["", "data", "audit", "subject"])
    def test_a_newer_format_is_told_as_such_and_not_as_a_change(self, issued, without):
        facts = {name: value for name, value in issued.facts.items() if name != without} | {"format": 4}
        with pytest.raises(NewerDocument, match=r"^it has the format 4 .* reads up to 3: a later version wrote it"):
            read_certificate(self.written_by(issued.key(), facts))

    @pytest.mark.parametrize("without", ["", "signature", "public_key"])
    def test_a_newer_format_that_may_be_signed_in_another_way_is_told_too(self, issued, without):
        facts = {name: value for name, value in issued.facts.items() if name != without} | {"format": 4}
        with pytest.raises(Refused, match=r"does not fit: .*; if not, it has the format 4 .* a later version wrote it"):
            read_certificate(json.dumps(facts).encode())


class TestOfFormatTwo:
    @pytest.fixture
    def old(self) -> bytes:
        """A certificate that 0.1 wrote."""
        folder = Path(__file__).parents[1] / "fixtures" / "workspaces" / "0.1" / "nmf-chain" / "workspace"
        return next(folder.glob("certificates/*.json")).read_bytes()

    def resigned(self, facts: dict[str, Any], key: bytes) -> bytes:
        unsigned = {name: value for name, value in facts.items() if name != "signature"}
        unsigned["public_key"] = public_key_of(key)
        return rfc8785.dumps(unsigned | {"signature": sign(key, rfc8785.dumps(unsigned))})

    def test_it_is_read_and_keeps_its_chain(self, old):
        found = read_certificate(old)
        facts = json.loads(old)
        assert (found.format, found.newer, found.reference) == (2, False, None)
        assert [step.kept for step in found.chain] == [stage["kept"] for stage in facts["chain"]]
        assert found.digest() == fingerprint.of_bytes(old)

    @pytest.mark.full
    @pytest.mark.parametrize("mask", some([0x20, 0x01], 1))
    def test_one_bit_of_any_byte_is_noticed(self, old, mask):
        for place in range(len(old)):
            changed = bytearray(old)
            changed[place] ^= mask
            assert is_refused(bytes(changed)), old[max(0, place - 20) : place + 1]

    @pytest.mark.parametrize("more", [{}, {"more": [1]}, {"more": {"deep": "é"}}, {"newer": False}], ids=str)
    def test_a_field_more_that_is_signed_changes_nothing_and_it_is_said_that_there_is_one(self, old, more):
        found = read_certificate(self.resigned(json.loads(old) | more, new_key()))
        assert found.chain == read_certificate(old).chain
        assert found.newer == bool(more)

    @pytest.mark.parametrize("depth", [100, 330, 900, 5000])
    def test_what_is_nested_too_deeply_is_refused_in_words(self, old, depth):
        with pytest.raises(Refused):
            read_certificate(old.replace(b"{", b'{"a":' + b"[" * depth + b"]" * depth + b",", 1))

    def test_it_must_be_canonical(self, old):
        with pytest.raises(Refused, match="canonical JSON"):
            read_certificate(json.dumps(json.loads(old)).encode())


class TestTheReceipt:
    def test_it_opens_the_certificate(self, issued):
        assert issued.receipt.opens(issued.certificate)
        assert (issued.receipt.user_id, issued.receipt.items) == (PERSON, None)

    def test_neither_its_salt_nor_the_person_lies_anywhere_in_the_workspace(self, issued):
        salt = issued.receipt.salt
        forms = (salt.encode(), salt.upper().encode(), bytes.fromhex(salt), PERSON.encode(), PERSON.encode("utf-16-le"))
        files = [path for path in issued.folder.rglob("*") if path.is_file()]
        assert len(files) > 10
        for path in files:
            assert not [form for form in forms if form in path.read_bytes()], path
            assert not [form for form in (salt, PERSON) if form in path.name]
