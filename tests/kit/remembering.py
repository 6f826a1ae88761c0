"""A reporter that remembers what it was told."""

from collections.abc import Iterator
from contextlib import contextmanager


class Remembering:
    """A reporter that remembers what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.work: list[tuple[str, int]] = []
        self.done = 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def doubt(self, text: str) -> None:
        self.notes.append(text)

    @contextmanager
    def track(self, label: str, total: int | None = None) -> Iterator:
        self.work.append((label, total))
        yield self._advance

    def _advance(self, done: int) -> None:
        self.done += done
