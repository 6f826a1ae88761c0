"""How an operation works: threads, who hears about it, and where its tasks run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from erasable.errors import WrongUse
from erasable.grouping import GroupingEffort
from erasable.models import Effort
from erasable.operations.reporting import SILENT, Reporter
from erasable.training import LOCAL, Executor


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Work:
    """How an operation works, none of which changes a byte: threads, who hears about it, and where tasks run."""

    threads: int = field(default_factory=available_cores)
    reporter: Reporter = SILENT
    executor: Executor = LOCAL

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise WrongUse(f"{self.threads} threads make no sense: give 1 or more")

    @property
    def grouping(self) -> GroupingEffort:
        """How users are grouped."""
        return GroupingEffort(self.threads, self.reporter.track, self.reporter.note)

    @contextmanager
    def training(self, label: str, samples: int) -> Iterator[Effort]:
        """Follow training of a known size."""
        with self.reporter.track(label, samples) as advance:
            yield Effort(self.threads, advance)


QUIET_WORK = Work()
