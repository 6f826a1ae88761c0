"""What an officer decides about a request, and the intake of interactions waiting to be learned."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from erasable.data.columns import ColumnNames
from erasable.errors import Refused, WrongUse
from erasable.requests.database import Connection, Database, WaitingInteraction, add_event, keep_deadlines
from erasable.requests.queue import Queue, names
from erasable.requests.request import Request, legal_deadline


class Decisions:
    """An officer's decisions; each is recorded with the actor, and a reason that names the person is refused."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._database = queue.database

    def withdraw(self, request_id: str, reason: str | None, actor: str, now: datetime) -> None:
        """Withdraw a request; the reason is not kept, since the subject is deleted."""
        self._refuse_naming(request_id, reason, actor, now)
        self._queue.advance(request_id, "withdrawn", actor, now)

    def hold(self, request_id: str, reason: str | None, actor: str, now: datetime) -> None:
        """Put a request on hold: it is not carried out, and the person stays suppressed."""
        self._refuse_naming(request_id, reason, actor, now)
        self._queue.advance(request_id, "on hold", actor, now, reason=reason)

    def release(self, request_id: str, actor: str, now: datetime) -> None:
        """Resume a request that is on hold."""

        def change(connection: Connection) -> None:
            if self._queue.history.get(request_id).state != "on hold":
                raise Refused("only a request that is on hold can be released")
            self._queue.advance(request_id, "suppressed", actor, now)

        self._database.change(change)

    def extend(self, request_id: str, reason: str, actor: str, now: datetime) -> None:
        """Extend the legal month by two more, once; the person is told the reason."""
        self._refuse_naming(request_id, reason, actor, now)

        def change(connection: Connection) -> None:
            found = self._queue.history.get(request_id)
            if not found.open:
                raise Refused(f"the request is {found.state}: there is nothing left to extend")
            if found.extended is not None:
                raise Refused("the request was extended already, and the law allows it once")
            if now > legal_deadline(found.received):
                raise Refused("the legal month is over: the person must be told of an extension within it")
            number = add_event(connection, now, actor, "extended", found.request_id).number
            if self._database.subjects.some(connection, [found.request_id]):
                # A reason is only kept along with the subject.
                self._database.remarks.keep(connection, number, found.request_id, {"reason": reason})
            extended = self._queue.history.get(request_id)
            keep_deadlines(connection, found.request_id, found.state, extended.deadlines(self._queue.terms))

        self._database.change(change)

    def retry(self, request_id: str, actor: str, now: datetime) -> None:
        """Try a failed request again now."""

        def change(connection: Connection) -> None:
            found = self._queue.history.get(request_id)
            if found.state != "failed":
                raise Refused(f"the request is {found.state}, not failed: there is nothing to try again")
            facts = {"retry_at": now.isoformat()}
            add_event(connection, now, actor, "retry asked", found.request_id, None, facts)
            connection.execute(
                "UPDATE open_deadlines SET retry_time = ? WHERE request_id = ?", (now.timestamp(), found.request_id)
            )

        self._database.change(change)

    def reveal(self, request_id: str, actor: str, now: datetime) -> str:
        """Return who asked, and record who wanted to know."""

        def change(connection: Connection) -> str:
            self._queue.history.get(request_id)
            kept = self._database.subjects.some(connection, [request_id])
            if not kept:
                raise Refused("who asked is no longer kept: the request has ended, or the data is erased")
            add_event(connection, now, actor, "revealed", request_id)
            return kept[0].user

        return self._database.change(change)

    def _refuse_naming(self, request_id: str, reason: str | None, actor: str, now: datetime) -> None:
        """Refuse a reason that names the person, since reasons are shown along with the request.

        The refusal confirms a guessed name, so it is recorded, as `reveal` is.
        """

        def change(connection: Connection) -> bool:
            kept = self._database.subjects.some(connection, [request_id])
            named = any(names(one.user, reason or "") for one in kept)
            if named:
                add_event(connection, now, actor, "named", request_id)
            return named

        if self._database.change(change):
            raise WrongUse("the reason names the person, and reasons are shown with the request: leave out the id")


@dataclass(frozen=True)
class ToLearn:
    """Interactions waiting to be learned, as a table, and their numbers."""

    table: pa.Table
    numbers: Sequence[int]


WEIGHT_TAKEN_IN = ColumnNames(weight="rating")
"""Where weights are learned, they wait in the place of ratings."""


def as_table(coming: Sequence[WaitingInteraction]) -> pa.Table:
    """Return interactions as a table to learn from; columns without a value are left out."""
    columns: dict[str, list[Any]] = {
        "user_id": [one.user for one in coming],
        "item_id": [one.item for one in coming],
        "rating": [one.rating for one in coming],
        "time": [one.time for one in coming],
    }
    return pa.table({name: values for name, values in columns.items() if any(value is not None for value in values)})


class Intake:
    """Keeps new interactions until they are learned."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, coming: Sequence[WaitingInteraction], leaving: Collection[str] = ()) -> int:
        """Keep interactions, except those of people who are being erased; return how many are kept.

        The caller passes in `leaving` the people whose data is erased but not certified yet: the queue no longer
        knows them.
        """

        def add(connection: Connection) -> int:
            people = {one.user for one in coming}.difference(leaving)
            asked = {user for user in people if self._database.subjects.of_user(connection, user)}
            kept = [one for one in coming if one.user in people and one.user not in asked]
            self._database.waiting.add(connection, kept)
            return len(kept)

        return self._database.change(add)

    def holds(self, request: Request) -> bool:
        """Whether data that is to be erased is waiting to be learned."""
        found = self._database.read(lambda connection: self._database.waiting.of_user(connection, request.user))
        return any(request.items is None or one.item in request.items for one in found)

    def count(self) -> int:
        """Return how many interactions wait."""
        statement = "SELECT count(*) AS total FROM intake"
        return int(self._database.read(lambda connection: connection.execute(statement))[0]["total"])

    def waiting(self) -> ToLearn | None:
        """Return all interactions that wait, if there are any."""
        found = self._database.read(self._database.waiting.all)
        return ToLearn(as_table(found), [one.number for one in found]) if found else None

    def drop(self, numbers: Sequence[int]) -> None:
        """Drop interactions by number, once they are learned."""
        self._database.change(lambda connection: self._database.waiting.drop(connection, numbers))
