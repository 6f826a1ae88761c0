"""Reporting: an operation tells notes and how far it has come, to whoever listens."""

import logging
import os
import pty
import subprocess
import sys
import threading
from types import SimpleNamespace
from unittest.mock import ANY

import pytest
from rich.console import Console

from erasable import ErasableWarning
from erasable.chain.plan import samples_of
from erasable.errors import option, said
from erasable.operations import DiskStorage, Work, forget, learn, plan, recommend, verify
from erasable.progress import SILENT, Bars, LibraryReporter, Silent
from erasable.requests import Request
from kit.choosing import some


def test_learning_tells_how_the_input_was_understood_and_every_sample(table, config, reporter, tmp_path):
    learn(table, tmp_path / "shop", config, work=Work(2, reporter))
    assert reporter.notes == ["a Table; user_id, item_id, rating", "rating scale 1–5"]
    with DiskStorage(tmp_path / "shop").reading() as session:
        samples = samples_of(session.state().dataset)
    assert reporter.work == [
        ("reading", None),
        ("looking for erased people", None),
        ("learning", samples),
        ("saving", None),
    ]
    assert reporter.done == samples > 0


def test_forgetting_tells_the_samples_that_were_planned(storage, reporter):
    with storage.reading() as session:
        user = session.state().dataset.groups[1].users[0]
    planned = plan(storage, [Request(user)])
    forget(storage, [Request(user)], work=Work(1, reporter))
    assert reporter.work == [
        ("evaluating", None),
        ("forgetting", planned.samples),
        ("scanning", ANY),
        ("evaluating", None),
        ("certifying", 1),
    ]
    assert reporter.notes == []
    assert reporter.done == planned.samples + (reporter.work[2][1] or 0) + 1  # one certificate


def test_verifying_and_recommending_tell_how_far_they_are(storage, reporter):
    verify(storage, work=Work(1, reporter))
    assert reporter.done == reporter.work[0][1]
    recommend(storage, ["ann", "bob"], work=Work(1, reporter))
    assert reporter.work[1] == ("recommending", 2)
    assert reporter.done == reporter.work[0][1] + 2


def test_silence_takes_everything(capsys):
    for silent in (SILENT, Silent()):
        silent.note("a note")
        silent.doubt("a doubt")
        with silent.track("work", 3) as advance:
            advance(3)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


class TestTheLibrary:
    def test_notes_are_logged_in_pythons_words(self, caplog):
        with caplog.at_level(logging.INFO, logger="erasable"):
            LibraryReporter().note(said("give a larger ", option("anchors")))
        assert [(one.name, one.levelname, one.message) for one in caplog.records] == [
            ("erasable", "INFO", "give a larger anchors")
        ]

    def test_nothing_is_shown_where_nobody_has_asked_for_the_log(self):
        code = "from erasable.progress import LOG; LOG.error('a note')"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert (found.stdout, found.stderr) == ("", "")

    def test_doubts_are_warnings_in_the_callers_own_line(self):
        with pytest.warns(ErasableWarning, match="give a smaller learning_rate") as caught:
            LibraryReporter().doubt(said("give a smaller ", option("learning_rate")))
        assert caught[0].filename == __file__


LIBRARY = """
import sys, threading, time
from erasable.progress import LibraryReporter
reporter = LibraryReporter({progress})

def work():
    with reporter.track("working", 2) as advance:
        advance(1)
        time.sleep({seconds})
        advance(1)

threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("done")
"""


def shown_on_a_terminal(code: str) -> tuple[str, str]:
    """Run code with standard error on a terminal; return standard output, and what the terminal got."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # how a terminal says that nobody writes any more
            break
        shown += part
    os.close(ours)
    return process.communicate()[0].decode(), shown.decode()


class TestBars:
    @pytest.mark.parametrize(
        ("seconds", "progress", "is_shown"), some([(1.5, True, True), (0, True, False), (1.5, False, False)], 2)
    )
    def test_a_terminal_shows_one_of_several_if_it_takes_a_while(self, seconds, progress, is_shown):
        out, shown = shown_on_a_terminal(LIBRARY.format(seconds=seconds, progress=progress))
        assert out == "done\n"
        assert ("working" in shown) is is_shown
        assert "Error" not in shown
        if not is_shown:
            assert shown == ""

    def test_where_standard_error_is_no_terminal_nothing_is_shown(self):
        code = LIBRARY.format(seconds=0.8, progress=True)
        environment = {**os.environ, "FORCE_COLOR": "1"}
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        )
        assert (found.stdout, found.stderr) == ("done\n", "")

    @pytest.mark.parametrize("has_widgets", [True, False])
    def test_a_notebook_shows_them_if_it_can(self, monkeypatch, has_widgets):
        begun = []
        monkeypatch.setattr("erasable.progress.find_spec", lambda name: object() if has_widgets else None)
        monkeypatch.setattr("rich.progress.Progress.start", lambda self: begun.append(self))
        with Bars(console=Console(stderr=True, force_jupyter=True)).track("working", 1) as advance:
            advance(1)
        assert len(begun) == has_widgets

    def test_work_that_fails_leaves_the_place_to_the_next(self, monkeypatch):
        monkeypatch.setattr(
            "sys.stderr", SimpleNamespace(isatty=lambda: True, write=lambda text: None, flush=lambda: None)
        )
        bars, begun = Bars(), []
        monkeypatch.setattr("rich.progress.Progress.start", lambda self: begun.append(threading.current_thread()))
        for _ in range(2):
            with pytest.raises(KeyError), bars.track("working"):
                raise KeyError
        assert len(begun) == 2
