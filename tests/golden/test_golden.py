"""The present code trains the bytes of the releases: every way, after every step."""

import importlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from golden import making, write_file
from golden.digests import differences
from golden.environment import environment
from golden.ways import WAYS

VERSIONS = list(making.ADAPTERS)
FEW = ("ease-retrain-stage-1-independent-dense-followed", "ease-retrain-solved-0.5-fixed-dense-followed")
"""Ways that need little compiled code, so that the old code is quick to run."""


@pytest.fixture(scope="module")
def few():
    return making.made_here(FEW)


@pytest.mark.slow
def test_the_present_code_gives_the_bytes_of_every_release(say):
    released = {version: making.golden_ways(version, list(WAYS)) for version in VERSIONS}
    present = making.made_here(list(WAYS))
    must_equal = importlib.import_module(making.PRESENT).must_equal
    for version, (golden, where_from) in released.items():
        promised = [name for name in WAYS if must_equal(golden[name])]
        say(f"{where_from}; {len(promised)} of {len(WAYS)} ways must be equal")
        found = [f"{name}, {line}" for name in promised for line in differences(golden[name], present[name])]
        assert not found, "\n".join([f"{len(found)} arrays differ from {version}:", *found[:30]])
        assert len(promised) >= 40


@pytest.mark.parametrize("version", VERSIONS)
def test_every_file_is_of_the_commit_that_was_released(version):
    for path in (making.FILES / version).glob("*.json"):
        kept = making.kept_ways(path, version)
        assert set(kept) <= set(WAYS), f"{path.name} holds ways that are not there any more"


@pytest.mark.slow
class TestBothRoads:
    def test_side_by_side(self, few, tmp_path, monkeypatch, say):
        monkeypatch.setattr(making, "MEMORY", tmp_path)
        try:
            golden, where_from = making.golden_ways("0.1", FEW, files=tmp_path / "none")
        except making.NoHistory as error:
            say(f"golden bytes of 0.1: nothing could be made side by side: {error}")
            assert making.file_for("0.1", environment()), "without the history there must be a file"
            return
        assert f"2 ways made side by side from commit {making.commit_of('0.1')[:12]}" in where_from
        assert "compared with" not in where_from
        assert all(differences(golden[name], few[name]) == [] for name in FEW)
        assert not list(tmp_path.iterdir()), "something was left behind"

    def test_from_a_file(self, few, tmp_path, without_history):
        path = making.write("0.1", few, tmp_path)
        golden, where_from = making.golden_ways("0.1", FEW, tmp_path, without_history)
        assert golden == few
        assert where_from == f"golden bytes of 0.1: 2 ways compared with 0.1/{path.name}"

    def test_a_file_of_another_environment_is_not_used(self, few, tmp_path, without_history):
        path = making.write("0.1", few, tmp_path)
        content = json.loads(path.read_text(encoding="utf-8"))
        content["environment"]["processor"] = "another"
        path.write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(making.NoHistory):
            making.golden_ways("0.1", FEW, tmp_path, without_history)

    def test_a_way_that_the_file_does_not_hold_is_asked_of_the_history(self, few, tmp_path, without_history):
        making.write("0.1", {FEW[0]: few[FEW[0]]}, tmp_path)
        with pytest.raises(making.NoHistory):
            making.golden_ways("0.1", FEW, tmp_path, without_history)


def test_without_file_and_history_the_remedy_is_named(tmp_path, without_history):
    with pytest.raises(making.NoHistory, match="get a full clone with git fetch --unshallow"):
        making.golden_ways("0.1", FEW, tmp_path, without_history)


def test_a_file_of_another_commit_is_refused(tmp_path, without_history):
    path = making.write("0.1", {}, tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(making.commit_of("0.1"), "0" * 40), encoding="utf-8")
    with pytest.raises(ValueError, match="names another commit"):
        making.golden_ways("0.1", FEW, tmp_path, without_history)


def test_nothing_that_is_compared_names_the_version_of_erasable():
    assert not {"erasable", "kernels"} & set(environment())


def test_only_adapters_know_how_a_version_is_built():
    others = [path for path in making.FILES.glob("*.py") if not path.name.startswith("read_")]
    built = ("from " + "erasable", "import " + "erasable")
    assert [path.name for path in others if any(words in path.read_text(encoding="utf-8") for words in built)] == []


class TestWritingAFile:
    """With made-up digests, and nothing run."""

    @pytest.fixture
    def golden(self, tmp_path, monkeypatch):
        """Run scripts/golden as if the released code gave these digests."""

        def golden(**digests: str) -> dict[str, str]:
            step = {name: [[0, "shared", "item", "<f4", [1], digest]] for name, digest in digests.items()}
            made = {
                name: {"description": name, "steps": {"learn": {"stages": stages, "solved": [], "rows": []}}}
                for name, stages in step.items()
            }
            monkeypatch.setattr(write_file, "made_from_history", lambda version, names: made)
            write_file.main(["0.1"], tmp_path)
            (path,) = tmp_path.glob("0.1/*.json")
            kept = making.kept_ways(path, "0.1")
            return {name: way["steps"]["learn"]["stages"][0][-1] for name, way in kept.items()}

        return golden

    def test_a_new_way_is_added(self, golden):
        assert golden(old="12") == {"old": "12"}
        assert golden(old="12", new="34") == {"old": "12", "new": "34"}

    def test_a_digest_that_is_there_is_never_replaced(self, golden):
        golden(old="12")
        with pytest.raises(SystemExit, match="old: learn: stages, 0 shared item: has other bytes"):
            golden(old="13")
        assert golden() == {"old": "12"}

    def test_a_version_that_was_not_released_is_refused(self):
        with pytest.raises(SystemExit, match="where VERSION is one of"):
            write_file.main(["0.0"])


@pytest.fixture
def without_history(tmp_path_factory) -> Path:
    """A repository that knows which commit a release is, and does not hold it: what a shallow clone is."""
    root = tmp_path_factory.mktemp("shallow")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    shutil.copy(making.ROOT / "releases.toml", root)
    return root
