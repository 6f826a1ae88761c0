"""How an operation tells the one who called it what goes on: notes, doubts, and how far long work has come."""

import inspect
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from erasable.errors import ErasableWarning

Advance = Callable[[int], None]
LOG = logging.getLogger("erasable")
LOG.addHandler(logging.NullHandler())
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_BAR = threading.Lock()
_SECONDS_WITHOUT_A_BAR = 0.5


class Reporter(Protocol):
    """Hears notes, doubts, and how far long work has come."""

    def note(self, text: str) -> None:
        """Hear a fact worth knowing."""

    def doubt(self, text: str) -> None:
        """Hear that something was done which is most likely not what was meant."""

    def track(self, label: str, total: int | None = None) -> AbstractContextManager[Advance]:
        """Follow work, of a known size if it is; what is yielded is called with each part done."""


class Silent:
    """Hears nothing."""

    def note(self, text: str) -> None:
        """Ignore a note."""

    def doubt(self, text: str) -> None:
        """Ignore a doubt."""

    @contextmanager
    def track(self, label: str, total: int | None = None) -> Iterator[Advance]:
        """Ignore progress."""
        yield lambda done: None


SILENT = Silent()


class Bars:
    """Shows how far work has come on standard error, with a bar that vanishes when it is done."""

    def __init__(self, shown: bool = True, console: Console | None = None, after: float = 0.0) -> None:
        self._shown = shown
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._after = after  # seconds: what is done sooner is not worth a bar

    @contextmanager
    def track(self, label: str, total: int | None = None) -> Iterator[Advance]:
        """Show a bar, with the time left if the size is known; of several threads only one shows its own."""
        if not (self._shown and _can_show(self._console) and _BAR.acquire(blocking=False)):
            yield lambda done: None
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        progress = Progress(*columns, console=self._console, transient=True)
        task = progress.add_task(label, total=total)
        try:
            with _begun_after(self._after, progress):
                yield lambda done: progress.advance(task, done)
        finally:
            _BAR.release()


@contextmanager
def _begun_after(seconds: float, progress: Progress) -> Iterator[None]:
    """Show progress once some seconds have passed, until the block ends."""
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


class LibraryReporter(Bars):
    """Logs notes under the name erasable, warns of doubts, and shows bars; all in Python's words."""

    def __init__(self, progress: bool = True) -> None:
        super().__init__(progress, after=_SECONDS_WITHOUT_A_BAR)

    def note(self, text: str) -> None:
        """Log a note."""
        LOG.info("%s", str(text))

    def doubt(self, text: str) -> None:
        """Warn, in the line of the caller's own code."""
        warnings.warn(str(text), ErasableWarning, stacklevel=_levels_to_caller())


def _can_show(console: Console) -> bool:
    """Whether standard error is a terminal, or a notebook that can show bars."""
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None
    return sys.stderr is not None and sys.stderr.isatty()


def _levels_to_caller() -> int:
    """Return how far up the first line is that is not the package's own, counted from the caller of this."""
    frame, levels = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, levels = frame.f_back, levels + 1
    return max(levels, 1)
