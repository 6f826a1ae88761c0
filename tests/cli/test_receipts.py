"""`erasable forget --receipts DIR`: a receipt for each person, for that person alone, and never in the workspace."""

import errno
import json
import os
from pathlib import Path

import pytest

from erasable.workspace import files


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "receipts"


def test_each_person_gets_a_file_named_like_the_certificate(run, shop, folder):
    found = run("forget", shop, "--user", "ann", "--user", "bob", "--receipts", folder, "--json").json
    certificates = [Path(path) for path in found["certificates"]]
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in certificates)
    receipts = [json.loads((folder / path.name).read_bytes()) for path in certificates]
    assert [one["user_id"] for one in receipts] == ["ann", "bob"]
    assert [one["request_id"] for one in receipts] == [path.stem for path in certificates]
    assert [one["items"] for one in receipts] == [None, None]
    assert all(len(bytes.fromhex(one["salt"])) == 32 for one in receipts)
    assert receipts[0]["salt"] != receipts[1]["salt"]
    assert "Keep this" in receipts[0]["about"]


def test_a_receipt_names_the_items_that_were_asked_for(run, shop, folder):
    run("forget", shop, "--user", "ann", "--item", "b", "--item", "a", "--receipts", folder)
    (path,) = folder.iterdir()
    assert sorted(json.loads(path.read_bytes())["items"]) == ["a", "b"]


def test_a_receipt_is_for_its_owner_alone(run, shop, folder):
    before = os.umask(0)
    try:
        run("forget", shop, "--user", "ann", "--user", "bob", "--receipts", folder)
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600, 0o600]


def test_what_is_written_is_not_shown(run, shop, folder):
    shown = run("forget", shop, "--user", "ann", "--receipts", folder, "--json")
    assert (shown.json["receipts"], shown.json["receipts_folder"]) == ([], str(folder))
    words = run("forget", shop, "--user", "bob", "--receipts", folder)
    assert f"receipts: {folder} (give each to its person, then delete it)" in words.out
    salts = [json.loads(path.read_bytes())["salt"] for path in folder.iterdir()]
    assert len(salts) == 2
    assert not any(salt in result.out + result.err for salt in salts for result in (shown, words))


def test_what_is_not_written_is_shown_once(run, shop):
    (receipt,) = run("forget", shop, "--user", "ann", "--json").json["receipts"]
    assert receipt["user_id"] == "ann"
    assert len(bytes.fromhex(receipt["salt"])) == 32


def test_the_workspace_keeps_none(run, shop, folder, content_of):
    run("forget", shop, "--user", "ann", "--receipts", folder)
    (receipt,) = folder.iterdir()
    salt = json.loads(receipt.read_bytes())["salt"].encode()
    assert not any(salt in content for content in content_of(shop).values())


def test_a_folder_that_is_there_is_used_and_its_files_are_left_alone(run, shop, folder):
    folder.mkdir()
    (folder / "notes.txt").write_text("somebody's own")
    run("forget", shop, "--user", "ann", "--receipts", folder)
    assert (folder / "notes.txt").read_text() == "somebody's own"
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize(
    "place", ["shop", "shop/receipts", "shop/data/deep/down", "link", "link/deep", "other/../shop"]
)
def test_a_folder_in_the_workspace_is_refused_and_nothing_changed(run, shop, content_of, monkeypatch, place):
    monkeypatch.chdir(shop.parent)
    Path("link").symlink_to(shop / "receipts")
    before = content_of(shop)
    for folder, receipts in (
        (shop, place),
        (shop, shop.parent / place),
        ("shop", place),
        ("shop", shop.parent / place),
    ):
        result = run("forget", folder, "--user", "ann", "--receipts", receipts)
        assert (result.code, result.out) == (2, "")
        assert "lies in the workspace, which must not keep receipts: give another folder" in result.err
    assert content_of(shop) == before


def test_nobody_erased_means_no_receipt(run, shop, folder):
    found = run("forget", shop, "--user", "zoe", "--ignore-unknown", "--receipts", folder, "--json").json
    assert found["certificates"] == []
    assert list(folder.glob("*")) == []


@pytest.mark.parametrize("place", ["missing/receipts", "file"])
def test_where_none_can_be_written_it_is_refused_before_anybody_is_erased(run, shop, content_of, tmp_path, place):
    (tmp_path / "file").write_text("somebody's own")
    before = content_of(shop)
    result = run("forget", shop, "--user", "ann", "--receipts", tmp_path / place)
    assert (result.code, result.out) == (1, "")
    assert str(tmp_path / place) in result.err
    assert content_of(shop) == before


def test_a_receipt_that_can_not_be_written_in_the_end_is_written_by_the_next_command(run, shop, folder, monkeypatch):
    def full(kind, path):
        if path.parent == folder:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "before_change", full)
        assert run("forget", shop, "--user", "ann", "--receipts", folder).code == 1
    found = run("status", shop, "--json").json
    assert (found["users"], found["pending"], found["erasures"]) == (7, 1, 0)
    (certificate,) = run("forget", shop, "--user", "ann", "--receipts", folder, "--json").json["certificates"]
    assert run("verify", shop, "--certificate", certificate, "--receipt", folder / Path(certificate).name).code == 0
