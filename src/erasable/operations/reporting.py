"""How an operation tells the one who called it what goes on; who listens (a terminal, nobody) is not known here."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Advance = Callable[[int], None]


class Reporter(Protocol):
    """Hears notes, and how far long work has come."""

    def note(self, text: str) -> None:
        """Hear a fact worth knowing."""

    def track(self, label: str, total: int | None = None) -> AbstractContextManager[Advance]:
        """Follow work, of a known size if it is; what is yielded is called with each part done."""


class Silent:
    """Hears nothing."""

    def note(self, text: str) -> None:
        """Ignore a note."""

    @contextmanager
    def track(self, label: str, total: int | None = None) -> Iterator[Advance]:
        """Ignore progress."""
        yield lambda done: None


SILENT = Silent()
