"""No process of ours imports from the folder that it is started in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from erasable.operations.processes import safe_path

# Modules that Python's own start needs: one of these in the working folder is run by whoever starts there carelessly.
BAITS = ("enum", "signal", "random", "tempfile", "multiprocessing")
START = """
import multiprocessing, sys
sys.path[:] = [path for path in sys.path if path not in ("", {here!r})]
from contextlib import nullcontext
from erasable.operations.processes import safe_path
if __name__ == "__main__":
    with {how}:
        context = multiprocessing.get_context("spawn")
        context.Queue()
        process = context.Process(target=print, args=("started",))
        process.start()
    process.join()
    assert process.exitcode == 0
"""


@pytest.fixture
def trap(tmp_path) -> Path:
    """A folder with modules that write down that they were run."""
    folder = tmp_path / "trap"
    folder.mkdir()
    for name in BAITS:
        marker = folder / f"{name}.was-run"
        (folder / f"{name}.py").write_text(f"open({str(marker)!r}, 'w').close()\nraise ImportError('a trap')\n")
    return folder


def sprung(folder):
    return sorted(path.stem for path in folder.glob("*.was-run"))


@pytest.mark.parametrize(("how", "safe"), [("safe_path()", True), ("nullcontext()", False)])
def test_a_worker_process_imports_nothing_from_where_it_stands(trap, tmp_path, how, safe):
    script = tmp_path / "start.py"
    script.write_text(START.format(how=how, here=str(trap)))
    done = subprocess.run([sys.executable, str(script)], cwd=trap, capture_output=True, text=True)
    assert (sprung(trap) == []) == safe
    assert (done.returncode == 0 and "started" in done.stdout) == safe


def test_the_setting_is_put_back(monkeypatch):
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    with safe_path():
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert "PYTHONSAFEPATH" not in os.environ
    monkeypatch.setenv("PYTHONSAFEPATH", "0")
    with safe_path(), safe_path():
        pass
    assert os.environ["PYTHONSAFEPATH"] == "0"
