"""Interactions that came in and wait to be learned."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

from erasable.service.requests import Requests
from erasable.store.ledger import Ledger


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

    def holds(self, user: str) -> bool:
        """Whether something of a person waits to be learned."""
        with self._ledger.reading() as connection:
            return connection.execute("SELECT 1 FROM intake WHERE user_id = ?", (user,)).fetchone() is not None

    def count(self) -> int:
        """Return how many wait."""
        with self._ledger.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM intake").fetchone()[0])

    def waiting(self) -> Waiting | None:
        """Return all that wait; a column that no row has is left out."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT * FROM intake ORDER BY interaction_number").fetchall()
        if not rows:
            return None
        columns = {name: [row[name] for row in rows] for name in ("user_id", "item_id", "rating", "time")}
        named = {name: values for name, values in columns.items() if any(value is not None for value in values)}
        return Waiting(pa.table(named), int(rows[-1]["interaction_number"]))

    def drop(self, last: int) -> None:
        """Drop what is learned, up to a number."""
        with self._ledger.writing() as connection:
            connection.execute("DELETE FROM intake WHERE interaction_number <= ?", (last,))
