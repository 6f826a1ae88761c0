"""The lease of the one worker: who does not renew it loses it, and can't write any more once another has taken it.

Each taking has a number, the fencing token. Whatever a worker writes, into the ledger or the workspace, is written only
while the number is still its own.
"""

import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from erasable.errors import LeaseLost
from erasable.store.ledger import Ledger

_START_FIELD = 19  # of what follows the name in /proc/PID/stat


@dataclass(frozen=True)
class Process:
    """A process of this machine; its number alone may come again."""

    number: int
    start: str

    @staticmethod
    def current() -> "Process":
        """Return this process."""
        return Process(os.getpid(), _start_of(os.getpid()))

    @property
    def alive(self) -> bool:
        """Whether it runs, or is frozen."""
        return self.start != "" and _start_of(self.number) == self.start

    def end(self) -> None:
        """End it at once, frozen or not."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.number, signal.SIGKILL)


class Lease:
    """The right to work on a ledger's requests."""

    def __init__(self, ledger: Ledger, seconds: float, holder: Process | None = None) -> None:
        self._ledger = ledger
        self.seconds = seconds
        self._holder = holder or Process.current()
        self._number: int | None = None
        self.before: Process | None = None
        """Whose lease had run out when this one was to be taken; it may be frozen and keep others from writing."""
        self._before_since = 0.0

    @property
    def number(self) -> int | None:
        """The number of this taking, None if it is not held."""
        return self._number

    @property
    def held(self) -> bool:
        """Whether it was taken and, as far as is known here, not lost."""
        return self._number is not None

    def take(self) -> bool:
        """Take the lease if nobody has it: it has run out, or its holder is gone."""
        # Looked at first: whoever is frozen in the middle of a change keeps all others from writing.
        with self._ledger.reading() as connection:
            if self._is_taken(connection):
                return False
        with self._ledger.writing() as connection:
            if self._is_taken(connection):
                return False
            number = 1 + int(connection.execute("SELECT lease_number FROM lease").fetchone()[0])
            connection.execute(
                "UPDATE lease SET lease_number = ?, process_number = ?, process_start = ?, end_time = ?",
                (number, self._holder.number, self._holder.start, time.time() + self.seconds),
            )
        self._number = number  # not before it is durable: else another might take the same number
        return True

    def end_frozen(self) -> bool:
        """End who had the lease before, and is still there though it had as long again to stop; say whether it was."""
        before = self.before
        if before is None or not before.alive or time.monotonic() - self._before_since < self.seconds:
            return False
        before.end()
        return True

    def renew(self) -> None:
        """Keep the lease for another while."""
        with self.writing() as connection:
            connection.execute("UPDATE lease SET end_time = ?", (time.time() + self.seconds,))

    def release(self) -> None:
        """Give it back, if it is still held."""
        with suppress(LeaseLost), self.writing() as connection:
            connection.execute("UPDATE lease SET end_time = 0, process_number = 0, process_start = ''")
        self._number = None

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Change the ledger as the holder of the lease; refused once another has taken it."""
        with self._ledger.writing() as connection:
            self._check(connection)
            yield connection

    def check(self) -> None:
        """Refuse whoever does not hold the lease any more."""
        with self._ledger.reading() as connection:
            self._check(connection)

    def _is_taken(self, connection: sqlite3.Connection) -> bool:
        """Whether another has the lease now; whose lease ran out and who is still there is kept in mind."""
        row = connection.execute("SELECT * FROM lease").fetchone()
        last = Process(row["process_number"], row["process_start"])
        other, over = last != self._holder and last.alive, time.time() >= row["end_time"]
        before = last if other and over else None
        if before != self.before:
            self.before, self._before_since = before, time.monotonic()
        return other and not over

    def _check(self, connection: sqlite3.Connection) -> None:
        if self._number is None or connection.execute("SELECT lease_number FROM lease").fetchone()[0] != self._number:
            self._number = None
            raise LeaseLost("another worker has taken over: this one stops")


def silent_seconds(ledger: Ledger, process: int) -> float:
    """Return for how long the lease of a process has run out without being renewed; 0 if it does not hold it."""
    with ledger.reading() as connection:
        row = connection.execute("SELECT * FROM lease").fetchone()
    return max(0.0, time.time() - row["end_time"]) if row["process_number"] == process else 0.0


def holder_of(ledger: Ledger) -> Process | None:
    """Return the process that holds the lease now, None if nobody works."""
    with ledger.reading() as connection:
        row = connection.execute("SELECT * FROM lease").fetchone()
    holder = Process(row["process_number"], row["process_start"])
    return holder if holder.alive and time.time() < row["end_time"] else None


def _start_of(number: int) -> str:
    """Return when a process began, in the system's own units; empty if there is none, or it has ended."""
    try:
        facts = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if facts[0] in "ZX" else facts[_START_FIELD]
