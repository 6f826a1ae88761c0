"""How grouping works, none of which changes a byte: rows shared out to threads, and whom to tell about progress."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from erasable.threads import pool_of

Advance = Callable[[int], None]

_PIECES_PER_THREAD = 32


class Track(Protocol):
    """Follows a part of the work, of a known size if it is; what is yielded is called with each portion done."""

    def __call__(self, label: str, total: int | None = None) -> AbstractContextManager[Advance]:
        """Follow work while inside."""


def ignore(done: int) -> None:
    """Hear how far work has come, and do nothing about it."""


@contextmanager
def untracked(label: str, total: int | None = None) -> Iterator[Advance]:
    """Follow nothing."""
    yield ignore


@dataclass(frozen=True)
class GroupingEffort:
    """With how many threads to group, who follows it, and who is told what is worth knowing."""

    threads: int = 1
    track: Track = untracked
    note: Callable[[str], None] = lambda text: None


ALONE = GroupingEffort()


def over_ranges(work: Callable[[int, int], None], count: int, threads: int, advance: Advance = ignore) -> None:
    """Call `work(begin, end)` on ranges that cover 0 … count; it gains if it releases the interpreter's lock."""
    pieces = min(count, threads * _PIECES_PER_THREAD)
    bounds = [count * piece // pieces for piece in range(pieces + 1)] if pieces else []

    def do(begin: int, end: int) -> None:
        work(begin, end)
        advance(end - begin)

    with pool_of(threads) as pool:
        for finished in [pool.submit(do, begin, end) for begin, end in pairwise(bounds)]:
            finished.result()
