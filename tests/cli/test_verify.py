"""`erasable verify`: identical, different, damaged, or not to be told here; and what is recorded of it."""

import errno
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from erasable import fingerprint
from erasable.chain import Checkpoint, numeric_environment
from erasable.operations import DiskStorage, forget
from erasable.proof import records_of
from erasable.requests import Request
from erasable.workspace import Workspace, files
from erasable.workspace.checkpoints import encode_checkpoint
from erasable.workspace.manifest import decode_manifest, encode_manifest
from kit import elsewhere
from kit.copies import copy_of


def rewrite_manifest(folder, **changes):
    path = folder / "manifest.json"
    manifest = decode_manifest(path.read_bytes(), str(path))
    path.write_bytes(encode_manifest(manifest.model_copy(update=changes).sealed()))


def manifest_of(folder):
    return decode_manifest((folder / "manifest.json").read_bytes(), "manifest.json")


def records_in(folder):
    (audit,) = folder.glob("audit-*")
    return records_of(audit.read_bytes())


def replace_checkpoint(folder, position, name):
    """Change the last bit of one number of a checkpoint, so that every hash is right again."""
    with Workspace.reading(folder) as workspace:
        link = workspace.manifest.chain[position]
        arrays = {key: array.copy() for key, array in workspace.checkpoints.get(link.fingerprint).arrays().items()}
    number = arrays[name].reshape(-1)[3:4]
    number[:] = np.nextafter(number, np.float32(9))
    content = encode_checkpoint(Checkpoint.from_arrays(link.fingerprint, link.parent, arrays))
    (folder / link.file).write_bytes(content)
    files = {**manifest_of(folder).files, link.file: fingerprint.of_bytes(content)}
    rewrite_manifest(folder, files=files)


def move_elsewhere(folder):
    """Make a workspace look as if it had been learned in another numeric environment."""
    elsewhere.moved(folder, numba="0.1", processor="abacus")


class TestWithoutTheDoNotLearnList:
    def test_there_is_no_verdict(self, run, shop):
        shutil.rmtree(shop.with_name("shop.do-not-learn"))
        result = run("verify", shop, "--json")
        assert (result.code, result.json["identical"]) == (2, None)
        told = run("verify", shop)
        assert told.code == 2
        assert told.out.startswith("no verdict: it can't be told whether someone erased is held again (")
        assert "--do-not-learn LIST --do-not-learn-key KEY" in told.out


