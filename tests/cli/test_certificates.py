"""`erasable verify --certificate` and `--receipt`: what is replayed, and every certificate that is not this one."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from erasable.proof import Statement, new_key, records_of
from erasable.proof.certificate import canonical
from erasable.workspace import Workspace
from erasable.workspace.manifest import decode_manifest, encode_manifest
from kit.copies import copy_of


class Issued(NamedTuple):
    """A workspace that has forgotten someone of its second group, and what was issued for them."""

    shop: Path
    certificate: Path
    receipt: Path


def forget_one(run, shop: Path, user: str, receipts: Path) -> Issued:
    found = run("forget", shop, "--user", user, "--receipts", receipts, "--json").json
    certificate = Path(found["certificates"][0])
    return Issued(shop, certificate, receipts / certificate.name)


def users_at(folder: Path, position: int) -> list[str]:
    with Workspace.reading(folder) as workspace:
        return workspace.state().dataset.groups[position].users.texts()


@pytest.fixture
def issued(run, shop, tmp_path) -> Issued:
    return forget_one(run, shop, users_at(shop, 1)[0], tmp_path / "receipts")


def refused(run, issued: Issued, *options: object) -> str:
    """Return why a verification ends with "different" before anything is replayed or recorded."""
    result = run("verify", issued.shop, *options, "--json")
    assert (result.code, result.err) == (1, "")
    facts = {name: result.json[name] for name in ("identical", "compared", "stages_replayed", "recorded")}
    assert facts == {"identical": False, "compared": 0, "stages_replayed": 0, "recorded": False}
    return result.json["reason"]


def wrong_use(run, issued: Issued, *options: object) -> str:
    """Return why there is no verdict."""
    result = run("verify", issued.shop, *options, "--json")
    assert (result.code, result.out) == (2, "")
    return result.err


def leaves(value: Any, *place: Any) -> Iterator[tuple[Any, ...]]:
    """Every place in a value that holds no more places."""
    if isinstance(value, dict) and value:
        for name in value:
            yield from leaves(value[name], *place, name)
    elif isinstance(value, list) and value:
        for number, part in enumerate(value):
            yield from leaves(part, *place, number)
    else:
        yield place


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value.replace(value[:1], "0" if value[:1] != "0" else "1", 1) or "0"
    if isinstance(value, int | float):
        return value + 1
    return "0" if value is None else [*value, "0"] if isinstance(value, list) else {"0": 0}


def changed_at(document: Any, place: tuple[Any, ...]) -> Any:
    copy = json.loads(json.dumps(document))
    inner = copy
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = other(inner[place[-1]])
    return copy


class TestReplay:
    def test_only_the_stages_that_the_erasure_trained_are_replayed(self, run, issued):
        result = run("verify", issued.shop, "--certificate", issued.certificate, "--json")
        assert (result.code, result.err) == (0, "")
        # The second and the third of three stages; an NMF checkpoint has ten arrays.
        assert {name: result.json[name] for name in ("identical", "compared", "stages_replayed", "recorded")} == {
            "identical": True,
            "compared": 20,
            "stages_replayed": 2,
            "recorded": True,
        }
        said = (
            "the certificate agrees; a replay of 2 of 3 steps, from the checkpoint before, on the data that is left "
            "gives the same bytes"
        )
        assert result.json["reason"] == said
        (audit,) = issued.shop.glob("audit-*")
        record = records_of(audit.read_bytes())[-1]
        assert {name: record[name] for name in ("what", "version", "identical", "compared", "stages")} == {
            "what": "verify",
            "version": 2,
            "identical": True,
            "compared": 20,
            "stages": 2,
        }

    def test_from_scratch_all_are(self, run, issued):
        result = run("verify", issued.shop, "--certificate", issued.certificate, "--from-scratch", "--json")
        assert (result.code, result.json["compared"], result.json["stages_replayed"]) == (0, 30, 3)
        assert (
            result.json["reason"]
            == "the certificate agrees; a replay from scratch on the data that is left gives the same bytes"
        )

    @pytest.mark.parametrize("position", [0, 2])
    def test_it_depends_on_where_the_person_stood(self, run, shop, tmp_path, position):
        issued = forget_one(run, shop, users_at(shop, position)[0], tmp_path / "receipts")
        result = run("verify", shop, "--certificate", issued.certificate, "--json")
        assert (result.code, result.json["stages_replayed"]) == (0, 3 - position)

    def test_it_is_recognised_wherever_it_lies(self, run, issued, tmp_path):
        copy = Path(shutil.copy(issued.certificate, tmp_path / "copy.json"))
        for place in (issued.certificate, copy):
            assert run("verify", issued.shop, "--certificate", place).code == 0

    def test_an_older_one_stays_valid_and_replays_its_own_stages(self, run, issued):
        user = users_at(issued.shop, 2)[0]
        run("forget", issued.shop, "--user", user)
        result = run("verify", issued.shop, "--certificate", issued.certificate, "--json")
        assert (result.code, result.json["stages_replayed"]) == (0, 2)

    def test_a_checkpoint_that_was_kept_and_is_another_now_is_found_without_replaying_it(
        self, run, issued, monkeypatch
    ):
        """The store's own hashes are right; the record of the current version names what each stage gave."""
        with Workspace.writing(issued.shop) as workspace:
            state, stamp, documents = workspace.state(), workspace.stamp, workspace.documents()
            first = workspace.checkpoints.get(state.chain[0].fingerprint)
            arrays = {name: array + 1 for name, array in first.arrays().items()}
            for link in state.chain[1:]:
                workspace.checkpoints.put(workspace.checkpoints.get(link.fingerprint))
            workspace.checkpoints.put(type(first).from_arrays(first.fingerprint, first.parent, arrays))
            workspace.commit(state, documents, stamp)
        said = refused(run, issued, "--certificate", issued.certificate)
        assert said == "stage 1 is not the one that its record names"


