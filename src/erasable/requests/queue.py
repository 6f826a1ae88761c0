"""The queue: requests come in, are carried out under a lease, and end; subjects are kept only as long as needed."""

import re
import secrets
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from erasable.data.interactions import Subject
from erasable.errors import UnknownRequest, WorkspaceError
from erasable.requests._sqlite_file import marks
from erasable.requests.database import Connection, Database, add_event, keep_deadlines, newest_number
from erasable.requests.history import History
from erasable.requests.lease import Lease
from erasable.requests.request import (
    BEGUN,
    ENDED,
    EVERYTHING,
    FORGOTTEN,
    NOBODY_ASKED,
    NOTHING_HELD,
    SOME,
    TERMS,
    WAITING,
    Asked,
    Deadlines,
    Event,
    KeptTerms,
    Request,
    RequestState,
    Submission,
    Terms,
    refuse_unless_may_follow,
)
from erasable.requests.tokens import new_receipt_code, receipt_code_digest, seal

SERVICE = "service"
"""The actor of events that the queue adds by itself."""
NOTHING_LEFT = "nothing is held any more of what was asked for"
OPEN_REQUESTS = 64
"""With more finished requests than this, they are sealed."""
_DEFAULT_TERMS = KeptTerms()
SHORTEST_PART = 8
"""Ids with fewer characters occur by chance inside other words: they match whole words only."""


@runtime_checkable
class SealsEnded(Protocol):
    """A database whose finished requests move from the tables to a sealed file of the workspace."""

    def sealed_with(self, request_ids: Sequence[str]) -> bytes:
        """Return the file of sealed requests with these finished requests added."""

    def sealed_twice(self) -> list[str]:
        """Return the requests that are sealed but not yet deleted from the tables."""

    def delete_sealed(self) -> None:
        """Delete sealed requests from the tables."""


