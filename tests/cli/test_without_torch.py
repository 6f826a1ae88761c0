"""The command where torch is not installed: a torch model is refused with what to install, all else works."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from erasable.extensions import install_command

SOURCES = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory):
    """Return a command that runs beside all installed packages but torch."""
    folder, installed = tmp_path_factory.mktemp("site"), Path(sysconfig.get_paths()["purelib"])
    for path in installed.iterdir():
        if not path.name.startswith(("torch", "functorch")) and path.suffix != ".pth":
            (folder / path.name).symlink_to(path)

    def run(*words):
        environment = {**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{folder}"}
        command = [sys.executable, "-S", "-m", "erasable", *map(str, words)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_torch_model_is_refused_with_what_to_install_and_its_workspace_opens(run, without_torch, tmp_path):
    (tmp_path / "t.csv").write_text("user,item,time\nann,a,1\nann,b,2\nbob,b,3\nbob,c,4\ncat,a,1\ncat,c,2\n")
    shop, needed = tmp_path / "shop", f"needs PyTorch: {install_command('torch')}"
    assert run("learn", tmp_path / "t.csv", "--into", shop, "--model", "sasrec", "--epochs", 1).code == 0
    code, said = without_torch("learn", tmp_path / "t.csv", "--into", tmp_path / "other", "--model", "two-tower")
    assert (code, needed in said, (tmp_path / "other").exists()) == (1, True, False)
    for words in (("recommend", shop, "--user", "ann"), ("forget", shop, "--user", "ann"), ("verify", shop)):
        code, said = without_torch(*words)
        assert code != 0
        assert said.splitlines()[-1] == f"erasable: the model sasrec {needed}"
    assert without_torch("show", shop, "--user", "ann")[0] == 0
    code, said = without_torch("status", shop)
    assert (code, "sasrec" in said) == (0, True)


def test_help_and_other_models_need_no_torch(without_torch, tmp_path):
    (tmp_path / "t.csv").write_text("user,item\nann,a\nann,b\nbob,b\nbob,c\n")
    assert "--torch-threads" in without_torch("learn", "--help")[1]
    assert without_torch("learn", tmp_path / "t.csv", "--into", tmp_path / "shop", "--model", "popular")[0] == 0


def test_comparing_measures_the_others(without_torch, tmp_path):
    rows = [f"{user},{item},{user * item % 7}" for user in range(20) for item in range(user % 4, user % 4 + 6)]
    (tmp_path / "t.csv").write_text("user,item,time\n" + "\n".join(rows) + "\n")
    ways = ("compare", tmp_path / "t.csv", "--quick", "--models", "sasrec:epochs=1,ease")
    code, said = without_torch(*ways)
    assert code == 0
    assert "sasrec:epochs=1 could not be measured: the model sasrec needs PyTorch" in said
    failed, measured = json.loads(without_torch(*ways, "--json")[1])["models"]
    assert (failed["model"], failed["ndcg@10"]) == ("sasrec:epochs=1", None)
    assert failed["failed"].startswith("the model sasrec needs PyTorch")
    assert measured["ndcg@10"] > 0
