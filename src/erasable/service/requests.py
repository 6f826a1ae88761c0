"""Requests in the ledger: what happens to them is added to it, and what they are is told from it."""

import json
import secrets
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from erasable.errors import Refused, UnknownRequest, WrongUse
from erasable.proof import Accepted, new_receipt_code, receipt_code_digest, salt_of_code
from erasable.service.deadlines import legal_deadline
from erasable.service.events import (
    add_event,
    counts_by_state,
    events_of,
    folded,
    forget_remarks,
    ids_in_states,
    names,
    newest_event,
    newest_events,
    newest_id,
    newest_ids,
    state_of,
    strike_remarks,
)
from erasable.service.filed import EVERYTHING, PLAIN, SOME, Event, Filed, Filing, Manner, Submitted
from erasable.service.lifecycle import BEGUN, ENDED, WAITING, RequestState, refuse_unless_may_follow
from erasable.service.sealed_codes import seal, unseal
from erasable.store.ledger import Ledger, people_asking
from erasable.unlearning import Request

OPEN_REQUESTS = 64
"""More requests that have ended than this are sealed."""


class Requests:
    """Adds to the ledger what happens to requests, and tells what it adds up to."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def file(self, request: Request, held: bool, actor: str, now: datetime, manner: Manner = PLAIN) -> Filing:
        """Take a request in. What is not held is rejected; a second request of a person joins the first."""
        with self._ledger.writing() as connection:
            first = self._open_request_of(connection, request)
            if first is not None:
                return self._join(connection, first, request, actor, now, manner)
            request_id, code = secrets.token_hex(16), new_receipt_code()
            scope = EVERYTHING if request.everything else SOME
            typed = {"reference": manner.reference} if held else {}
            add_event(connection, now, actor, "received", request_id, "received", {"scope": scope}, typed)
            connection.execute("INSERT INTO receipts VALUES (?, ?)", (receipt_code_digest(code), request_id))
            if not held:
                reason = "nothing is held of what was asked for"
                add_event(connection, now, actor, "rejected", request_id, "rejected", {"reason": reason})
                return Filing(request_id, code, joined=False, rejected=True, submission_id=request_id)
            add_event(connection, now, actor, "accepted", request_id, "accepted")
            _keep_subject(connection, request_id, request, code)
            drop_waiting(connection, request)
            return Filing(request_id, code, joined=False, submission_id=request_id)

    def change(
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
        with self._ledger.writing() as connection:
            refuse_unless_may_follow(state_of(connection, request_id) or self._sealed_state_of(request_id), state)
            typed = None if state in ENDED else {"reason": reason}
            add_event(connection, now, actor, state, request_id, state, facts or {}, typed)
            if state == "verifying":
                nobody = "user_id = NULL, item_ids = NULL, receipt_code = NULL"
                connection.execute(f"UPDATE open_requests SET {nobody} WHERE request_id = ?", (request_id,))  # noqa: S608
                forget_remarks(connection, request_id)
            elif state in ENDED:
                connection.execute("DELETE FROM open_requests WHERE request_id = ?", (request_id,))
                forget_remarks(connection, request_id)

    def note(
        self, request_id: str | None, name: str, actor: str, now: datetime, facts: Mapping[str, Any] | None = None
    ) -> None:
        """Add an event that changes no state."""
        with self._ledger.writing() as connection:
            add_event(connection, now, actor, name, request_id, None, facts or {})

    def withdraw(self, request_id: str, reason: str | None, actor: str, now: datetime) -> None:
        """Take a request back; why is not kept, since who asked is not."""
        self._refuse_naming(request_id, reason, actor, now)
        self.change(request_id, "withdrawn", actor, now)

    def hold(self, request_id: str, reason: str | None, actor: str, now: datetime) -> None:
        """Put a request on hold: it is not carried out, and the person stays suppressed."""
        self._refuse_naming(request_id, reason, actor, now)
        self.change(request_id, "on hold", actor, now, reason=reason)

    def release(self, request_id: str, actor: str, now: datetime) -> None:
        """Go on with a request that is on hold."""
        with self._ledger.writing():
            if self.get(request_id).state != "on hold":
                raise Refused("only a request that is on hold can be released")
            self.change(request_id, "suppressed", actor, now)

    def extend(self, request_id: str, reason: str, actor: str, now: datetime) -> None:
        """Extend the legal month by two, once, with a reason that is told to the person."""
        self._refuse_naming(request_id, reason, actor, now)
        with self._ledger.writing() as connection:
            filed = self.get(request_id)
            if not filed.open:
                raise Refused(f"the request is {filed.state}: there is nothing left to extend")
            if filed.extended is not None:
                raise Refused("the request was extended already, and the law allows it once")
            if now > legal_deadline(filed.received):
                raise Refused("the legal month is over: an extension has to be told within it")
            kept = connection.execute(
                "SELECT 1 FROM open_requests WHERE request_id = ? AND user_id IS NOT NULL", (request_id,)
            ).fetchone()
            typed = {"reason": reason} if kept else None  # where who asked is gone nothing is kept beside them
            add_event(connection, now, actor, "extended", request_id, None, None, typed)

    def retry(self, request_id: str, actor: str, now: datetime) -> None:
        """Have a failed request tried again now."""
        with self._ledger.writing():
            state = self.get(request_id).state
            if state != "failed":
                raise Refused(f"the request is {state}, not failed: there is nothing to try again")
            self.note(request_id, "retry asked", actor, now, {"retry_at": now.isoformat()})

    def reveal(self, request_id: str, actor: str, now: datetime) -> str:
        """Return who asked, and write down who wanted to know."""
        with self._ledger.writing() as connection:
            self.get(request_id)
            row = connection.execute("SELECT user_id FROM open_requests WHERE request_id = ?", (request_id,)).fetchone()
            if row is None or row["user_id"] is None:
                raise Refused("who asked is not kept any more: the request has ended, or the data is erased")
            self.note(request_id, "revealed", actor, now)
            return str(row["user_id"])

    def get(self, request_id: str) -> Filed:
        """Return a request, by its id or by that of a submission that joined it."""
        found = self.some([request_id]) or self.some(self._joined_by(request_id))
        if not found:
            raise UnknownRequest("there is no such request: check its id")
        return found[0]

    def submission(self, code: str) -> Submitted | None:
        """Return the submission that a receipt code belongs to, if there is one."""
        digest = receipt_code_digest(code)
        with self._ledger.reading_all() as connection:
            row = connection.execute("SELECT request_id FROM all_receipts WHERE code_digest = ?", (digest,)).fetchone()
            if row:
                filed = self.get(row["request_id"])
                return Submitted(filed, code, filed.received, joined=False)
            row = connection.execute("SELECT * FROM all_joined_submissions WHERE code_digest = ?", (digest,)).fetchone()
        if row is None:
            return None
        at = datetime.fromisoformat(row["submitted_time"])
        return Submitted(self.get(row["request_id"]), unseal(row["sealed_code"], code), at, joined=True)

    def accepted_since(self, actor: str, since: datetime) -> int:
        """Return how many requests of one actor were accepted since a time, as far as they can be read."""
        with self._ledger.reading() as connection:
            row = connection.execute(
                "SELECT count(*) FROM all_events WHERE actor_name = ? AND event_name = 'accepted' AND event_time > ?",
                (actor, since.isoformat()),
            ).fetchone()
        return int(row[0])

    def strike(self, users: Collection[str]) -> int:
        """Forget whatever was typed in, about anyone's request, that names one of these people."""
        with self._ledger.writing() as connection:
            return strike_remarks(connection, users)

    def some(self, request_ids: Sequence[str]) -> list[Filed]:
        """Return these requests, as far as there are such, oldest first."""
        with self._ledger.reading() as connection:
            rows = list(events_of(connection, request_ids))
        sealed = sorted({*request_ids}.difference(row["request_id"] for row in rows))
        if sealed:
            with self._ledger.reading_all() as connection:
                rows += events_of(connection, sealed, sealed=True)
        return sorted(folded(rows), key=lambda filed: filed.events[0].number)

    def in_states(self, states: Collection[RequestState]) -> list[Filed]:
        """Return all requests that are in one of these states and not sealed, oldest first."""
        with self._ledger.reading() as connection:
            found = ids_in_states(connection, states)
            return self.some(found)

    def ids(self, states: Collection[RequestState], limit: int, before: int | None = None) -> list[tuple[int, str]]:
        """Return the numbers and ids of the newest requests in some states, before a number if one is given."""
        with self._ledger.reading_all() as connection:
            return newest_ids(connection, states, limit, before)

    def counts(self) -> dict[RequestState, int]:
        """Return how many requests are in each state."""
        with self._ledger.reading_all() as connection:
            return counts_by_state(connection)

    def open_requests(self) -> list[Filed]:
        """Return all requests of which something is left to do, oldest first."""
        return self.in_states(WAITING | BEGUN)

    def suppressed_people(self) -> frozenset[str]:
        """Return everyone whose request is open and whose data may still be there."""
        with self._ledger.reading() as connection:
            return people_asking(connection)

    def of_people(self, users: Collection[str]) -> list[Filed]:
        """Return the requests of some people that are still kept with who asked."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT * FROM open_requests WHERE user_id IS NOT NULL").fetchall()
        return self.some([row["request_id"] for row in rows if row["user_id"] in users])

    def accepted(self, request_ids: Collection[str]) -> list[Accepted]:
        """Return what some people asked for, as far as it is still kept."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT * FROM open_requests WHERE user_id IS NOT NULL").fetchall()
        wanted = [row for row in rows if row["request_id"] in request_ids]
        filed = {one.request_id: one for one in self.some([row["request_id"] for row in wanted])}
        return [
            Accepted(
                request_id=row["request_id"],
                received=filed[row["request_id"]].received.isoformat(timespec="seconds"),
                user=row["user_id"],
                items=None if row["item_ids"] is None else tuple(json.loads(row["item_ids"])),
                salt=salt_of_code(row["receipt_code"]),
                reference=filed[row["request_id"]].reference,
            )
            for row in wanted
        ]

    def journal(self, limit: int, before: int | None = None) -> list[Event]:
        """Return the newest events of all requests and of the service itself."""
        with self._ledger.reading_all() as connection:
            return newest_events(connection, limit, before)

    def last_event(self, *wanted: str) -> Event | None:
        """Return the newest event with one of these names, of the service itself or of a request that is not sealed."""
        with self._ledger.reading() as connection:
            return newest_event(connection, wanted)

    def last_erased(self) -> Event | None:
        """Return the newest event that says that someone was erased."""
        with self._ledger.reading_all() as connection:
            return newest_event(connection, ["erased"], sealed=True)

    def to_seal(self) -> list[str]:
        """Return the requests that have ended and may be sealed, if there are enough of them.

        The one that the newest event is about stays: the ledger numbers events by the last one that it holds.
        """
        with self._ledger.reading() as connection:
            ended = ids_in_states(connection, ENDED)
            newest = newest_id(connection) if len(ended) > OPEN_REQUESTS else None
        twice = {*self._ledger.sealed_twice(), newest}
        found = [request_id for request_id in ended if request_id not in twice]
        return found if len(found) > OPEN_REQUESTS else []

    def _refuse_naming(self, request_id: str, reason: str | None, actor: str, now: datetime) -> None:
        """Refuse a reason that names the person: who asked is shown to nobody who does not ask for it.

        Whoever guesses a name learns from it who asked: so it is written down like a look.
        """
        with self._ledger.writing() as connection:
            row = connection.execute("SELECT user_id FROM open_requests WHERE request_id = ?", (request_id,)).fetchone()
            user = row["user_id"] if row else None
            named = user is not None and names(user, reason or "")
            if named:
                self.note(request_id, "named", actor, now)
        if named:
            raise WrongUse("the reason names the person, who is shown to nobody unasked: say it without the id")

    def _sealed_state_of(self, request_id: str) -> RequestState:
        found = self.some([request_id])
        if not found:
            raise UnknownRequest("there is no such request: check its id")
        return found[0].state

    def _joined_by(self, submission_id: str) -> list[str]:
        with self._ledger.reading_all() as connection:
            rows = connection.execute(
                "SELECT request_id FROM all_joined_submissions WHERE submission_id = ?", (submission_id,)
            ).fetchall()
        return [row["request_id"] for row in rows]

    def _open_request_of(self, connection: sqlite3.Connection, request: Request) -> Filed | None:
        rows = connection.execute(
            "SELECT request_id, item_ids FROM open_requests WHERE user_id = ?", (request.user,)
        ).fetchall()
        for filed in self.some([row["request_id"] for row in rows]):
            covered = _covers(next(row for row in rows if row["request_id"] == filed.request_id), request)
            if filed.state in WAITING or covered:
                return filed
        return None

    def _join(
        self, connection: sqlite3.Connection, first: Filed, request: Request, actor: str, now: datetime, manner: Manner
    ) -> Filing:
        row = connection.execute("SELECT * FROM open_requests WHERE request_id = ?", (first.request_id,)).fetchone()
        if not _covers(row, request):
            items = None if request.items is None or row["item_ids"] is None else json.loads(row["item_ids"])
            joined = None if items is None else json.dumps(list(dict.fromkeys([*items, *(request.items or ())])))
            connection.execute("UPDATE open_requests SET item_ids = ? WHERE request_id = ?", (joined, first.request_id))
        drop_waiting(connection, request)
        scope = EVERYTHING if request.everything else first.scope
        typed = {"reference": manner.reference}
        add_event(connection, now, actor, "joined", first.request_id, None, {"scope": scope}, typed)
        if manner.unaware:
            return _joined_unaware(connection, first.request_id, row["receipt_code"], now)
        # The code is a secret of whoever was given it: nobody gets it by asking for the same person.
        code = row["receipt_code"] if first.events[0].actor == actor else None
        return Filing(first.request_id, code, joined=True, submission_id=first.request_id)


