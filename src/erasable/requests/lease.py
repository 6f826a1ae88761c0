"""The lease of the one worker: who does not renew it loses it, and can't write any more once another has taken it.

Each taking has a number, the fencing token. Whatever a worker writes, into the queue or the workspace, is written only
while the number is still its own.
"""

import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from erasable.errors import LeaseLost
from erasable.requests.database import Connection, Database

T = TypeVar("T")
_START_FIELD = 19  # of what follows the name in /proc/PID/stat


def _machine() -> str:
    """Return what tells this machine, or container, from others: numbers of processes count in one of them only."""
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{booted} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


MACHINE = _machine()


@dataclass(frozen=True)
class Process:
    """A process; its number alone may come again, or be on another machine."""

    number: int
    start: str
    machine: str = MACHINE

    @staticmethod
    def current() -> "Process":
        """Return this process."""
        return Process(os.getpid(), _start_of(os.getpid()))

    @property
    def is_here(self) -> bool:
        """Whether it is, or was, one of this machine."""
        return self.machine == MACHINE

    @property
    def alive(self) -> bool:
        """Whether it runs, or is frozen; of one elsewhere nobody knows better, so that its time has to run out."""
        return self.start != "" and (not self.is_here or _start_of(self.number) == self.start)

    def end(self) -> bool:
        """End it at once, frozen or not, if it is one of this machine; say whether that was tried."""
        if not self.is_here or not self.alive:
            return False
        with suppress(ProcessLookupError):
            os.kill(self.number, signal.SIGKILL)
        return True


class Lease:
    """The right to work on a queue's requests."""

    def __init__(self, database: Database, seconds: float, holder: Process | None = None) -> None:
        self._database = database
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
        if self._database.read(self._is_taken):
            return False

        def take(connection: Connection) -> int | None:
            if self._is_taken(connection):
                return None
            number = 1 + int(connection.execute("SELECT lease_number FROM lease")[0]["lease_number"])
            end = self._database.time(connection) + self.seconds
            connection.execute(
                "UPDATE lease SET lease_number = ?, process_number = ?, process_start = ?, machine_name = ?, "
                "end_time = ?",
                (number, self._holder.number, self._holder.start, self._holder.machine, end),
            )
            return number

        number = self._database.change(take)
        if number is not None:
            self._number = number  # not before it is durable: else another might take the same number
        return number is not None

    def end_frozen(self) -> bool:
        """End who had the lease before, and is still there though it had as long again to stop; say whether it was."""
        before = self.before
        if before is None or not before.alive or time.monotonic() - self._before_since < self.seconds:
            return False
        return before.end()

    def renew(self) -> None:
        """Keep the lease for another while."""

        def renew(connection: Connection) -> None:
            end = self._database.time(connection) + self.seconds
            connection.execute("UPDATE lease SET end_time = ?", (end,))

        self.change(renew)

    def release(self) -> None:
        """Give it back, if it is still held."""

        def release(connection: Connection) -> None:
            connection.execute(
                "UPDATE lease SET end_time = ?, process_number = 0, process_start = '', machine_name = ''",
                (self._database.time(connection),),
            )

        with suppress(LeaseLost):
            self.change(release)
        self._number = None

    def change(self, work: Callable[[Connection], T]) -> T:
        """Change the queue as the holder of the lease; refused once another has taken it."""

        def checked(connection: Connection) -> T:
            self._check(connection)
            return work(connection)

        return self._database.change(checked)

    def check(self) -> None:
        """Refuse whoever does not hold the lease any more."""
        self._database.read(self._check)

    def _is_taken(self, connection: Connection) -> bool:
        """Whether another has the lease now; whose lease ran out and who is still there is kept in mind."""
        last, end = _last_holder(connection)
        other, over = last != self._holder and last.alive, self._database.time(connection) >= end
        before = last if other and over else None
        if before != self.before:
            self.before, self._before_since = before, time.monotonic()
        return other and not over

    def _check(self, connection: Connection) -> None:
        held = connection.execute("SELECT lease_number FROM lease")[0]["lease_number"]
        if self._number is None or held != self._number:
            self._number = None
            raise LeaseLost("another worker has taken over: this one stops")


def silent_seconds(database: Database, process: int) -> float:
    """Return for how long the lease of a process of this machine has run out without being renewed; 0 if not its."""

    def silent(connection: Connection) -> float:
        last, end = _last_holder(connection)
        own = last.number == process and last.is_here
        return max(0.0, database.time(connection) - end) if own else 0.0

    return database.read(silent)


def holder_of(database: Database) -> Process | None:
    """Return the process that holds the lease now, None if nobody works."""

    def holder(connection: Connection) -> Process | None:
        last, end = _last_holder(connection)
        return last if last.alive and database.time(connection) < end else None

    return database.read(holder)


def is_at_work(database: Database, pause: float) -> bool:
    """Whether someone works, or has given the lease back so short a time ago that another is on its way."""

    def at_work(connection: Connection) -> bool:
        last, end = _last_holder(connection)
        over = database.time(connection) - end
        return over < 0 if last.alive else last.start == "" and over < pause

    return database.read(at_work)


def _last_holder(connection: Connection) -> tuple[Process, float]:
    row = connection.execute("SELECT * FROM lease")[0]
    return Process(row["process_number"], row["process_start"], row["machine_name"] or MACHINE), row["end_time"]


def _start_of(number: int) -> str:
    """Return when a process began, in the system's own units; empty if there is none, or it has ended."""
    try:
        facts = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if facts[0] in "ZX" else facts[_START_FIELD]