class Queue:
    """Requests from submission to certificate, from any source."""

    def __init__(self, database: Database, terms: Terms = _DEFAULT_TERMS) -> None:
        self.database = database
        self.history = History(database)
        self.terms = terms
        """The terms for new requests."""
        self._open: dict[str, Subject] | None = None
        self._asked = NOBODY_ASKED
        self._newest = 0
        self._following = threading.Lock()

    def migrate(self, now: datetime) -> None:
        """Upgrade tables of an earlier format; requests from before terms were kept get today's terms for good."""
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
        """Accept a request; from then on the person is suppressed. It is rejected if nothing is held.

        A second request of a person joins the first. A submitter who must not notice that (`unaware`) gets a separate
        id and code.
        """
        return self.database.change(
            lambda connection: self._submitted(connection, request, held, actor, now, reference, unaware)
        )

    def adopt(self, erased: Request, actor: str, received: datetime) -> None:
        """Add a request that an earlier release carried out but did not certify; its subject is not kept."""
        facts = {"scope": EVERYTHING if erased.everything else SOME, TERMS: asdict(KeptTerms.of(self.terms))}

        def adopt(connection: Connection) -> None:
            add_event(connection, received, actor, "received", erased.request_id, "received", facts)
            keep_deadlines(connection, erased.request_id, "received", Deadlines.of(received, self.terms))
            add_event(connection, received, actor, "certifying", erased.request_id, "certifying")

        self.database.change(adopt)

    def due(self, now: datetime) -> list[Request]:
        """Return the waiting requests that are due by now, oldest first."""
        statement = "SELECT request_id FROM open_deadlines WHERE status = 'suppressed' AND begin_time <= ?"
        rows = self.database.read(lambda connection: connection.execute(statement, (now.timestamp(),)))
        return self.history.some([row["request_id"] for row in rows]) if rows else []

    def claim(
        self, lease: Lease, request_ids: Sequence[str], actor: str, now: datetime, facts: Mapping[str, Any]
    ) -> list[Request]:
        """Begin requests as the holder of the lease, one for each person, and return them; the others follow later.

        Requests withdrawn or put on hold since they were chosen are left out. Each comes with its subject as of now,
        since more may have been asked for in the meantime. If the subject is no longer kept, the user is empty.
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
        """Move a request to another state, with the reason typed in, if any.

        In a state that no longer needs the subject, it is deleted, with all texts typed in.
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
        """Delete the subjects of these requests, since the data is gone; only their ids remain.

        Their interactions that wait to be learned go too, and every text typed in, about any request, that names them;
        return how many texts that were. Other requests of a person who is erased completely are rejected.
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
                for other in self.database.subjects.of_user(connection, user):  # from a command, under another id
                    self.advance(other.request_id, "rejected", actor, now, {"reason": NOTHING_LEFT})
            return struck

        return self.database.change(forget)

    def suppressed(self) -> frozenset[str]:
        """Return everyone with an open request whose data may still be there."""
        return self.asked().people

    def asked(self) -> Asked:
        """Return these people and what they ask for, reading only what is new.

        Don't call it inside a change, which might be rolled back.
        """
        with self._following:
            return self.database.read(self._followed)

    def subjects(self, request_ids: Collection[str]) -> list[Request]:
        """Of these requests, return those whose subject is still kept, together with it; oldest first."""

        def found(connection: Connection) -> list[Request]:
            kept = {one.request_id: one for one in self.database.subjects.some(connection, request_ids)}
            return [replace(kept[one.request_id], events=one.events) for one in self.history.some(sorted(kept))]

        return self.database.read(found)

    def open_subjects(self) -> list[Request]:
        """Return all open requests whose data may still be there, with who asked, oldest first."""
        kept = self.database.read(self.database.subjects.all)
        return self.subjects([one.request_id for one in kept])

    def hasten(self, request_ids: Sequence[str], now: datetime) -> None:
        """Make waiting requests due now, whatever their terms."""
        begin = now.timestamp()
        statement = (
            "UPDATE open_deadlines SET begin_time = ? WHERE request_id = ? AND (begin_time IS NULL OR begin_time > ?)"
        )
        rows = [(begin, request_id, begin) for request_id in request_ids]
        self.database.change(lambda connection: connection.execute_many(statement, rows))

    def to_seal(self) -> list[str]:
        """Return the finished requests that can be sealed, if there are enough of them.

        The request of the newest event stays: the next event's number follows from the last one in the tables.
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
        """Write something that changes nothing; raises an error if no request could be accepted now."""
        self.database.change(lambda connection: connection.execute("UPDATE lease SET lease_number = lease_number"))

    def is_writable(self) -> bool:
        """Whether a request could be accepted now."""
        try:
            self.try_to_write()
        except (WorkspaceError, OSError):
            return False
        return True

    def drop_waiting(self, connection: Connection, request: Request) -> None:
        """Drop interactions waiting to be learned that the request asks to erase."""
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
        """Add the event of a new request and the one that follows at once, and return both."""
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
        """Return the person's open request that a new one joins, with its subject."""
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
            # The code is a secret of the first submitter: nobody gets it by asking for the same person.
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
        """Delete the texts of any request that name one of these people; return how many that were."""
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
        # A request that ended and was sealed since then left no event, but there are fewer than known here.
        if self.database.subjects.count(connection) != len(self._open):
            self._open = self._all_open(connection)
        self._newest, self._asked = newest, Asked.of(self._open.values())
        return self._asked

    def _all_open(self, connection: Connection) -> dict[str, Subject]:
        return _subjects(self.database.subjects.all(connection))


def _subjects(requests: Iterable[Request]) -> dict[str, Subject]:
    """Return only who asked for what, by request."""
    return {one.request_id: Subject(one.user, one.items) for one in requests}


def names(user: str, text: str) -> bool:
    """Whether a text names a user: a long id anywhere, a short one as a separate word.

    >>> names("ann", "Hannah waits"), names("ann", "for ann!"), names("newcomer-4711", "xnewcomer-4711y")
    (False, True, True)
    """
    if len(user) >= SHORTEST_PART:
        return user in text
    return re.search(rf"(?<!\w){re.escape(user)}(?!\w)", text) is not None


def _covers(kept: Request, request: Request) -> bool:
    """Whether a request includes another one of the same person."""
    return kept.items is None or (request.items is not None and {*request.items} <= {*kept.items})


def one_for_each(asked: Sequence[Request]) -> list[Request]:
    """Return one request for each person: the one for everything, if there is one."""
    chosen = {one.user: one.request_id for one in sorted(asked, key=lambda one: one.everything)}
    return [one for one in asked if chosen[one.user] == one.request_id]
