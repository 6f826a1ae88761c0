"""No process of ours imports from the folder that it is started in; tasks carried out by processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from erasable.errors import Refused
from erasable.models import Effort
from erasable.operations.work import Processes, safe_path
from kit import pieces
from kit.choosing import some

# Modules that Python's own start needs: one of these in the working folder is run by whoever starts there carelessly.
BAITS = ("enum", "signal", "random", "tempfile", "multiprocessing")
START = """
import multiprocessing, sys
sys.path[:] = [path for path in sys.path if path not in ("", {here!r})]
from contextlib import nullcontext
from erasable.operations.work import safe_path
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


@pytest.mark.parametrize(("how", "safe"), some([("safe_path()", True), ("nullcontext()", False)], 1))
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


class TestProcesses:
    def test_outcomes_come_with_their_tasks_and_progress_is_heard(self):
        heard, watched = [], []
        found = Processes(2, watched.append).map(pieces.doubled, [1, 2, 3], Effort(1, heard.append))
        assert {task: outcome for task, (outcome, _) in found} == {1: 2, 2: 4, 3: 6}
        assert sum(heard) == 6
        assert any(watched)
        assert watched[-1] == ()

    @pytest.mark.full
    def test_tasks_with_the_same_key_go_to_the_same_process_in_order(self):
        executor = Processes(2, lambda running: None, together=lambda number: number % 2)
        found = [(task, pid) for task, (_, pid) in executor.map(pieces.doubled, [1, 2, 3, 4, 5], Effort())]
        odd, even = [[one for one in found if one[0] % 2 == rest] for rest in (1, 0)]
        assert ([task for task, _ in odd], [task for task, _ in even]) == ([1, 3, 5], [2, 4])
        assert len({pid for _, pid in odd}) == len({pid for _, pid in even}) == 1
        assert os.getpid() not in {pid for _, pid in found}

    def test_one_that_fails_ends_all_in_words(self):
        with pytest.raises(Refused, match="7: give another number; finished results are kept"):
            list(Processes(1, lambda running: None).map(pieces.refused, [7, 8], Effort()))

    @pytest.mark.full
    def test_an_outcome_that_can_t_be_sent_is_noticed(self, capfd):
        with pytest.raises(Refused, match="could not send back a result"):
            list(Processes(1, lambda running: None).map(pieces.unsendable, [7], Effort()))

    def test_no_task_needs_no_process(self):
        assert list(Processes(2, lambda running: None).map(pieces.doubled, [], Effort())) == []
