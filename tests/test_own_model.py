"""`examples/own-model` as its author has it: a package that registers a model, used by command and library."""

import ast
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from erasable import Recommender
from erasable.errors import Refused, UnknownModel
from erasable.models.registry import source_digest

EXAMPLE = Path(__file__).parent.parent / "examples" / "own-model"
SOURCE = EXAMPLE / "src" / "own_model.py"
TEST = EXAMPLE / "tests" / "test_own_model.py"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A table in which even users have even items."""
    rows = [f"{user},{item}" for user in range(24) for item in range(user % 2, 20, 2) if (user + item) % 5]
    path = tmp_path_factory.mktemp("data") / "data.csv"
    path.write_text("\n".join(["user_id,item_id", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder in which the example lies as pip installs it."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(SOURCE, folder)
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    facts = folder / f"own_model-{project['version']}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: own-model\nVersion: {project['version']}\n")
    points = project["entry-points"]["erasable.models"]
    (facts / "entry_points.txt").write_text(
        "\n".join(["[erasable.models]", *(f"{name} = {value}" for name, value in points.items())])
    )
    (facts / "RECORD").write_text("own_model.py,,\n")
    return folder


@pytest.fixture
def bpr(monkeypatch):
    """The class, imported by someone who has not installed it."""
    monkeypatch.syspath_prepend(SOURCE.parent)
    yield importlib.import_module("own_model").BPR
    sys.modules.pop("own_model", None)


def erasable(*words, site=None, cwd):
    """Run the command, with the example installed if a site is given."""
    environment = {**os.environ, "PYTHONPATH": str(site or ""), "COLUMNS": "100"}
    command = [sys.executable, "-m", "erasable", *map(str, words)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def names_in(workspace):
    return [name[:64] for name in sorted(os.listdir(workspace / "checkpoints"))]


def test_it_is_as_small_as_it_says():
    assert len(SOURCE.read_text().splitlines()) <= 150
    assert len(TEST.read_text().splitlines()) <= 15


def test_it_needs_nothing_but_what_units_offer():
    offered = ["erasable.data", "erasable.models", "erasable.seeding", "erasable.seeding.compiled", "erasable.testing"]
    for path in (SOURCE, TEST):
        imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        for node in (node for node in imports if node.module.startswith("erasable")):
            module = importlib.import_module(node.module)
            assert node.module in offered
            assert {alias.name for alias in node.names} <= set(getattr(module, "__all__", vars(module)))


@pytest.mark.full
def test_it_is_learned_served_forgotten_verified_and_upgraded_by_command(site, data, tmp_path):
    shown = " ".join(erasable("learn", "--model", "bpr", "--help", site=site, cwd=tmp_path).stdout.split())
    assert "als|ease|nmf|dmf|item-knn|popular|sasrec|two-tower|bpr" in shown
    assert "32 for bpr" in shown

    def run(*words, code=0):
        found = erasable(*words, site=site, cwd=tmp_path)
        assert found.returncode == code, found.stdout + found.stderr
        return found.stdout + found.stderr

    run("learn", data, "--into", "shop", "--model", "bpr", "--factors", "8", "--epochs", "10")
    settings = json.loads((tmp_path / "shop" / "config.json").read_text())
    assert (settings["model"]["name"], settings["model"]["settings"]["factors"]) == ("bpr", 8)
    (first, *_) = json.loads(run("recommend", "shop", "--user", "4", "--json"))["recommendations"]
    assert int(first["items"][0]["item_id"]) % 2 == 0
    run("forget", "shop", "--user", "4")
    assert run("verify", "shop").startswith("identical")
    for words in (["recommend", "--user", "5"], ["verify"]):
        refused = erasable(words[0], "shop", *words[1:], cwd=tmp_path)
        assert (refused.returncode != 0, refused.stdout) == (True, "")
        assert "this workspace's model is 'bpr', which no installed package brings" in refused.stderr
    before = names_in(tmp_path / "shop")
    with (site / "own_model.py").open("a") as file:
        file.write("# changed\n")
    assert "with other code: the source files of the model have changed since" in run("verify", "shop", code=3)
    assert "1 checkpoint with the same bytes here" in run("upgrade", "shop")
    assert names_in(tmp_path / "shop") == before
    assert run("verify", "shop").startswith("identical")


@pytest.mark.full
def test_the_commands_of_the_page_run_as_they_stand(site, tmp_path):
    page = (EXAMPLE.parent.parent / "docs" / "how-to" / "add-a-model.md").read_text()
    rows = [f"{user},{item}" for user in (7, 42, 51, 60) for item in range(user % 4, 8)]
    (tmp_path / "ratings.csv").write_text("\n".join(["user_id,item_id", *rows]) + "\n")
    install, *commands = [
        line for block in re.findall(r"```bash\n(.*?)```", page, re.DOTALL) for line in block.splitlines()
    ]
    assert install == "pip install -e examples/own-model"  # which the fixture has done
    assert len(commands) == 4
    for line in commands:
        _, *words = shlex.split(line)
        found = erasable(*words, site=site, cwd=tmp_path)
        assert found.returncode == 0, found.stdout + found.stderr


def test_its_object_is_used_saved_and_loaded_without_installing(bpr, data, tmp_path):
    recommender = Recommender(bpr(factors=4, epochs=2)).fit(data)
    recommender.forget("3")
    recommender.save(tmp_path / "shop")
    with pytest.raises(UnknownModel, match="no installed package brings"):
        Recommender.load(tmp_path / "shop")
    for handed_over in (bpr, bpr()):
        loaded = Recommender.load(tmp_path / "shop", model=handed_over)
        assert loaded.verify().identical
        assert loaded.recommend("5") == recommender.recommend("5")


def test_without_similar_it_answers_with_what_it_recommends_to_someone_who_has_this_one_item(bpr, data):
    recommender = Recommender(bpr(factors=4, epochs=10), progress=False).fit(data)
    found = recommender.similar_items("2", k=5).to_pylist()
    expected = recommender.recommend(history=["2"], k=5).to_pylist()
    assert [(row["similar_id"], row["score"]) for row in found] == [(row["item_id"], row["score"]) for row in expected]
    assert all(row["score"] > 0 for row in found)


def test_one_that_was_typed_in_is_used_in_memory_and_not_saved(bpr, data, tmp_path):
    names = {"BPR": bpr, "__name__": "typed_in"}
    exec("class Typed(BPR):\n    name = 'typed'", names)
    recommender = Recommender(names["Typed"](factors=4, epochs=2)).fit(data)
    assert source_digest(names["Typed"]()) == ""
    assert recommender.verify().identical
    with pytest.raises(Refused, match="no source file, so nobody could open it again: define it in its own module"):
        recommender.save(tmp_path / "shop")
    assert not (tmp_path / "shop").exists()