def _joined_unaware(connection: sqlite3.Connection, request_id: str, first_code: str, now: datetime) -> Filing:
    """Give a submission an id and a code of its own, so that whoever submitted it can't tell that it joined another."""
    submission_id, code = secrets.token_hex(16), new_receipt_code()
    values = (submission_id, receipt_code_digest(code), request_id, now.isoformat(), seal(first_code, code))
    connection.execute("INSERT INTO joined_submissions VALUES (?, ?, ?, ?, ?)", values)
    return Filing(request_id, code, joined=True, submission_id=submission_id)


def _keep_subject(connection: sqlite3.Connection, request_id: str, request: Request, code: str) -> None:
    items = None if request.items is None else json.dumps(list(dict.fromkeys(request.items)))
    connection.execute("INSERT INTO open_requests VALUES (?, ?, ?, ?)", (request_id, request.user, items, code))


def drop_waiting(connection: sqlite3.Connection, request: Request) -> None:
    """Drop what waits to be learned of what is to be erased."""
    if request.items is None:
        connection.execute("DELETE FROM intake WHERE user_id = ?", (request.user,))
    for item in request.items or ():
        connection.execute("DELETE FROM intake WHERE user_id = ? AND item_id = ?", (request.user, item))


def _covers(row: sqlite3.Row, request: Request) -> bool:
    """Whether what is kept of a request includes another of the same person."""
    if row["item_ids"] is None:
        return True
    return request.items is not None and set(request.items) <= set(json.loads(row["item_ids"]))
