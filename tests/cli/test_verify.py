"""`erasable verify`: identical, different, or not to be told here; and certificates."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from erasable import fingerprint
from erasable.store import Workspace
from erasable.store.checkpoints import encode_checkpoint
from erasable.store.manifest import decode_manifest, encode_manifest
from erasable.training import Checkpoint, numeric_environment


def rewrite_manifest(folder, **changes):
    path = folder / "manifest.json"
    manifest = decode_manifest(path.read_bytes(), str(path))
    path.write_bytes(encode_manifest(manifest.model_copy(update=changes).sealed()))


def manifest_of(folder):
    return decode_manifest((folder / "manifest.json").read_bytes(), "manifest.json")


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
    rewrite_manifest(folder, environment={**numeric_environment(), "numba": "0.1", "processor": "abacus"})


class TestIdentical:
    def test_after_learning(self, run, learned):
        result = run("verify", learned, "--json")
        assert (result.code, result.err) == (0, "")
        # Three stages; an NMF checkpoint has ten arrays.
        assert result.json == {
            "identical": True,
            "compared": 30,
            "reason": "a replay from scratch on the data that is left gives the same bytes",
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

    def test_on_one_thread_and_on_two(self, run, learned):
        assert run("verify", learned, "--threads", 1).code == run("verify", learned, "--threads", 2).code == 0

    def test_nothing_is_changed(self, run, shop, content_of):
        before = content_of(shop)
        run("verify", shop)
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
        settings = ("--groups", 3, "--epochs", 6, "--batch", 16)
        assert run("learn", other, "--into", tmp_path / "other", "--groups-from", learned, *settings).code == 0
        groups, files = manifest_of(tmp_path / "other").groups, dict(manifest_of(shop).files)
        for old, new in zip(manifest_of(shop).groups, groups, strict=True):
            del files[old.file]
            files[new.file] = manifest_of(tmp_path / "other").files[new.file]
            shutil.copy(tmp_path / "other" / new.file, shop / new.file)
        rewrite_manifest(shop, groups=groups, files=dict(sorted(files.items())))
        result = run("verify", shop, "--json")
        assert result.code == 1
        assert "the data held do not give the checkpoint" in result.json["reason"]

    def test_a_checkpoint_that_is_merely_damaged_is_refused(self, run, shop):
        path = next(shop.glob("checkpoints/*.safetensors"))
        path.write_bytes(path.read_bytes()[:-1] + b"\x01")
        result = run("verify", shop, "--json")
        assert (result.code, result.out) == (1, "")
        assert f"{path} is damaged" in result.err


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
        assert "give --rerun to train everything again here" in result.err
        assert content_of(moved) == before

    def test_with_rerun_everything_is_trained_again_here(self, run, moved):
        replace_checkpoint(moved, 0, "shared.item")
        move_elsewhere(moved)
        with Workspace.reading(moved) as workspace:
            user = workspace.state().knowledge.groups[2].users[0]
        found = run("forget", moved, "--user", user, "--rerun", "--json").json
        assert (found["stages_rerun"], found["stages_total"]) == (3, 3)
        assert manifest_of(moved).environment == numeric_environment()
        assert run("verify", moved, "--json").json["identical"] is True
        left = run("recommend", moved, "--all", "--json").json["recommendations"]
        assert run("forget", moved, "--user", left[0]["user_id"]).code == 0

    def test_rerun_changes_no_byte_of_what_forgetting_gives_here(self, run, learned, tmp_path):
        for name, options in (("plain", ()), ("rerun", ("--rerun",))):
            shutil.copytree(learned, tmp_path / name)
            assert run("forget", tmp_path / name, "--user", "ann", *options).code == 0
        plain, rerun = (
            {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.safetensors")}
            for name in ("plain", "rerun")
        )
        assert plain == rerun

    @pytest.mark.parametrize("command", ["recommend", "show", "plan"])
    def test_reading_goes_on(self, run, moved, command):
        assert run(command, moved, "--user", "ann").code == 0


class TestCertificate:
    @pytest.fixture
    def issued(self, run, shop) -> Path:
        return Path(run("forget", shop, "--user", "ann", "--json").json["certificates"][0])

    def test_one_that_was_issued_here_is_recognised_wherever_it_lies(self, run, shop, issued, tmp_path):
        copy = Path(shutil.copy(issued, tmp_path / "copy.json"))
        for place in (issued, copy):
            assert run("verify", shop, "--certificate", place).code == 0

    def test_an_older_one_stays_valid(self, run, shop, issued):
        run("forget", shop, "--user", "bob")
        assert run("verify", shop, "--certificate", issued).code == 0

    def test_a_foreign_or_changed_one_is_not(self, run, shop, issued, tmp_path):
        changed = tmp_path / "changed.json"
        changed.write_bytes(issued.read_bytes().replace(b"all data", b"some data"))
        foreign = tmp_path / "foreign.json"
        foreign.write_text("{}")
        for place in (changed, foreign):
            result = run("verify", shop, "--certificate", place, "--json")
            assert (result.code, result.err) == (1, "")
            assert result.json["identical"] is False
            assert f"{place} is not a certificate of this workspace, or was changed" in result.json["reason"]

    def test_one_that_was_changed_in_its_place_is_damage(self, run, shop, issued):
        issued.write_bytes(issued.read_bytes().replace(b"all data", b"some data"))
        result = run("verify", shop, "--certificate", issued)
        assert (result.code, result.out) == (1, "")
        assert f"{issued} is damaged" in result.err

    @pytest.mark.parametrize("place", ["nowhere.json", "."])
    def test_one_that_can_not_be_read_is_wrong_use(self, run, learned, tmp_path, place):
        result = run("verify", learned, "--certificate", tmp_path / place)
        assert (result.code, result.out) == (2, "")
        assert "can't be read: give --certificate a file of the folder certificates" in result.err
