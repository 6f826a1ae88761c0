"""`erasable verify` on a damaged workspace: whatever is damaged, it is different, and the file is named."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from erasable.chain import Config
from erasable.operations import DiskStorage, Inputs, forget, learn
from erasable.requests import Request
from erasable.workspace import Workspace
from kit.asking import accepted_before
from kit.copies import copy_of

KINDS = (
    *("config.json", "catalogue-*", "kept-items-*", "data/bucket-*", "checkpoints/*"),
    *("data/items-*", "data/slots-*", "data/histories-*"),
    *("certificates/*.json", "certificates/*.html", "audit-*", "signing-key.txt", "pending-*", "manifest.json"),
)


@pytest.fixture(scope="module")
def every_kind(ratings_file, tmp_path_factory) -> Path:
    """A workspace with a file of every kind; to be copied."""
    path = tmp_path_factory.mktemp("every-kind") / "shop"
    config = Config(model="nmf", groups=3, epochs=2, batch=16, holdout=0.4, min_interactions=2)
    (path.parent / "items").write_text("\n".join("abcdefgh"))
    learn(ratings_file, path, config, Inputs(catalogue=path.parent / "items"))
    forget(DiskStorage(path), [Request("ann")])
    with Workspace.writing(path) as workspace:
        workspace.amend(replace(workspace.documents(), pending=accepted_before(Request("bob"))))
    return path


@pytest.fixture
def copy(every_kind, tmp_path) -> Path:
    return copy_of(every_kind, tmp_path / "copy")


def test_whole_it_is_identical(run, copy, content_of):
    found = {str(path.relative_to(copy)) for kind in KINDS for path in copy.glob(kind)}
    assert found == set(content_of(copy))
    assert run("verify", copy, "--json").json["identical"] is True


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", ["first", "last", "missing"])
def test_it_is_different_and_the_file_is_named(run, copy, content_of, kind, damage):
    path = sorted(copy.glob(kind))[-1]
    if damage == "missing":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[0 if damage == "first" else -1] ^= 1
        path.write_bytes(content)
    before = content_of(copy)
    result = run("verify", copy, "--json")
    assert (result.code, result.err) == (1, "")
    facts = {name: result.json[name] for name in ("identical", "compared", "stages_replayed", "recorded")}
    assert facts == {"identical": False, "compared": 0, "stages_replayed": 0, "recorded": False}
    assert path.relative_to(copy).as_posix() in result.json["reason"]
    assert content_of(copy) == before


def test_every_damaged_file_is_named_at_once(run, copy):
    paths = [*copy.glob("data/*"), *copy.glob("certificates/*")]
    for path in paths:
        path.write_bytes(b"bad")
    result = run("verify", copy)
    assert (result.code, result.err) == (1, "")
    names = ", ".join(sorted(path.relative_to(copy).as_posix() for path in paths))
    assert result.out == f"different: damaged or missing: {names}\n"


def test_in_the_audit_chain_the_record_is_named(run, copy):
    path = next(copy.glob("audit-*"))
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"what":"forget"', b'"what":"forgot"'))
    assert run("verify", copy, "--json").json["reason"].endswith("; the log: record 2 was changed")
    path.write_bytes(whole.splitlines(keepends=True)[1])
    assert "the log: record 1 is missing" in run("verify", copy, "--json").json["reason"]
    path.write_bytes(whole.splitlines(keepends=True)[0])
    assert run("verify", copy, "--json").json["reason"].endswith("; the log: records at its end are missing")


def test_a_folder_in_the_place_of_a_file_is_damage(run, copy):
    path = next(copy.glob("data/*"))
    path.unlink()
    path.mkdir()
    result = run("verify", copy, "--json")
    assert (result.code, result.json["identical"]) == (1, False)


def test_an_old_manifest_put_back_by_mistake_is_refused_and_destroys_nothing(run, shop, tmp_path):
    shutil.copy(shop / "manifest.json", tmp_path / "old")
    run("forget", shop, "--user", "ann")
    shutil.copy(shop / "manifest.json", tmp_path / "new")
    shutil.copy(tmp_path / "old", shop / "manifest.json")
    assert run("status", shop).code == 1
    assert run("forget", shop, "--user", "bob").code == 1
    shutil.copy(tmp_path / "new", shop / "manifest.json")
    assert run("verify", shop).code == 0