class TestAnotherCertificate:
    def test_every_field_that_was_changed_is_found(self, run, issued, tmp_path):
        document = json.loads(issued.certificate.read_bytes())
        assert canonical(document) == issued.certificate.read_bytes()
        places = list(leaves(document))
        assert {place[0] for place in places} == set(Statement.model_fields)
        changed = tmp_path / "changed.json"
        for place in places:
            changed.write_bytes(canonical(changed_at(document, place)))
            assert refused(run, issued, "--certificate", changed).startswith(f"{changed}: it"), place

    def test_every_field_that_was_taken_out_or_added_is_found(self, run, issued, tmp_path):
        document = json.loads(issued.certificate.read_bytes())
        changed = tmp_path / "changed.json"
        for name in document:
            changed.write_bytes(canonical({other: value for other, value in document.items() if other != name}))
            assert str(changed) in refused(run, issued, "--certificate", changed), name
        changed.write_bytes(canonical({**document, "note": "added"}))
        assert f"{changed}: its signature does not fit" in refused(run, issued, "--certificate", changed)

    def test_the_same_words_written_otherwise_are_found(self, run, issued, tmp_path):
        changed = tmp_path / "changed.json"
        for content in (
            issued.certificate.read_bytes() + b"\n",
            json.dumps(json.loads(issued.certificate.read_text())),
        ):
            changed.write_bytes(content if isinstance(content, bytes) else content.encode())
            assert "its signature does not fit" in refused(run, issued, "--certificate", changed)

    def test_one_that_someone_else_signed_is_of_another_workspace(self, run, issued, tmp_path):
        forged = tmp_path / "forged.json"
        forged.write_bytes(Statement.model_validate_json(issued.certificate.read_bytes()).signed(new_key()))
        assert "signed with another key" in wrong_use(run, issued, "--certificate", forged)

    def test_one_that_was_never_issued_is_not_had_even_if_the_right_key_signed_it(self, run, issued, tmp_path):
        forged = tmp_path / "forged.json"
        other_scope = {"scope": "some interactions of one person"}
        said = Statement.model_validate_json(issued.certificate.read_bytes()).model_copy(update=other_scope)
        forged.write_bytes(said.signed((issued.shop / "signing-key.txt").read_bytes()))
        assert "has another certificate for the same request" in refused(run, issued, "--certificate", forged)

    def test_one_of_another_workspace_that_learned_the_same_is_not_of_this(
        self, run, issued, ratings_file, facts, tmp_path
    ):
        twin = tmp_path / "twin"
        assert run("learn", ratings_file, "--into", twin, *facts.settings).code == 0
        foreign = forget_one(run, twin, users_at(twin, 1)[0], tmp_path / "others")
        said = wrong_use(run, issued, "--certificate", foreign.certificate)
        assert "the certificate was signed with another key: it is of another workspace; name the folder" in said
        assert run("verify", twin, "--certificate", foreign.certificate).code == 0

    def test_an_older_copy_of_the_workspace_that_was_put_back_is_found(self, run, shop, tmp_path):
        backup = copy_of(shop, tmp_path / "backup")
        issued = forget_one(run, shop, "ann", tmp_path / "receipts")
        kept = Path(shutil.copy(issued.certificate, tmp_path / "kept.json"))
        shutil.rmtree(shop)
        backup.rename(shop)
        assert "what was erased is held again (people: 1" in run("verify", shop).out
        # Without the do-not-learn list it is whole by itself, and nothing in it tells: so there is no verdict.
        shutil.rmtree(shop.with_name("shop.do-not-learn"))
        assert run("verify", shop).code == 2
        assert "an older copy of the workspace was restored" in refused(run, issued, "--certificate", kept)

    def test_one_that_was_removed_from_the_workspace_is_missed_by_the_records(self, run, issued, tmp_path):
        kept = Path(shutil.copy(issued.certificate, tmp_path / "kept.json"))
        path = issued.shop / "manifest.json"
        manifest = decode_manifest(path.read_bytes(), "manifest.json")
        files = {name: digest for name, digest in manifest.files.items() if not name.startswith("certificates")}
        changed = manifest.model_copy(update={"certificates": (), "files": files})
        path.write_bytes(encode_manifest(changed.sealed()))
        for options in ((), ("--certificate", kept)):
            said = refused(run, issued, *options)
            assert said == f"certificates/{issued.certificate.name} is missing: the log names it"

    @pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b"no JSON", b"\xff\x00", b'{"kind":1}'])
    def test_what_is_no_certificate_is_found(self, run, issued, tmp_path, content):
        garbage = tmp_path / "garbage.json"
        garbage.write_bytes(content)
        said = wrong_use(run, issued, "--certificate", garbage)
        assert f"{garbage}: it is no " in said
        assert said.endswith(": give the .json file that forget made\n")

    def test_nor_are_its_page_and_its_receipt(self, run, issued):
        page = issued.certificate.with_suffix(".html")
        assert f"{page}: it is a web page, and no certificate" in wrong_use(run, issued, "--certificate", page)
        assert f"{issued.receipt}: it is no " in wrong_use(run, issued, "--certificate", issued.receipt)

    @pytest.mark.parametrize("place", ["nowhere.json", "."])
    @pytest.mark.parametrize("option", ["--certificate", "--receipt"])
    def test_one_that_can_not_be_read_is_wrong_use(self, run, issued, tmp_path, place, option):
        given = {"--certificate": issued.certificate, option: tmp_path / place}
        result = run("verify", issued.shop, *(word for pair in given.items() for word in pair), "--json")
        assert (result.code, result.out) == (2, "")
        assert f"{tmp_path / place}: can't be read: give a file that erasable forget made" in result.err


