"""One bit changed anywhere, in a workspace or in a certificate handed out, is noticed before anything is loaded."""

import random
import shutil
import sys
from pathlib import Path

import pytest

from erasable.operations import Claim, DiskHome, verify
from kit import small_shop
from kit.tampering import files_of, flipped, notices

FLIPS_PER_FILE = 12


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    """A workspace with every kind of file: it has forgotten three people, sealed the papers of two, and verified."""
    folder = small_shop.learn_shop(tmp_path_factory.mktemp("tampering") / "shop", small_shop.table())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("erasable.store.saving.OPEN_CERTIFICATES", 2)
        for position in (1, 2, 1):
            small_shop.forget_in(folder, small_shop.member_of(folder, position))
    assert len(list((folder / "sealed").iterdir())) == 2
    assert verify(DiskHome(folder)).identical is True
    return folder


@pytest.fixture(scope="module")
def certificate(shop) -> Path:
    """A certificate as it was handed out."""
    issued = sorted((shop / "certificates").glob("*.json"))[0]
    return Path(shutil.copy(issued, shop.parent / "certificate.json"))


def test_undisturbed_there_is_nothing_to_notice(shop, certificate):
    assert not notices(shop, certificate)
    assert verify(DiskHome(shop), Claim(certificate)).identical is True


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


def test_verify_tells_the_file_and_does_not_replay(shop, monkeypatch):
    operation = sys.modules[verify.__module__]
    monkeypatch.setattr(operation, "replay", lambda *_: pytest.fail("it was loaded and replayed"))
    chance = random.Random(2)
    for path in files_of(shop):
        with flipped(path, chance):
            found = verify(DiskHome(shop)) if path.name != "manifest.json" else None
            assert found is None or (found.identical is False and path.relative_to(shop).as_posix() in found.reason)
