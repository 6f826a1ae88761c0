"""The queue: requests come in, are carried out under a lease, and end; who asked is kept no longer than needed."""

import re
import secrets
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from erasable.errors import UnknownRequest, WorkspaceError
from erasable.requests.asked import NOBODY_ASKED, Asked
from erasable.requests.codes import new_receipt_code, receipt_code_digest, seal
from erasable.requests.database import Connection, Database
from erasable.requests.events import add_event, keep_deadlines, newest_number
from erasable.requests.history import History
from erasable.requests.lease import Lease
from erasable.requests.lifecycle import (
    BEGUN,
    ENDED,
    FORGOTTEN,
    NOTHING_HELD,
    WAITING,
    Deadlines,
    KeptTerms,
    RequestState,
    Terms,
    refuse_unless_may_follow,
)
from erasable.requests.plain import marks
from erasable.requests.request import EVERYTHING, SOME, TERMS, Event, Request, Submission
from erasable.unlearning import Subject

SERVICE = "service"
"""The actor of what the queue does by itself."""
NOTHING_LEFT = "nothing is held any more of what was asked for"
OPEN_REQUESTS = 64
"""More requests that have ended than this are sealed."""
_DEFAULT_TERMS = KeptTerms()
LONG = 8
"""Shorter ids are parts of many words."""


@runtime_checkable
class SealsEnded(Protocol):
    """A database whose requests leave the tables once they have ended, for a sealed file of the workspace."""

    def sealed_with(self, request_ids: Sequence[str]) -> bytes:
        """Return the file of sealed requests with some more, which have ended."""

    def sealed_twice(self) -> list[str]:
        """Return the requests that are sealed and not deleted from the tables yet."""

    def delete_sealed(self) -> None:
        """Delete the requests that are sealed from the tables."""


