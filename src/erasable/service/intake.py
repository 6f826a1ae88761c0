"""Interactions that came in and wait to be learned."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from erasable.service.requests import Requests, drop_waiting
from erasable.store.ledger import Ledger
from erasable.unlearning import Request


@dataclass(frozen=True)
class Coming:
    """One interaction that is to be learned."""

    user: str
    item: str
    rating: float | None
    time: float | None


@dataclass(frozen=True)
class Waiting:
    """Interactions that wait to be learned, as a table, and the number of the last one."""

    table: pa.Table
    last: int


def as_table(coming: Sequence[Coming]) -> pa.Table:
    """Return interactions as a table that can be learned from; a column that no row has is left out."""
    columns: dict[str, list[Any]] = {
        "user_id": [one.user for one in coming],
        "item_id": [one.item for one in coming],
        "rating": [one.rating for one in coming],
        "time": [one.time for one in coming],
    }
    return pa.table({name: values for name, values in columns.items() if any(value is not None for value in values)})


class Intake:
    """Keeps what came in until it is learned."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def add(self, coming: Sequence[Coming], leaving: Collection[str] = ()) -> int:
        """Keep interactions, but not those of people whose erasure is under way; return how many are kept.

        Whose data is erased and not certified yet, the ledger does not know any more: they are to be given.
        """
        with self._ledger.writing() as connection:
            leaving = Requests(self._ledger).suppressed_people().union(leaving)
            kept = [(one.user, one.item, one.rating, one.time) for one in coming if one.user not in leaving]
            connection.executemany("INSERT INTO intake (user_id, item_id, rating, time) VALUES (?, ?, ?, ?)", kept)
        return len(kept)

    def holds(self, request: Request) -> bool:
        """Whether something of what is to be erased waits to be learned."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT item_id FROM intake WHERE user_id = ?", (request.user,)).fetchall()
        return any(request.items is None or row["item_id"] in request.items for row in rows)

    def forget(self, requests: Sequence[Request]) -> None:
        """Drop what waits to be learned of what is to be erased."""
        with self._ledger.writing() as connection:
            for request in requests:
                drop_waiting(connection, request)

    def count(self) -> int:
        """Return how many wait."""
        with self._ledger.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM intake").fetchone()[0])

    def waiting(self) -> Waiting | None:
        """Return all that wait."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT * FROM intake ORDER BY interaction_number").fetchall()
        if not rows:
            return None
        coming = [Coming(row["user_id"], row["item_id"], row["rating"], row["time"]) for row in rows]
        return Waiting(as_table(coming), int(rows[-1]["interaction_number"]))

    def drop(self, last: int) -> None:
        """Drop what is learned, up to a number."""
        with self._ledger.writing() as connection:
            connection.execute("DELETE FROM intake WHERE interaction_number <= ?", (last,))
