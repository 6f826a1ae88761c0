"""What the queue needs of a database: SQLite in the workspace, memory, and Postgres keep the same tables.

What differs lies behind these protocols: how a transaction is made, how people are kept, what is destroyed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

from erasable.requests.request import Request

T = TypeVar("T")
Value: TypeAlias = str | int | float | bytes | None
Row: TypeAlias = Mapping[str, Any]
"""A row, by the names of its columns."""


def before_commit() -> None:
    """Be told just before a change becomes durable; tests put a function here that stops at the n-th.

    Every database calls it as `database.before_commit()`, once for each outermost change.
    """


class Connection(Protocol):
    """What a transaction is made of."""

    def execute(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run one statement, with a `?` for each value, and return its rows.

        Statements are written so that SQLite and Postgres understand them: no `INSERT OR REPLACE` (but `ON CONFLICT`),
        no `rowid`, no count of changed rows (but `RETURNING`), no `%`.
        """
        ...

    def execute_many(self, statement: str, rows: Collection[Sequence[Value]]) -> None:
        """Run one statement for each row of values."""
        ...


@dataclass(frozen=True)
class Interaction:
    """One interaction that waits to be learned."""

    user: str = field(repr=False)
    item: str = field(repr=False)
    rating: float | None = None
    time: float | None = None
    number: int = 0
    """Its place among those that wait, in the order in which they came; 0 until it is kept."""


class Subjects(Protocol):
    """Who asked for what, and the receipt code: kept while the request is open and the data may still be there.

    Plain in SQLite; in Postgres sealed under a key for each request that lies in the workspace. All methods run inside
    a transaction; what they do is undone with it.
    """

    def keep(self, connection: Connection, request: Request) -> None:
        """Keep user, items and receipt code of a request, in place of what was kept under its id."""
        ...

    def some(self, connection: Connection, request_ids: Collection[str]) -> list[Request]:
        """Return these requests as far as their subjects are kept: id, user, items, receipt code; no events."""
        ...

    def of_user(self, connection: Connection, user: str) -> list[Request]:
        """Return all requests of one person whose subject is kept."""
        ...

    def all(self, connection: Connection) -> list[Request]:
        """Return all requests whose subject is kept; with many open ones this is slow, so ask once."""
        ...

    def count(self, connection: Connection) -> int:
        """Return how many requests there are whose subject is kept; quick."""
        ...

    def forget(self, connection: Connection, request_ids: Collection[str]) -> None:
        """Forget the subjects of these requests, and the remarks on them; what is left goes with `Database.wipe`."""
        ...


class Remarks(Protocol):
    """What somebody typed in about a request (`reason`, `reference`), by event number; goes with the subject."""

    def keep(self, connection: Connection, number: int, request_id: str, said: Mapping[str, str]) -> None:
        """Keep what was typed in with an event."""
        ...

    def of(self, connection: Connection, request_ids: Collection[str] | None) -> dict[int, Mapping[str, str]]:
        """Return what is kept about some requests, or about all if None, by the number of the event."""
        ...

    def drop(self, connection: Connection, numbers: Collection[int]) -> None:
        """Forget what was typed in with some events."""
        ...


class Waiting(Protocol):
    """Interactions that came in and wait to be learned; `SELECT count(*) FROM intake` counts them in every database."""

    def add(self, connection: Connection, interactions: Sequence[Interaction]) -> None:
        """Keep interactions, after all that wait already."""
        ...

    def of_user(self, connection: Connection, user: str) -> list[Interaction]:
        """Return those of one person, in the order in which they came."""
        ...

    def all(self, connection: Connection) -> list[Interaction]:
        """Return all, in the order in which they came."""
        ...

    def drop(self, connection: Connection, numbers: Collection[int]) -> None:
        """Drop some, by their numbers; what is left of them goes with `Database.wipe`."""
        ...


class Labels(Protocol):
    """What somebody typed in to tell a token from others, as it stands in the table of tokens."""

    def written(self, label: str) -> str:
        """Return what is to stand there."""
        ...

    def read(self, written: str) -> str:
        """Return the label that stands there."""
        ...


class Database(Protocol):
    """Where a queue lies; for any number of threads; each process opens its own."""

    @property
    def subjects(self) -> Subjects:
        """Who asked."""
        ...

    @property
    def remarks(self) -> Remarks:
        """What was typed in."""
        ...

    @property
    def waiting(self) -> Waiting:
        """What waits to be learned."""
        ...

    @property
    def labels(self) -> Labels:
        """How tokens are called."""
        ...

    def read(self, work: Callable[[Connection], T], with_ended: bool = False) -> T:
        """Return what `work` finds in one snapshot; inside a change of this thread, with what it has changed so far.

        The views `all_events`, `all_current_states`, `all_receipts` and `all_joined_submissions` also hold requests
        that have ended and left the tables. With `with_ended` it is refused if those can't be read; without, the views
        hold what can be read. `work` may be run again after a lost connection.
        """
        ...

    def change(self, work: Callable[[Connection], T]) -> T:
        """Change the queue: all of `work` is durable when this returns, or nothing of it ever was.

        Changes are serialised: no two overlap, whoever makes them. A change inside a change of the same thread is a
        part of it. `work` may be run again after a lost connection (never once it is durable), so it must have no
        effect but on the database.
        """
        ...

    def time(self, connection: Connection) -> float:
        """Return the time by which leases run out, in seconds; the same clock for everyone who shares the queue."""
        ...

    def mark(self) -> object:
        """Return what is different once someone, here or elsewhere, has changed the queue."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait until the queue has changed since this was last called, at most so long; say whether it has."""
        ...

    def wipe(self) -> None:
        """Let nothing be left of what was deleted before: in files and logs of ours, or as a key that opens it."""
        ...

    def tidy(self) -> None:
        """Keep what lies beside the tables small; called once in a while by whoever holds the lease."""
        ...

    def migrate(self) -> None:
        """Make the tables, or bring those of an earlier format forward by numbered steps; again does no harm."""
        ...

    def close(self) -> None:
        """Close it."""
        ...