class Queue:
    """Requests from submission to certificate, whoever submits them."""

    def __init__(self, database: Database, terms: Terms = _DEFAULT_TERMS) -> None:
        self.database = database
        self.history = History(database)
        self.terms = terms
        """In force for what comes in now."""
        self._open: dict[str, Subject] | None = None
        self._asked = NOBODY_ASKED
        self._newest = 0
        self._following = threading.Lock()

    def migrate(self, now: datetime) -> None:
        """Bring tables of an earlier format forward; requests of before get the terms in force today, for good."""
        self.database.migrate()
        unset = "SELECT request_id FROM open_deadlines WHERE begin_time IS NULL"
        if not self.database.read(lambda connection: connection.execute(unset)):
            return

        def adopt(connection: Connection) -> None:
            kept = KeptTerms.of(self.terms)
            for one in self.history.some([row["request_id"] for row in connection.execute(unset)]):
                if one.terms is None:
                    add_event(connection, now, SERVICE, "deadlines set", one.request_id, None, {TERMS: asdict(kept)})
                keep_deadlines(connection, one.request_id, one.state, one.deadlines(kept))

        self.database.change(adopt)

    def submit(
        self,
        request: Request,
        held: bool,
        actor: str,
        now: datetime,
        reference: str | None = None,
        unaware: bool = False,
    ) -> Submission:
        """Take a request in; from then on the person is suppressed, or it is rejected since nothing is held.

        A second request of a person joins the first. Whoever must be unaware of that gets an own id and code.
        """
        return self.database.change(
            lambda connection: self._submitted(connection, request, held, actor, now, reference, unaware)
        )

    def adopt(self, erased: Request, actor: str, received: datetime) -> None:
        """Take in a request that an earlier release has carried out and not certified; nothing is kept of who asked."""
        facts = {"scope": EVERYTHING if erased.everything else SOME, TERMS: asdict(KeptTerms.of(self.terms))}

        def adopt(connection: Connection) -> None:
            add_event(connection, received, actor, "received", erased.request_id, "received", facts)
            keep_deadlines(connection, erased.request_id, "received", Deadlines.of(received, self.terms))
            add_event(connection, received, actor, "certifying", erased.request_id, "certifying")

        self.database.change(adopt)

    def due(self, now: datetime) -> list[Request]:
        """Return the requests that wait and are to be begun by now, oldest first."""
        statement = "SELECT request_id FROM open_deadlines WHERE status = 'suppressed' AND begin_time <= ?"
        rows = self.database.read(lambda connection: connection.execute(statement, (now.timestamp(),)))
        return self.history.some([row["request_id"] for row in rows]) if rows else []

    def claim(
        self, lease: Lease, request_ids: Sequence[str], actor: str, now: datetime, facts: Mapping[str, Any]
    ) -> list[Request]:
        """Begin requests as the holder of the lease, one for each person, and return those; others come after them.

        Not those that were taken back, or put on hold, since they were chosen. Who asked, and for what, is told as it
        is when they begin: until then more may be asked for. Where it is not kept any more the user is empty.
        """

        def begin(connection: Connection) -> list[Request]:
            chosen = {one.request_id for one in one_for_each(self.subjects(request_ids))}
            told = {"requests": len(chosen), "lease": lease.number, **facts}
            for one in self.history.some(request_ids):
                if one.request_id in chosen and one.state in ("suppressed", "failed"):
                    self.advance(one.request_id, "erasing", actor, now, told)
            begun = [one for one in self.history.some(request_ids) if one.state in BEGUN]
            kept = {one.request_id: one for one in self.subjects([one.request_id for one in begun])}
            later = kept.keys() - chosen
            return [kept.get(one.request_id, one) for one in begun if one.request_id not in later]

        return lease.change(begin)

    def advance(
        self,
        request_id: str,
        state: RequestState,
        actor: str,
        now: datetime,
        facts: Mapping[str, Any] | None = None,
        reason: str | None = None,
    ) -> None:
        """Bring a request into another state, with a reason that somebody typed in, if one was given.

        Who asked is forgotten where nothing needs to be known any more, and what was typed in with them.
        """

        def change(connection: Connection) -> None:
            refuse_unless_may_follow(self._state_of(connection, request_id), state)
            number = add_event(connection, now, actor, state, request_id, state, facts).number
            if state in FORGOTTEN:
                self.database.subjects.forget(connection, [request_id])
            elif reason:
                self.database.remarks.keep(connection, number, request_id, {"reason": reason})

        self.database.change(change)

    def note(
        self, request_id: str | None, name: str, actor: str, now: datetime, facts: Mapping[str, Any] | None = None
    ) -> None:
        """Add an event that changes no state."""
        self.database.change(lambda connection: add_event(connection, now, actor, name, request_id, None, facts))

    def forget_subjects(self, erased: Sequence[Request], actor: str, now: datetime) -> int:
        """Forget who asked, since their data is gone; what they asked for is known by its id from now on.

        What waits to be learned of them goes too, and whatever was typed in, about anyone's request, that names them;
        return how often that was. What else somebody asked for who is erased whole is rejected.
        """

        def forget(connection: Connection) -> int:
            for one in self.history.some([request.request_id for request in erased]):
                if one.state in ("erasing", "failed"):
                    self.advance(one.request_id, "certifying", actor, now)
            for request in erased:
                self.drop_waiting(connection, request)
            users = {request.user for request in erased if request.everything}
            struck = self._strike(connection, users)
            for user in users:
                for other in self.database.subjects.of_user(connection, user):  # by command, under another id
                    self.advance(other.request_id, "rejected", actor, now, {"reason": NOTHING_LEFT})
            return struck

        return self.database.change(forget)

    def suppressed(self) -> frozenset[str]:
        """Return everyone whose request is open and whose data may still be there."""
        return self.asked().people

    def asked(self) -> Asked:
        """Return the same people with what they ask for; only what is new is read.

        Not to be asked inside a change, which might come to nothing.
        """
        with self._following:
            return self.database.read(self._followed)

    def subjects(self, request_ids: Collection[str]) -> list[Request]:
        """Return requests with who asked and for what, as far as that is still kept, oldest first."""

        def found(connection: Connection) -> list[Request]:
            kept = {one.request_id: one for one in self.database.subjects.some(connection, request_ids)}
            return [replace(kept[one.request_id], events=one.events) for one in self.history.some(sorted(kept))]

        return self.database.read(found)

    def open_subjects(self) -> list[Request]:
        """Return all open requests whose data may still be there, with who asked, oldest first."""
        kept = self.database.read(self.database.subjects.all)
        return self.subjects([one.request_id for one in kept])

    def hasten(self, request_ids: Sequence[str], now: datetime) -> None:
        """Have requests that wait begun now, whatever their terms are."""
        rows = [(now.timestamp(), request_id, now.timestamp()) for request_id in request_ids]
        statement = "UPDATE open_deadlines SET begin_time = ? WHERE request_id = ? AND coalesce(begin_time, ? + 1) > ?"
        self.database.change(lambda connection: connection.execute_many(statement, [(*row, row[0]) for row in rows]))

    def to_seal(self) -> list[str]:
        """Return the requests that have ended and may be sealed, if there are enough of them.

        The one that the newest event is about stays: events are numbered by the last one that the tables hold.
        """
        if not isinstance(self.database, SealsEnded):
            return []

        def found(connection: Connection) -> tuple[list[str], str | None]:
            statement = f"SELECT request_id FROM current_states WHERE status IN ({marks(ENDED)})"  # noqa: S608
            ended = [row["request_id"] for row in connection.execute(statement, sorted(ENDED))]
            last = connection.execute("SELECT request_id FROM events ORDER BY event_number DESC LIMIT 1")
            return ended, last[0]["request_id"] if last else None

        ended, newest = self.database.read(found)
        if len(ended) <= OPEN_REQUESTS:
            return []
        twice = {*self.database.sealed_twice(), newest}
        found_ended = [request_id for request_id in ended if request_id not in twice]
        return found_ended if len(found_ended) > OPEN_REQUESTS else []

    def try_to_write(self) -> None:
        """Write and flush something that changes nothing; refused if no request could be taken in now."""
        self.database.change(lambda connection: connection.execute("UPDATE lease SET lease_number = lease_number"))

    def is_writable(self) -> bool:
        """Whether a request could be taken in now."""
        try:
            self.try_to_write()
        except (WorkspaceError, OSError):
            return False
        return True

    def drop_waiting(self, connection: Connection, request: Request) -> None:
        """Drop what waits to be learned of what is to be erased."""
        waiting = self.database.waiting
        found = waiting.of_user(connection, request.user)
        wanted = [one.number for one in found if request.items is None or one.item in request.items]
        if wanted:
            waiting.drop(connection, wanted)

    def _submitted(
        self,
        connection: Connection,
        request: Request,
        held: bool,
        actor: str,
        now: datetime,
        reference: str | None,
        unaware: bool,
    ) -> Submission:
        first = self._open_request_of(connection, request)
        if first is not None:
            return self._join(connection, first, request, actor, now, reference, unaware)
        items = None if request.items is None else tuple(dict.fromkeys(request.items))
        kept = Request(request.user, items, secrets.token_hex(16), new_receipt_code())
        events = self._add_received(connection, kept, held, actor, now, reference)
        if held:
            self.database.subjects.keep(connection, kept)
            self.drop_waiting(connection, kept)
        code = kept.receipt_code
        return Submission(replace(kept, events=events), kept.request_id, now, False, code, code or "")

    def _add_received(
        self, connection: Connection, kept: Request, held: bool, actor: str, now: datetime, reference: str | None
    ) -> tuple[Event, ...]:
        """Write down that a request has come in, and what followed from it at once; return both as they are told."""
        request_id, terms = kept.request_id, KeptTerms.of(self.terms)
        facts = {"scope": EVERYTHING if kept.everything else SOME, TERMS: asdict(terms)}
        first = add_event(connection, now, actor, "received", request_id, "received", facts)
        digest = receipt_code_digest(kept.receipt_code or "")
        connection.execute("INSERT INTO receipts VALUES (?, ?)", (digest, request_id))
        if not held:
            why = {"reason": NOTHING_HELD}
            return first, add_event(connection, now, actor, "rejected", request_id, "rejected", why, first)
        keep_deadlines(connection, request_id, "received", Deadlines.of(now, terms))
        second = add_event(connection, now, SERVICE, "suppressed", request_id, "suppressed", after=first)
        if reference:
            said = {"reference": reference}
            self.database.remarks.keep(connection, first.number, request_id, said)
            first = replace(first, facts={**first.facts, **said})
        return first, second

    def _open_request_of(self, connection: Connection, request: Request) -> Request | None:
        """Return the open request of the same person that another one joins, with its subject."""
        kept = {one.request_id: one for one in self.database.subjects.of_user(connection, request.user)}
        for told in self.history.some(sorted(kept)):
            one = replace(kept[told.request_id], events=told.events)
            if told.state in WAITING or _covers(one, request):
                return one
        return None

    def _join(
        self,
        connection: Connection,
        first: Request,
        request: Request,
        actor: str,
        now: datetime,
        reference: str | None,
        unaware: bool,
    ) -> Submission:
        if not _covers(first, request):
            both = request.items is not None and first.items is not None
            items = tuple(dict.fromkeys([*(first.items or ()), *(request.items or ())])) if both else None
            self.database.subjects.keep(connection, replace(first, items=items))
        self.drop_waiting(connection, request)
        scope = EVERYTHING if request.everything else first.scope
        facts = {"scope": scope, TERMS: asdict(KeptTerms.of(self.terms))}
        number = add_event(connection, now, actor, "joined", first.request_id, None, facts).number
        if reference:
            self.database.remarks.keep(connection, number, first.request_id, {"reference": reference})
        (told,) = self.history.some([first.request_id])
        salting = first.receipt_code or ""
        if not unaware:
            # The code is a secret of whoever was given it: nobody gets it by asking for the same person.
            code = first.receipt_code if first.events[0].actor == actor else None
            return Submission(told, first.request_id, now, True, code, salting)
        submission_id, code = secrets.token_hex(16), new_receipt_code()
        values = (submission_id, receipt_code_digest(code), first.request_id, now.isoformat(), seal(salting, code))
        connection.execute("INSERT INTO joined_submissions VALUES (?, ?, ?, ?, ?)", values)
        return Submission(told, submission_id, now, True, code, salting)

    def _state_of(self, connection: Connection, request_id: str) -> RequestState:
        rows = connection.execute("SELECT status FROM current_states WHERE request_id = ?", (request_id,))
        if rows:
            found: RequestState = rows[0]["status"]
            return found
        sealed = self.history.some([request_id])
        if not sealed:
            raise UnknownRequest("there is no such request: check its id")
        return sealed[0].state

    def _strike(self, connection: Connection, users: Collection[str]) -> int:
        """Forget whatever was typed in about any request that names one of these people; return how often that was."""
        remarks = self.database.remarks.of(connection, None) if users else {}
        naming = [
            number
            for number, said in remarks.items()
            if any(names(user, text) for user in users for text in said.values())
        ]
        self.database.remarks.drop(connection, naming)
        return len(naming)

    def _followed(self, connection: Connection) -> Asked:
        newest, before = newest_number(connection), self._asked
        if self._open is None or newest < self._newest:
            self._open = self._all_open(connection)
        elif newest > self._newest:
            # A second request that joins the first changes no state, and may ask for more.
            statement = "SELECT DISTINCT request_id FROM events WHERE event_number > ? AND request_id IS NOT NULL"
            changed = [row["request_id"] for row in connection.execute(statement, (self._newest,))]
            for request_id in changed:
                self._open.pop(request_id, None)
            self._open |= _subjects(self.database.subjects.some(connection, changed))
        elif self.database.subjects.count(connection) == len(self._open):
            return before
        # One that ended and was sealed since left no event: then there are fewer than are known here.
        if self.database.subjects.count(connection) != len(self._open):
            self._open = self._all_open(connection)
        self._newest, self._asked = newest, Asked.of(self._open.values())
        return self._asked

    def _all_open(self, connection: Connection) -> dict[str, Subject]:
        return _subjects(self.database.subjects.all(connection))


def _subjects(requests: Iterable[Request]) -> dict[str, Subject]:
    """Return who asked for what, by request, and no more than that."""
    return {one.request_id: Subject(one.user, one.items) for one in requests}


def names(user: str, text: str) -> bool:
    """Whether a text names a user: a long id anywhere, a short one as a word of its own.

    >>> names("ann", "Hannah waits"), names("ann", "for ann!"), names("newcomer-4711", "xnewcomer-4711y")
    (False, True, True)
    """
    if len(user) >= LONG:
        return user in text
    return re.search(rf"(?<!\w){re.escape(user)}(?!\w)", text) is not None


def _covers(kept: Request, request: Request) -> bool:
    """Whether what is kept of a request includes another of the same person."""
    return kept.items is None or (request.items is not None and {*request.items} <= {*kept.items})


def one_for_each(asked: Sequence[Request]) -> list[Request]:
    """Return one request for each person, the one for everything if there is one: others come after it."""
    chosen = {one.user: one.request_id for one in sorted(asked, key=lambda one: one.everything)}
    return [one for one in asked if chosen[one.user] == one.request_id]