class TestReceipt:
    def test_the_one_that_belongs_is_accepted(self, run, issued):
        result = run("verify", issued.shop, "--certificate", issued.certificate, "--receipt", issued.receipt, "--json")
        assert (result.code, result.json["identical"], result.json["stages_replayed"]) == (0, True, 2)

    def test_it_stays_good_after_later_erasures(self, run, issued):
        run("forget", issued.shop, "--user", users_at(issued.shop, 0)[0])
        assert run("verify", issued.shop, "--certificate", issued.certificate, "--receipt", issued.receipt).code == 0

    def test_the_line_that_is_printed_without_a_folder_is_a_receipt_too(self, run, shop, tmp_path):
        lines = run("forget", shop, "--user", "ann", "--user", "bob").out.splitlines()
        certificates = [line.removeprefix("certificate: ") for line in lines if line.startswith("certificate: ")]
        receipts = [line.split(": ", 1)[1] for line in lines if line.startswith("  receipt")]
        for number, (certificate, receipt) in enumerate(zip(certificates, receipts, strict=True)):
            path = tmp_path / f"receipt-{number}.json"
            path.write_text(receipt)
            assert run("verify", shop, "--certificate", certificate, "--receipt", path).code == 0

    def test_that_of_someone_else_is_not(self, run, issued, tmp_path):
        later = forget_one(run, issued.shop, users_at(issued.shop, 2)[0], tmp_path / "receipts")
        for receipt, certificate in ((issued.receipt, later.certificate), (later.receipt, issued.certificate)):
            said = refused(run, issued, "--certificate", certificate, "--receipt", receipt)
            assert said == f"{receipt} does not belong to {certificate}"

    @pytest.mark.parametrize("field", ["request_id", "user_id", "items", "salt"])
    def test_one_with_another_person_item_or_salt_does_not_belong(self, run, issued, tmp_path, field):
        document = json.loads(issued.receipt.read_bytes())
        changed = tmp_path / "changed.json"
        value = ["a"] if field == "items" else document[field][:-1] + ("0" if document[field][-1] != "0" else "1")
        changed.write_bytes(canonical({**document, field: value}))
        said = refused(run, issued, "--certificate", issued.certificate, "--receipt", changed)
        assert said == f"{changed} does not belong to {issued.certificate}"

    @pytest.mark.parametrize("salt", ["", "no hexadecimal", "0", "00" * 65])
    def test_one_whose_salt_can_be_none_does_not_belong(self, run, issued, tmp_path, salt):
        changed = tmp_path / "changed.json"
        changed.write_bytes(canonical({**json.loads(issued.receipt.read_bytes()), "salt": salt}))
        assert str(changed) in refused(run, issued, "--certificate", issued.certificate, "--receipt", changed)

    @pytest.mark.parametrize("content", [b"", b"{}", b"no JSON", b"[]"])
    def test_what_is_no_receipt_is_found(self, run, issued, tmp_path, content):
        garbage = tmp_path / "garbage.json"
        garbage.write_bytes(content)
        said = wrong_use(run, issued, "--certificate", issued.certificate, "--receipt", garbage)
        assert f"{garbage}: it is no " in said
        assert said.endswith(": give the .json file that forget made\n")

    def test_it_needs_a_certificate(self, run, issued):
        result = run("verify", issued.shop, "--receipt", issued.receipt)
        assert (result.code, result.out) == (2, "")
        assert "--receipt needs --certificate: a receipt shows whom a certificate is about" in result.err


