"""Who asked, what was typed in and what waits to be learned, as SQLite keeps them: plainly, in tables of their own."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from erasable.requests.database import Connection, Interaction, Row
from erasable.requests.request import Request

T = TypeVar("T")
_AT_ONCE = 500


def marks(values: Collection[object]) -> str:
    """Return a `?` for each value."""
    return ", ".join("?" * len(values))


def in_parts(values: Collection[T]) -> Iterator[list[T]]:
    """Yield values in parts that one statement can take."""
    listed = list(values)
    for start in range(0, len(listed), _AT_ONCE):
        yield listed[start : start + _AT_ONCE]


class PlainSubjects:
    """Who asked for what, in a table of its own."""

    def keep(self, connection: Connection, request: Request) -> None:
        """Keep user, items and receipt code of a request, in place of what was kept under its id."""
        items = None if request.items is None else json.dumps(list(request.items))
        connection.execute(
            "INSERT INTO open_requests (request_id, user_id, item_ids, receipt_code) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (request_id) DO UPDATE SET user_id = excluded.user_id, item_ids = excluded.item_ids, "
            "receipt_code = excluded.receipt_code",
            (request.request_id, request.user, items, request.receipt_code),
        )

    def some(self, connection: Connection, request_ids: Collection[str]) -> list[Request]:
        """Return these requests as far as their subjects are kept."""
        found: list[Request] = []
        for part in in_parts(request_ids):
            statement = f"SELECT * FROM open_requests WHERE request_id IN ({marks(part)})"  # noqa: S608 - only marks
            found += map(kept_subject, connection.execute(statement, part))
        return found

    def of_user(self, connection: Connection, user: str) -> list[Request]:
        """Return all requests of one person whose subject is kept."""
        return [*map(kept_subject, connection.execute("SELECT * FROM open_requests WHERE user_id = ?", (user,)))]

    def all(self, connection: Connection) -> list[Request]:
        """Return all requests whose subject is kept."""
        return [*map(kept_subject, connection.execute("SELECT * FROM open_requests"))]

    def count(self, connection: Connection) -> int:
        """Return how many requests there are whose subject is kept."""
        return int(connection.execute("SELECT count(*) AS total FROM open_requests")[0]["total"])

    def forget(self, connection: Connection, request_ids: Collection[str]) -> None:
        """Forget the subjects of these requests, and the remarks on them."""
        for table in ("open_requests", "remarks"):
            statement = f"DELETE FROM {table} WHERE request_id = ?"  # noqa: S608 - a name of ours
            connection.execute_many(statement, [(request_id,) for request_id in request_ids])


class PlainRemarks:
    """What somebody typed in, in a table of its own."""

    def keep(self, connection: Connection, number: int, request_id: str, said: Mapping[str, str]) -> None:
        """Keep what was typed in with an event."""
        remark = json.dumps(dict(said), ensure_ascii=False)
        connection.execute("INSERT INTO remarks VALUES (?, ?, ?)", (number, request_id, remark))

    def of(self, connection: Connection, request_ids: Collection[str] | None) -> dict[int, Mapping[str, str]]:
        """Return what is kept about some requests, or about all if None, by the number of the event."""
        rows: list[Row] = []
        if request_ids is None:
            rows = connection.execute("SELECT * FROM remarks")
        for part in in_parts(request_ids or ()):
            rows += connection.execute(f"SELECT * FROM remarks WHERE request_id IN ({marks(part)})", part)  # noqa: S608
        return {row["event_number"]: json.loads(row["facts"]) for row in rows}

    def drop(self, connection: Connection, numbers: Collection[int]) -> None:
        """Forget what was typed in with some events."""
        connection.execute_many("DELETE FROM remarks WHERE event_number = ?", [(number,) for number in numbers])


class PlainWaiting:
    """Interactions that wait to be learned, in a table of their own."""

    def add(self, connection: Connection, interactions: Sequence[Interaction]) -> None:
        """Keep interactions, after all that wait already."""
        rows = [(one.user, one.item, one.rating, one.time) for one in interactions]
        connection.execute_many("INSERT INTO intake (user_id, item_id, rating, time) VALUES (?, ?, ?, ?)", rows)

    def of_user(self, connection: Connection, user: str) -> list[Interaction]:
        """Return those of one person, in the order in which they came."""
        statement = "SELECT * FROM intake WHERE user_id = ? ORDER BY interaction_number"
        return [*map(_interaction, connection.execute(statement, (user,)))]

    def all(self, connection: Connection) -> list[Interaction]:
        """Return all, in the order in which they came."""
        return [*map(_interaction, connection.execute("SELECT * FROM intake ORDER BY interaction_number"))]

    def drop(self, connection: Connection, numbers: Collection[int]) -> None:
        """Drop some, by their numbers."""
        connection.execute_many("DELETE FROM intake WHERE interaction_number = ?", [(one,) for one in numbers])


class PlainLabels:
    """Labels of tokens, as they are."""

    def written(self, label: str) -> str:
        """Return the label."""
        return label

    def read(self, written: str) -> str:
        """Return the label."""
        return written


def kept_subject(row: Row) -> Request:
    """Return a request as its subject is kept: id, user, items, receipt code."""
    items = None if row["item_ids"] is None else tuple(json.loads(row["item_ids"]))
    return Request(row["user_id"], items, row["request_id"], row["receipt_code"])


def _interaction(row: Row) -> Interaction:
    return Interaction(row["user_id"], row["item_id"], row["rating"], row["time"], row["interaction_number"])
