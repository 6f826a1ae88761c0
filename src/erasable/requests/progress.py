"""How far the worker has come, written into the queue for whoever looks at it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from erasable.requests.database import Connection, Database
from erasable.requests.lease import Lease

_SECONDS_BETWEEN = 1.0


@dataclass(frozen=True)
class Progress:
    """What the worker does just now."""

    batch: str
    step: str
    done: int
    total: int | None

    @property
    def share(self) -> float | None:
        """How much of the step is done, from 0 to 1, if that is known."""
        return min(1.0, self.done / self.total) if self.total else None


def read_progress(database: Database) -> Progress | None:
    """Return what the worker does just now, None if it waits."""
    rows = database.read(lambda connection: connection.execute("SELECT * FROM progress"))
    return next(
        (Progress(one["batch_number"], one["step_name"], one["done_count"], one["total_count"]) for one in rows), None
    )


class QueueReporter:
    """Writes progress into the queue, not too often."""

    def __init__(self, lease: Lease, batch: str) -> None:
        self._lease = lease
        self._batch = batch

    def note(self, text: str) -> None:
        """Ignore notes: they are for whoever runs a command."""

    def doubt(self, text: str) -> None:
        """Ignore doubts, for the same reason."""

    @contextmanager
    def track(self, label: str, total: int | None = None) -> Iterator["_Advance"]:
        """Follow a step of the work."""
        step = _Advance(self._lease, self._batch, label, total)
        step.write()
        yield step

    def clear(self) -> None:
        """Say that nothing is being done any more."""
        self._lease.change(lambda connection: connection.execute("DELETE FROM progress"))


class _Advance:
    def __init__(self, lease: Lease, batch: str, label: str, total: int | None) -> None:
        self._lease = lease
        self._facts = (batch, label, total)
        self._done = 0
        self._written = 0.0

    def __call__(self, done: int) -> None:
        self._done += done
        if time.monotonic() - self._written > _SECONDS_BETWEEN:
            self.write()

    def write(self) -> None:
        batch, label, total = self._facts
        self._written = time.monotonic()
        values = (batch, label, self._done, total, time.time())

        def write(connection: Connection) -> None:
            connection.execute("DELETE FROM progress")
            connection.execute("INSERT INTO progress VALUES (?, ?, ?, ?, ?)", values)

        self._lease.change(write)
