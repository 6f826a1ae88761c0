"""One bit changed in any document, of this version or an earlier one, is noticed before anything is loaded."""

import random
import shutil
import sys
from pathlib import Path

import pytest

from erasable.errors import WorkspaceError, WrongUse
from erasable.operations import Claim, DiskStorage, verify
from erasable.operations.do_not_learn import default_places
from kit import small_shop
from kit.choosing import cases
from kit.copies import copy_of
from kit.in_buckets import SIZES, in_buckets, in_buckets_of
from kit.released import VERSIONS, watched_documents
from kit.tampering import files_of, flipped, notices, seal_again, watched_list, watched_proof

FLIPS_PER_FILE = 12


@pytest.fixture(scope="module")
def people(request):
    """How many people lie in a bucket; all of them unless a test says so."""
    with in_buckets_of(getattr(request, "param", SIZES["one bucket"])):
        yield


@pytest.fixture(scope="module")
def shop(people, tmp_path_factory) -> Path:
    """A workspace with every kind of file: it has forgotten three people, sealed the documents of two, and verified."""
    folder = forgetful_shop(tmp_path_factory.mktemp("tampering") / "shop")
    assert len(list((folder / "sealed").iterdir())) == 2
    assert verify(DiskStorage(folder)).identical is True
    return folder


def forgetful_shop(folder: Path, users: int = 30) -> Path:
    small_shop.learn_shop(folder, small_shop.table(users))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("erasable.workspace._versions.OPEN_CERTIFICATES", 2)
        for position in (1, 2, 1):
            done = small_shop.forget_in(folder, small_shop.member_of(folder, position))
    (folder.parent / "receipt.json").write_bytes(done.receipts[0].encoded())
    shutil.copy(done.certificates[0], folder.parent / "certificate.json")
    return folder


@pytest.fixture(scope="module")
def other(shop, tmp_path_factory) -> Path:
    """Another workspace that did the same with other people."""
    return forgetful_shop(tmp_path_factory.mktemp("other") / "shop", users=24)


@pytest.fixture(scope="module")
def certificate(shop) -> Path:
    """A certificate as it was handed out; its receipt lies beside it."""
    return shop.parent / "certificate.json"


def test_undisturbed_there_is_nothing_to_notice(shop, certificate):
    assert not notices(shop, certificate)
    assert verify(DiskStorage(shop), Claim(certificate)).identical is True


@in_buckets("many buckets")
def test_a_flipped_bit_in_any_file_is_noticed(shop, certificate):
    chance = random.Random(0)
    suffixes = {path.suffix for path in files_of(shop)}
    assert suffixes >= {".json", ".jsonl", ".html", ".parquet", ".safetensors", ".txt"}
    for path in files_of(shop):
        for _ in range(FLIPS_PER_FILE):
            with flipped(path, chance):
                assert notices(shop, certificate), path


def test_a_flipped_bit_in_a_certificate_outside_is_noticed(shop, certificate):
    chance = random.Random(1)
    for _ in range(200):
        with flipped(certificate, chance):
            assert notices(shop, certificate)


def test_a_flipped_bit_in_a_receipt_or_a_do_not_learn_list_is_noticed(shop, certificate):
    chance = random.Random(3)
    documents = watched_proof(shop, certificate, certificate.with_name("receipt.json"))
    for document in (*documents, *watched_list(default_places(shop))):
        assert not document.notices()
        for _ in range(100):
            with flipped(document.path, chance, document.told):
                assert document.notices(), document.kind


@pytest.mark.parametrize("version", cases({version: version for version in VERSIONS}, quick=VERSIONS[:-1]))
def test_a_flipped_bit_in_any_document_of_an_earlier_version_is_noticed(tmp_path, version):
    """The newest one writes what the present code does, which is tested above."""
    chance = random.Random(4)
    documents = watched_documents(tmp_path, version)
    kinds = {"manifest.json", "audit.jsonl", "pending.json", "certificate outside", "receipt", "do-not-learn list"}
    assert {f"{version}: {kind}" for kind in kinds} <= {document.kind for document in documents}
    for document in documents:
        assert not document.notices()
        for _ in range(4):
            with flipped(document.path, chance, document.told):
                assert document.notices(), document.path


@pytest.mark.parametrize("how", ["as it is", "sealed again"])
@pytest.mark.parametrize(
    "kind",
    ["manifest.json", "audit-*", "signing-key*", "certificates/*.json", "data/*", "checkpoints/*", "sealed/*.json"],
)
def test_a_document_of_another_workspace_is_noticed(shop, other, tmp_path, kind, how):
    folder = copy_of(shop, tmp_path / "shop")
    mine, theirs = (sorted(one.glob(kind))[0] for one in (folder, other))
    assert mine.read_bytes() != theirs.read_bytes()
    shutil.copy(theirs, mine)
    if how == "sealed again":
        seal_again(folder)
    assert not_identical(folder)


def test_a_certificate_of_another_workspace_gets_no_verdict(shop, other):
    with pytest.raises(WrongUse, match="signed with another key: it is of another workspace"):
        verify(DiskStorage(shop), Claim(sorted(other.glob("certificates/*.json"))[0]))


def not_identical(folder: Path) -> bool:
    try:
        return verify(DiskStorage(folder)).identical is False
    except WorkspaceError:
        return True


def test_verify_tells_the_file_and_does_not_replay(shop, monkeypatch):
    operation = sys.modules[verify.__module__]
    monkeypatch.setattr(operation, "replay", lambda *_: pytest.fail("it was loaded and replayed"))
    chance = random.Random(2)
    for path in files_of(shop):
        with flipped(path, chance):
            found = verify(DiskStorage(shop)) if path.name != "manifest.json" else None
            assert found is None or (found.identical is False and path.relative_to(shop).as_posix() in found.reason)