class TestIdentical:
    def test_after_learning(self, run, shop):
        result = run("verify", shop, "--json")
        assert (result.code, result.err) == (0, "")
        # Three stages; an NMF checkpoint has ten arrays.
        assert result.json == {
            "identical": True,
            "compared": 30,
            "reason": "a replay from scratch on the data that is left gives the same bytes",
            "stages_replayed": 3,
            "recorded": True,
            "elsewhere": False,
        }

    def test_after_forgetting_people_and_items_in_several_calls(self, run, shop):
        run("forget", shop, "--user", "ann")
        run("forget", shop, "--user", "bob", "--item", "a")
        run("forget", shop, "--user", "cat", "--user", "dan")
        result = run("verify", shop, "--from-scratch")
        assert result.code == 0
        assert result.out == (
            "identical: a replay from scratch on the data that is left gives the same bytes (30 arrays compared)\n"
        )

    def test_on_one_thread_and_on_two(self, run, shop):
        assert run("verify", shop, "--threads", 1).code == run("verify", shop, "--threads", 2).code == 0

    def test_nothing_is_changed_but_the_record(self, run, shop, content_of):
        before, stamp = content_of(shop), manifest_of(shop).version
        run("verify", shop)
        after = content_of(shop)
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        assert {name.split("-")[0] for name in changed} == {"manifest.json", "audit"}
        assert sum(name.startswith("audit") for name in after) == 1
        assert manifest_of(shop).version == stamp

    def test_a_forget_that_comes_between_is_no_fault(self, run, shop, monkeypatch):
        """The replay works on a copy, so that nobody waits for it; what it finds is recorded afterwards."""
        verifying = sys.modules["erasable.operations.verify"]
        replay = verifying.replay

        def replay_late(*arguments):
            forget(DiskStorage(shop), [Request("ann")])
            return replay(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(verifying, "replay", replay_late)
            assert run("verify", shop, "--json").json["identical"] is True
        assert [(one["what"], one["version"]) for one in records_in(shop)] == [
            ("learn", 1),
            ("forget", 2),
            ("verify", 1),
        ]
        assert run("verify", shop, "--json").json["identical"] is True


class TestRecord:
    def test_each_verification_is_recorded_with_its_outcome(self, run, shop):
        assert run("verify", shop, "--json").json["recorded"] is True
        first, second = records_in(shop)
        assert (first["what"], second["what"], second["number"], second["previous"]) == (
            *("learn", "verify", 2),
            first["hash"],
        )
        facts = {name: second[name] for name in ("version", "state", "identical", "compared", "stages")}
        assert facts == {"version": 1, "state": first["state"], "identical": True, "compared": 30, "stages": 3}
        run("verify", shop)
        assert len(records_in(shop)) == run("status", shop, "--json").json["records"] == 3

    def test_a_difference_is_recorded_too(self, run, shop):
        replace_checkpoint(shop, 1, "shared.item")
        found = run("verify", shop, "--json").json
        assert (found["identical"], found["recorded"]) == (False, True)
        assert records_in(shop)[-1]["identical"] is False

    def test_what_can_not_be_told_or_is_damaged_is_not_recorded(self, run, shop, content_of):
        move_elsewhere(shop)
        before = content_of(shop)
        assert run("verify", shop, "--json").json["recorded"] is False
        next(shop.glob("data/*")).write_bytes(b"bad")
        before[next(name for name in before if (shop / name).read_bytes() != before[name])] = b"bad"
        assert run("verify", shop, "--json").json["recorded"] is False
        assert content_of(shop) == before

    def test_a_record_that_was_changed_is_found_even_if_every_hash_of_the_store_is_right(self, run, shop):
        run("forget", shop, "--user", "ann")
        name = manifest_of(shop).audit
        content = (shop / name).read_bytes().replace(b'"what":"learn"', b'"what":"lease"')
        (shop / name).write_bytes(content)
        rewrite_manifest(shop, files={**manifest_of(shop).files, name: fingerprint.of_bytes(content)})
        result = run("verify", shop, "--json")
        assert (result.code, result.json["identical"]) == (1, False)
        assert result.json["reason"] == "the log: record 1 was changed"


class TestNothingCanBeWritten:
    @pytest.fixture
    def read_only(self, shop, monkeypatch) -> Path:
        """A workspace on a disk that can't be written to."""

        def refuse(kind, path):
            raise OSError(errno.EROFS, "Read-only file system")

        monkeypatch.setattr(files, "before_change", refuse)
        return shop

    def test_it_is_verified_all_the_same_and_said_that_it_was_not_recorded(self, run, read_only, content_of):
        before = content_of(read_only)
        result = run("verify", read_only, "--json")
        assert (result.code, result.err) == (0, "")
        assert (result.json["identical"], result.json["compared"], result.json["recorded"]) == (True, 30, False)
        assert content_of(read_only) == before

    def test_a_difference_is_found_there_too(self, run, shop, read_only):
        replace_checkpoint(read_only, 1, "shared.item")
        result = run("verify", read_only, "--json")
        assert (result.code, result.json["identical"], result.json["recorded"]) == (1, False, False)

    def test_files_of_an_earlier_version_that_can_not_be_removed_are_a_fault(self, run, read_only):
        (read_only / "checkpoints" / "old.safetensors").write_bytes(b"left over")
        result = run("verify", read_only, "--json")
        assert (result.code, result.err) == (1, "")
        assert (result.json["identical"], result.json["compared"]) == (False, 0)
        assert "checkpoints/old.safetensors" in result.json["reason"]

    def test_while_another_command_is_writing_it_is_verified_and_not_recorded(self, run, shop):
        with Workspace.writing(shop):
            result = run("verify", shop, "--json")
        assert (result.code, result.json["identical"], result.json["recorded"]) == (0, True, False)
        assert len(records_in(shop)) == 1

    def test_a_disk_that_is_full_changes_no_verdict(self, run, shop, monkeypatch, content_of):
        def full(kind, path):
            if kind == "write":
                raise OSError(errno.ENOSPC, "No space left on device")

        before = content_of(shop)
        monkeypatch.setattr(files, "before_change", full)
        result = run("verify", shop, "--json")
        assert (result.code, result.json["identical"], result.json["recorded"]) == (0, True, False)
        assert content_of(shop) == before


class TestDifferent:
    @pytest.mark.parametrize(("position", "name"), [(0, "rows.user"), (1, "shared.item"), (2, "rows.user")])
    def test_one_bit_of_one_array_is_found_and_named(self, run, shop, position, name):
        replace_checkpoint(shop, position, name)
        result = run("verify", shop, "--json")
        assert (result.code, result.err) == (1, "")
        assert result.json["identical"] is False
        assert result.json["compared"] == 30
        assert re.match(
            rf"stage {position + 1}: {name} differs in 1 of \d+ numbers, by at most ", result.json["reason"]
        )

    def test_words_say_so_too(self, run, shop):
        replace_checkpoint(shop, 0, "rows.user")
        result = run("verify", shop)
        assert result.code == 1
        assert result.out.startswith("different: stage 1: rows.user differs in 1 of ")
        assert result.out.endswith(" (30 arrays compared)\n")

    def test_other_data_than_the_checkpoints_were_trained_on_are_found(
        self, run, shop, learned, ratings_file, tmp_path
    ):
        other = tmp_path / "other.csv"
        other.write_text(ratings_file.read_text().replace("ann,a,5", "ann,a,4"))
        settings = ("--model", "nmf", "--groups", 3, "--epochs", 6, "--batch", 16)
        assert run("learn", other, "--into", tmp_path / "other", "--groups-from", learned, *settings).code == 0
        theirs, files = manifest_of(tmp_path / "other"), dict(manifest_of(shop).files)
        for name in [name for name in files if name.startswith("data/")]:
            del files[name]
        for name in [name for name in theirs.files if name.startswith("data/")]:
            files[name] = theirs.files[name]
            shutil.copy(tmp_path / "other" / name, shop / name)
        rewrite_manifest(shop, buckets=theirs.buckets, counts=theirs.counts, files=dict(sorted(files.items())))
        result = run("verify", shop, "--json")
        assert result.code == 1
        assert "the data of version 1 are not those that were recorded" in result.json["reason"]


class TestElsewhere:
    @pytest.fixture
    def moved(self, shop) -> Path:
        move_elsewhere(shop)
        return shop

    def test_it_can_not_be_told(self, run, moved):
        result = run("verify", moved, "--json")
        assert (result.code, result.err) == (3, "")
        assert (result.json["identical"], result.json["compared"]) == (None, 0)
        assert f"numba is {numeric_environment()['numba']} here and was 0.1" in result.json["reason"]
        assert "was abacus" in result.json["reason"]

    def test_words_say_so_too(self, run, moved):
        result = run("verify", moved)
        assert result.code == 3
        said = "cannot be reproduced here: it was learned in another numeric environment: numba is "
        assert result.out.startswith(said)

    def test_forgetting_is_refused_and_nothing_changed(self, run, moved, content_of):
        before = content_of(moved)
        result = run("forget", moved, "--user", "ann", "--json")
        assert (result.code, result.out) == (1, "")
        assert "was learned in another numeric environment (numba is" in result.err
        assert f"erasable upgrade {moved}" in result.err
        assert "give --rerun to train everything again here" in result.err
        assert content_of(moved) == before

    def test_with_rerun_everything_is_trained_again_here(self, run, moved):
        replace_checkpoint(moved, 0, "shared.item")
        move_elsewhere(moved)
        with Workspace.reading(moved) as workspace:
            user = workspace.state().dataset.groups[2].users[0]
        found = run("forget", moved, "--user", user, "--rerun", "--json").json
        assert (found["stages_rerun"], found["stages_total"]) == (3, 3)
        (environment,) = manifest_of(moved).environments
        assert environment["numba"] == numeric_environment()["numba"]
        assert run("verify", moved, "--json").json["identical"] is True
        left = run("recommend", moved, "--all", "--json").json["recommendations"]
        assert run("forget", moved, "--user", left[0]["user_id"]).code == 0

    def test_rerun_changes_no_byte_of_what_forgetting_gives_here(self, run, learned, tmp_path):
        for name, options in (("plain", ()), ("rerun", ("--rerun",))):
            copy_of(learned, tmp_path / name)
            assert run("forget", tmp_path / name, "--user", "ann", *options).code == 0
        plain, rerun = (
            {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.safetensors")}
            for name in ("plain", "rerun")
        )
        assert plain == rerun

    @pytest.mark.parametrize("command", ["recommend", "show", "plan"])
    def test_reading_goes_on(self, run, moved, command):
        assert run(command, moved, "--user", "ann").code == 0


class TestNoVerdict:
    """What keeps it from a verdict ends with 2, since 1 says that bytes differ."""

    def test_a_folder_that_is_no_workspace(self, run, tmp_path):
        result = run("verify", tmp_path / "gone")
        assert (result.code, result.out) == (2, "")
        assert "there is no folder" in result.err

    def test_a_list_that_can_not_be_read(self, run, shop, tmp_path):
        result = run("verify", shop, "--suppression", tmp_path / "list", "--suppression-key", tmp_path / "key")
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("erasable: ")

    def test_a_fault_of_ours(self, run, shop, monkeypatch):
        monkeypatch.setattr("erasable.cli.verify.verify", lambda *_: {}["nothing"])
        result = run("verify", shop)
        assert result.code == 2
        assert "KeyError" in result.err
