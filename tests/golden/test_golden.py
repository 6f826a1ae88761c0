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
from golden.run_ways import EVERY, IS_FROZEN
from golden.ways import UNRELEASED, WAYS, ways_of

VERSIONS = list(making.ADAPTERS)
FEW = ("ease-retrain-stage-1-independent-dense-followed", "ease-retrain-solved-0.5-fixed-dense-followed")
"""Ways that need little compiled code, so that the old code is quick to run."""
FIRST = {(way.model, way.strategy, way.since): name for name, way in reversed(WAYS.items())}
FIRST_UNRELEASED = list(UNRELEASED)[:1]


@pytest.fixture(scope="module")
def few():
    return making.made_here(FEW)


def promised_of(name, made, version="0.1"):
    """Return what a version made of a way, with the steps after which the present code promises the same bytes."""
    must_equal, way = importlib.import_module(making.PRESENT).must_equal, EVERY[name]
    steps = {step: digests for step, digests in made["steps"].items() if must_equal(version, way, made, step)}
    return {**made, "steps": steps}


def was_revised(name, version):
    """Whether the model of a way has other numbers than in a release."""
    return version in importlib.import_module(making.PRESENT).CHANGED_SINCE.get(WAYS[name].model, ())


def compared(promised, found):
    """Say how a way that was made differs from what was promised."""
    return differences(promised, {**found, "steps": {step: found["steps"][step] for step in promised["steps"]}})


def test_the_present_code_gives_the_bytes_that_were_kept_of_the_first_way_of_each_model_and_strategy():
    """Where no file was made in this environment the full tests make one from the history."""
    present = making.made_here([*FIRST.values(), *FIRST_UNRELEASED])
    kept_of = {
        version: [name for name in FIRST.values() if name in ways_of(version) and not was_revised(name, version)]
        for version in VERSIONS
    }
    for version, names in [*kept_of.items(), *([(making.UNRELEASED, FIRST_UNRELEASED)] if UNRELEASED else [])]:
        path = making.file_for(version, environment())
        if path is None:
            pytest.skip(f"no file of {version} was made in this environment: run this with --all")
        kept = making.kept_ways(path, version)
        promised = {
            name: kept[name] if version == making.UNRELEASED else promised_of(name, kept[name], version)
            for name in names
        }
        assert all(way["steps"] for way in promised.values())
        found = [f"{name}, {line}" for name, way in promised.items() for line in compared(way, present[name])]
        assert not found, "\n".join(found[:30])


@pytest.mark.full
def test_the_present_code_gives_the_bytes_of_every_release(say):
    released = {version: making.golden_ways(version, ways_of(version)) for version in VERSIONS}
    present = making.made_here(list(WAYS))
    for version, (golden, where_from) in released.items():
        promised = {name: way for name in golden if (way := promised_of(name, golden[name], version))["steps"]}
        say(f"{where_from}; {len(promised)} of {len(golden)} ways must be equal")
        found = [f"{name}, {line}" for name, way in promised.items() for line in compared(way, present[name])]
        assert not found, "\n".join([f"{len(found)} arrays differ from {version}:", *found[:30]])
        unrevised = [name for name in ways_of(version) if not was_revised(name, version)]
        assert not any(was_revised(name, version) for name in promised)
        assert len(promised) >= (35 if version == "0.1" else len(unrevised))


@pytest.mark.full
@pytest.mark.skipif(not UNRELEASED, reason="the releases have all ways")
def test_the_present_code_gives_the_bytes_that_were_kept_of_what_no_release_has(say):
    path = making.file_for(making.UNRELEASED, environment())
    if path is None:
        pytest.skip("no file was made in this environment: run scripts/golden unreleased on a commit that is trusted")
    kept, present = making.kept_ways(path, making.UNRELEASED), making.made_here(list(UNRELEASED))
    say(f"golden bytes of ways that no release has: {len(kept)} ways compared with {path.relative_to(making.FILES)}")
    assert kept.keys() == present.keys()
    found = [f"{name}, {line}" for name, way in kept.items() for line in differences(way, present[name])]
    assert not found, "\n".join(found[:30])