class TestIssuerAndReference:
    def test_the_issuer_is_named_by_learn_changed_by_forget_and_stands_in_the_certificate(
        self, run, ratings_file, facts, tmp_path
    ):
        shop = tmp_path / "shop"
        assert run("learn", ratings_file, "--into", shop, *facts.settings, "--issuer", "Example Ltd").code == 0
        first = forget_one(run, shop, "ann", tmp_path / "receipts")
        assert run("forget", shop, "--issuer", "Example & Sons").code == 0
        second = forget_one(run, shop, "bob", tmp_path / "receipts")
        named = [json.loads(one.certificate.read_bytes())["issuer"] for one in (first, second)]
        assert named == ["Example Ltd", "Example & Sons"]
        assert "Issued by</dt><dd>Example &amp; Sons" in second.certificate.with_suffix(".html").read_text()

    def test_an_issuer_that_is_called_like_someone_is_refused_with_the_remedy(self, run, shop):
        result = run("forget", shop, "--issuer", "Service of ann")
        assert result.code == 1
        assert "give it in other words with erasable forget DIR --issuer NAME" in result.err

    def test_a_refused_erasure_names_no_issuer(self, run, shop):
        assert run("forget", shop, "--user", "nobody", "--issuer", "Other Ltd").code == 1
        assert "Other Ltd" not in (shop / "manifest.json").read_text()

    def test_a_reference_stands_in_the_receipt_and_nowhere_in_the_workspace(self, run, shop, tmp_path):
        receipts = tmp_path / "receipts"
        words = ("forget", shop, "--user", "ann", "--reference", "case-kxqz-of-ours", "--receipts", receipts)
        assert run(*words).code == 0
        (receipt,) = receipts.iterdir()
        assert json.loads(receipt.read_bytes())["reference"] == "case-kxqz-of-ours"
        files = [path for path in shop.rglob("*") if path.is_file()]
        assert not [path for path in files if b"kxqz" in path.read_bytes()]
        certificate = shop / "certificates" / receipt.name
        assert run("verify", shop, "--certificate", certificate, "--receipt", receipt).code == 0
        receipt.write_text(receipt.read_text().replace("kxqz", "kxqy"))
        assert run("verify", shop, "--certificate", certificate, "--receipt", receipt).code == 1

    def test_a_reference_is_that_of_one_person(self, run, shop):
        result = run("forget", shop, "--user", "ann", "--user", "bob", "--reference", "case 1")
        assert (result.code, "give exactly one user" in result.err) == (2, True)
