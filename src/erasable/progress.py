"""Reporting progress: long work reports to a `Reporter`, which shows it, stores it, or ignores it.

Grouping, training and the operations report notes, doubts and parts done. The command shows bars on the terminal, the
library shows bars and warnings, and the worker writes progress into the queue (`requests/lease.py`) for others to show.
"""

import inspect
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from erasable.errors import ErasableWarning

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress

Advance = Callable[[int], None]
LOG = logging.getLogger("erasable")
LOG.addHandler(logging.NullHandler())
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_BAR = threading.Lock()
_SECONDS_WITHOUT_A_BAR = 0.5


class Reporter(Protocol):
    """Receives notes, doubts and the progress of long work."""

    def note(self, text: str) -> None:
        """Report a fact worth knowing."""

    def doubt(self, text: str) -> None:
        """Report that something was done that is probably not what was meant."""

    def track(self, label: str, total: int | None = None) -> AbstractContextManager[Advance]:
        """Track a step of work; yields a function to call with the size of each part done."""


def ignore(done: int) -> None:
    """Ignore a part done."""


class Silent:
    """Ignores everything."""

    def note(self, text: str) -> None:
        """Ignore a note."""

    def doubt(self, text: str) -> None:
        """Ignore a doubt."""

    @contextmanager
    def track(self, label: str, total: int | None = None) -> Iterator[Advance]:
        """Ignore progress."""
        yield ignore


SILENT = Silent()


@dataclass(frozen=True)
class Progress:
    """The progress of a step of a batch, as the worker recorded it."""

    batch: str
    step: str
    done: int
    total: int | None

    @property
    def share(self) -> float | None:
        """The part of the step that is done, from 0 to 1, if known."""
        return min(1.0, self.done / self.total) if self.total else None


class Retold:
    """Passes the progress of another process to a reporter, step by step."""

    def __init__(self, reporter: Reporter, steps: ExitStack, label: str) -> None:
        self._reporter = reporter
        self._steps = steps
        self._last: Progress | None = None
        self._advance = steps.enter_context(reporter.track(label))

    def __call__(self, progress: Progress | None) -> None:
        """Pass on the latest progress; None is ignored."""
        if progress is None:
            return
        last = self._last
        if last is None or (last.batch, last.step, last.total) != (progress.batch, progress.step, progress.total):
            self._steps.close()
            self._advance = self._steps.enter_context(self._reporter.track(progress.step, progress.total))
            last = None
        self._advance(progress.done - (last.done if last else 0))
        self._last = progress


@contextmanager
def retelling(reporter: Reporter, label: str) -> Iterator[Retold]:
    """Pass the progress of another process to a reporter during the block; until there is some, show a label."""
    with ExitStack() as steps:
        yield Retold(reporter, steps, label)


class Bars:
    """Shows progress on standard error, with a bar that vanishes at the end."""

    def __init__(self, shown: bool = True, console: "Console | None" = None, after: float = 0.0) -> None:
        self._shown = shown
        self._given = console
        self._after = after  # seconds: shorter work is not worth a bar

    @cached_property
    def console(self) -> "Console":
        """Where bars are shown, so that what is printed meanwhile stands above them."""
        from rich.console import Console

        return self._given or Console(stderr=True, highlight=False, soft_wrap=True)

    @contextmanager
    def track(self, label: str, total: int | None = None) -> Iterator[Advance]:
        """Show a bar, with the time left if the size is known; only one thread at a time shows a bar."""
        if not (self._shown and _can_show(self.console) and _BAR.acquire(blocking=False)):
            yield ignore
            return
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        progress = Progress(*columns, console=self.console, transient=True)
        task = progress.add_task(label, total=total)
        try:
            with _begun_after(self._after, progress):
                yield lambda done: progress.advance(task, done)
        finally:
            _BAR.release()


class LibraryReporter(Bars):
    """The reporter of the library: notes go to the logger `erasable`, doubts become warnings, progress bars."""

    def __init__(self, progress: bool = True) -> None:
        super().__init__(progress, after=_SECONDS_WITHOUT_A_BAR)

    def note(self, text: str) -> None:
        """Log a note."""
        LOG.info("%s", str(text))

    def doubt(self, text: str) -> None:
        """Issue a warning at the line of the user's code."""
        warnings.warn(str(text), ErasableWarning, stacklevel=_levels_to_caller())


@contextmanager
def _begun_after(seconds: float, progress: "RichProgress") -> Iterator[None]:
    """Show progress after some seconds, until the block ends."""
    timer = threading.Timer(seconds, progress.start)
    timer.daemon = True
    timer.start() if seconds else progress.start()
    try:
        yield
    finally:
        if seconds:
            timer.cancel()
            timer.join()
        if progress.live.is_started:
            progress.stop()


def _can_show(console: "Console") -> bool:
    """Whether standard error is a terminal, or a notebook that can show bars."""
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None
    return sys.stderr is not None and sys.stderr.isatty()


def _levels_to_caller() -> int:
    """Return the `stacklevel`, from the caller, of the first frame outside this package."""
    frame, levels = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, levels = frame.f_back, levels + 1
    return max(levels, 1)
