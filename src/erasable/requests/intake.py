"""Interactions that came in and wait to be learned."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from erasable.requests.database import Connection, Database, Interaction
from erasable.requests.request import Request


@dataclass(frozen=True)
class ToLearn:
    """Interactions that wait to be learned, as a table, and their numbers."""

    table: pa.Table
    numbers: Sequence[int]


def as_table(coming: Sequence[Interaction]) -> pa.Table:
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

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, coming: Sequence[Interaction], leaving: Collection[str] = ()) -> int:
        """Keep interactions, but not those of people whose erasure is under way; return how many are kept.

        Whose data is erased and not certified yet, the queue does not know any more: they are to be given.
        """

        def add(connection: Connection) -> int:
            people = {one.user for one in coming}.difference(leaving)
            asked = {user for user in people if self._database.subjects.of_user(connection, user)}
            kept = [one for one in coming if one.user in people and one.user not in asked]
            self._database.waiting.add(connection, kept)
            return len(kept)

        return self._database.change(add)

    def holds(self, request: Request) -> bool:
        """Whether something of what is to be erased waits to be learned."""
        found = self._database.read(lambda connection: self._database.waiting.of_user(connection, request.user))
        return any(request.items is None or one.item in request.items for one in found)

    def count(self) -> int:
        """Return how many wait."""
        statement = "SELECT count(*) AS total FROM intake"
        return int(self._database.read(lambda connection: connection.execute(statement))[0]["total"])

    def waiting(self) -> ToLearn | None:
        """Return all that wait."""
        found = self._database.read(self._database.waiting.all)
        return ToLearn(as_table(found), [one.number for one in found]) if found else None

    def drop(self, numbers: Sequence[int]) -> None:
        """Drop what is learned, by its numbers."""
        self._database.change(lambda connection: self._database.waiting.drop(connection, numbers))