def test_no_way_that_no_release_has_is_one_of_a_release():
    assert not UNRELEASED.keys() & WAYS.keys()


def test_a_release_has_its_own_ways_and_those_of_earlier_ones():
    first, second, third = map(ways_of, ("0.1", "0.2", "0.3"))
    assert (second[: len(first)], third[: len(second)]) == (first, second)
    assert (len(first), len(second), len(third)) == (104, 113, 132)
    assert not [name for name in first if "--neighbours" in WAYS[name].given]
    assert all("--neighbours" in WAYS[name].given for name in second[len(first) :])
    assert all(WAYS[name].model == "als" or "--vectors" in WAYS[name].given for name in third[len(second) :])
    assert not [name for name in second if "--vectors" in WAYS[name].given]
    assert ways_of("0.10") == list(WAYS)


@pytest.fixture(scope="module")
def changed():
    """What 0.1 gave where the present code does not promise the same bytes after every step, for the items' sake."""
    golden, _ = making.golden_ways("0.1", [name for name in ways_of("0.1") if not was_revised(name, "0.1")])
    return {name: way for name, way in golden.items() if promised_of(name, way) != way}


@pytest.mark.full
class TestItemsThatFollowThePeople:
    """What differs from 0.1 differs because its catalogue was frozen, and for no other reason."""

    def test_with_the_items_declared_that_0_1_froze_every_byte_is_that_of_0_1(self, changed):
        made = making.made_here([f"{IS_FROZEN}{name}" for name in changed if WAYS[name].special != "core"])
        found = [
            f"{name}, {line}"
            for name, way in changed.items()
            if f"{IS_FROZEN}{name}" in made
            for line in differences(way, {**made[f"{IS_FROZEN}{name}"], "description": way["description"]})
        ]
        assert not found, "\n".join(found[:30])
        assert len(made) >= 30

    def test_what_a_way_gives_that_is_not_promised_differs(self, changed):
        """Sparse data, learned at first in one group from everyone: equal. Else an item is missing somewhere."""
        sparse = {name: way for name, way in changed.items() if not promised_of(name, way)["steps"]}
        present = making.made_here(list(sparse))
        first = {name: {**way, "steps": {"learn": way["steps"]["learn"]}} for name, way in sparse.items()}
        same = {name for name, way in first.items() if not compared(way, present[name])}
        at_once = {name for name in sparse if WAYS[name].strategy == "retrain"}
        of_everyone = {n for n in at_once if WAYS[n].anchors == "1" and "--holdout" not in WAYS[n].given}
        assert of_everyone
        assert of_everyone <= same <= at_once
        assert all(differences(way, present[name]) for name, way in sparse.items())


@pytest.mark.parametrize("version", VERSIONS)
def test_every_file_is_of_the_commit_that_was_released(version):
    for path in (making.FILES / version).glob("*.json"):
        kept = making.kept_ways(path, version)
        assert set(kept) <= {*ways_of(version)}, f"{path.name} holds ways that are not there any more"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_commit_of_every_release_is_in_the_history(version):
    """Else no other machine could make its digests."""
    git = ("git", "-C", making.ROOT)
    shallow = subprocess.run(
        [*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True, check=False
    )
    if shallow.stdout.strip() != "false":
        pytest.skip("the whole history is not here")
    named = [*git, "merge-base", "--is-ancestor", making.commit_of(version), "HEAD"]
    assert subprocess.run(named, capture_output=True, check=False).returncode == 0


@pytest.mark.full
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
        assert all(compared(promised_of(name, golden[name]), few[name]) == [] for name in FEW)
        assert all(promised_of(name, golden[name])["steps"] for name in FEW)
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
