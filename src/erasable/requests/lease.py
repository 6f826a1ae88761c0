"""The lease that lets only one worker at a time work on a queue, renewing it, and the worker's progress."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from erasable.errors import ErasableError, LeaseLost
from erasable.progress import Progress
from erasable.requests.database import Connection, Database

T = TypeVar("T")
_START_FIELD = 19  # counted after the process name in /proc/PID/stat


def _machine() -> str:
    """Return what identifies this machine or container, inside which process numbers are unique."""
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{booted} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


MACHINE = _machine()


@dataclass(frozen=True)
class Process:
    """A process; its number alone may be reused, or exist on another machine too."""

    number: int
    start: str
    machine: str = MACHINE

    @staticmethod
    def current() -> "Process":
        """Return this process."""
        return Process(os.getpid(), _start_of(os.getpid()))

    @property
    def is_here(self) -> bool:
        """Whether it runs, or ran, on this machine."""
        return self.machine == MACHINE

    @property
    def alive(self) -> bool:
        """Whether it runs or is frozen; a process elsewhere counts as alive, so its lease has to run out."""
        return self.start != "" and (not self.is_here or _start_of(self.number) == self.start)

    def end(self) -> bool:
        """Kill it, frozen or not, if it runs on this machine; return whether that was tried."""
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
        """The living process whose lease has run out, if any; it may be frozen and block other writers."""
        self._before_since = 0.0

    @property
    def number(self) -> int | None:
        """The number of this lease, None if it is not held."""
        return self._number

    @property
    def held(self) -> bool:
        """Whether it was taken and, as far as this process knows, not lost."""
        return self._number is not None

    def take(self) -> bool:
        """Take the lease if it is free, has run out, or its holder is gone; return whether it was taken."""
        # Read first: a process frozen in the middle of a change blocks all other writers.
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
            self._number = number  # only once it is durable: else another process might take the same number
        return number is not None

    def end_frozen(self) -> bool:
        """Kill the previous holder if it still runs one lease period after its lease ran out; return whether it did."""
        before = self.before
        if before is None or not before.alive or time.monotonic() - self._before_since < self.seconds:
            return False
        return before.end()

    def renew(self) -> None:
        """Extend the lease by its full period."""

        def renew(connection: Connection) -> None:
            end = self._database.time(connection) + self.seconds
            connection.execute("UPDATE lease SET end_time = ?", (end,))

        self.change(renew)

    def release(self) -> None:
        """Give the lease back, if it is still held."""

        def release(connection: Connection) -> None:
            connection.execute(
                "UPDATE lease SET end_time = ?, process_number = 0, process_start = '', machine_name = ''",
                (self._database.time(connection),),
            )

        with suppress(LeaseLost):
            self.change(release)
        self._number = None

    def change(self, work: Callable[[Connection], T]) -> T:
        """Change the queue as the holder of the lease; refused once another process has taken it."""

        def checked(connection: Connection) -> T:
            self._check(connection)
            return work(connection)

        return self._database.change(checked)

    def check(self) -> None:
        """Raise `LeaseLost` if the lease is no longer held."""
        self._database.read(self._check)

    def _is_taken(self, connection: Connection) -> bool:
        """Whether another process holds the lease now; a living holder whose lease ran out is noted in `before`."""
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
    """Return how long ago the lease of a process on this machine ran out; 0 if the lease is not its own."""

    def silent(connection: Connection) -> float:
        last, end = _last_holder(connection)
        own = last.number == process and last.is_here
        return max(0.0, database.time(connection) - end) if own else 0.0

    return database.read(silent)


def holder_of(database: Database) -> Process | None:
    """Return the process that holds the lease now, if any."""

    def holder(connection: Connection) -> Process | None:
        last, end = _last_holder(connection)
        return last if last.alive and database.time(connection) < end else None

    return database.read(holder)


def is_at_work(database: Database, pause: float) -> bool:
    """Whether a worker holds the lease, or released it so recently that the next one is about to take it."""

    def at_work(connection: Connection) -> bool:
        last, end = _last_holder(connection)
        over = database.time(connection) - end
        return over < 0 if last.alive else last.start == "" and over < pause

    return database.read(at_work)


def _last_holder(connection: Connection) -> tuple[Process, float]:
    row = connection.execute("SELECT * FROM lease")[0]
    return Process(row["process_number"], row["process_start"], row["machine_name"] or MACHINE), row["end_time"]


def _start_of(number: int) -> str:
    """Return when a process started, in clock ticks; empty if it does not exist or has ended."""
    try:
        facts = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if facts[0] in "ZX" else facts[_START_FIELD]


Tell = Callable[[str, Exception | None], None]


def _untold(what: str, error: Exception | None) -> None:
    """Ignore an event."""


@contextmanager
def renewed(lease: Lease) -> Iterator[None]:
    """Keep renewing a lease while a block runs, and release it at the end."""
    over = threading.Event()
    thread = threading.Thread(target=keep_renewing, args=(lease, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        give_back(lease)


def keep_renewing(lease: Lease, over: threading.Event, tell: Tell = _untold) -> None:
    """Renew a lease until `over` is set, and kill a frozen previous holder, which may block this one.

    A renewal that fails because the queue is busy or unreachable is tried again. A process that lost the lease notices
    when it next writes, and may take it again.
    """
    while not over.wait(lease.seconds / 3):
        if lease.end_frozen():
            tell("a frozen worker was ended", None)
        if lease.held:
            try:
                lease.renew()
            except (ErasableError, OSError) as error:
                tell("lease not renewed", error)


def give_back(lease: Lease) -> None:
    """Release a lease; if that fails it runs out by itself, and the error must not hide another one."""
    with suppress(ErasableError, OSError):
        lease.release()


_SECONDS_BETWEEN = 1.0


def read_progress(database: Database) -> Progress | None:
    """Return the worker's progress, None if it is idle."""
    rows = database.read(lambda connection: connection.execute("SELECT * FROM progress"))
    return next(
        (Progress(one["batch_number"], one["step_name"], one["done_count"], one["total_count"]) for one in rows), None
    )


class QueueReporter:
    """Writes progress into the queue, at most once a second."""

    def __init__(self, lease: Lease, batch: str) -> None:
        self._lease = lease
        self._batch = batch

    def note(self, text: str) -> None:
        """Ignore notes: they are meant for the user of a command."""

    def doubt(self, text: str) -> None:
        """Ignore doubts, for the same reason."""

    @contextmanager
    def track(self, label: str, total: int | None = None) -> Iterator["_Advance"]:
        """Track a step of the work."""
        step = _Advance(self._lease, self._batch, label, total)
        step.write()
        yield step

    def clear(self) -> None:
        """Remove the progress, when the work is done."""
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
