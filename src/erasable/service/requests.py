"""Requests in the ledger: what happens to them is added to it, and what they are is told from it."""

import json
import re
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
    event_of,
    events_of,
    folded,
    ids_in_states,
    newest_ids,
    state_of,
)
from erasable.service.filed import EVERYTHING, SOME, Event, Filed, Filing
from erasable.service.lifecycle import BEGUN, ENDED, WAITING, RequestState, refuse_unless_may_follow
from erasable.store.ledger import Ledger, people_asking
from erasable.unlearning import Request


class Requests:
    """Adds to the ledger what happens to requests, and tells what it adds up to."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def file(self, request: Request, held: bool, actor: str, now: datetime) -> Filing:
        """Take a request in. What is not held is rejected; a second request of a person joins the first."""
        with self._ledger.writing() as connection:
            first = self._open_request_of(connection, request)
            if first is not None:
                return self._join(connection, first, request, actor, now)
            request_id, code = secrets.token_hex(16), new_receipt_code()
            scope = EVERYTHING if request.everything else SOME
            add_event(connection, now, actor, "received", request_id, "received", {"scope": scope})
            connection.execute("INSERT INTO receipts VALUES (?, ?)", (receipt_code_digest(code), request_id))
            if not held:
                reason = "nothing is held of what was asked for"
                add_event(connection, now, actor, "rejected", request_id, "rejected", {"reason": reason})
                return Filing(request_id, code, joined=False, rejected=True)
            add_event(connection, now, actor, "accepted", request_id, "accepted")
            _keep_subject(connection, request_id, request, code)
            drop_waiting(connection, request)
            return Filing(request_id, code, joined=False)

    def change(
        self, request_id: str, state: RequestState, actor: str, now: datetime, facts: Mapping[str, Any] | None = None
    ) -> None:
        """Bring a request into another state; who asked is forgotten where nothing needs to be known any more."""
        with self._ledger.writing() as connection:
            refuse_unless_may_follow(state_of(connection, request_id), state)
            add_event(connection, now, actor, state, request_id, state, facts or {})
            if state == "verifying":
                nobody = "user_id = NULL, item_ids = NULL, receipt_code = NULL"
                connection.execute(f"UPDATE open_requests SET {nobody} WHERE request_id = ?", (request_id,))  # noqa: S608
            elif state in ENDED:
                connection.execute("DELETE FROM open_requests WHERE request_id = ?", (request_id,))

    def note(
        self, request_id: str | None, name: str, actor: str, now: datetime, facts: Mapping[str, Any] | None = None
    ) -> None:
        """Add an event that changes no state."""
        with self._ledger.writing() as connection:
            add_event(connection, now, actor, name, request_id, None, facts or {})

    def withdraw(self, request_id: str, reason: str | None, actor: str, now: datetime) -> None:
        """Take a request back."""
        self._refuse_naming(request_id, reason, actor, now)
        self.change(request_id, "withdrawn", actor, now, {"reason": reason})

    def hold(self, request_id: str, reason: str | None, actor: str, now: datetime) -> None:
        """Put a request on hold: it is not carried out, and the person stays suppressed."""
        self._refuse_naming(request_id, reason, actor, now)
        self.change(request_id, "on hold", actor, now, {"reason": reason})

    def release(self, request_id: str, actor: str, now: datetime) -> None:
        """Go on with a request that is on hold."""
        with self._ledger.writing():
            if self.get(request_id).state != "on hold":
                raise Refused("only a request that is on hold can be released")
            self.change(request_id, "suppressed", actor, now)

    def extend(self, request_id: str, reason: str, actor: str, now: datetime) -> None:
        """Extend the legal month by two, once, with a reason that is told to the person."""
        self._refuse_naming(request_id, reason, actor, now)
        with self._ledger.writing():
            filed = self.get(request_id)
            if not filed.open:
                raise Refused(f"the request is {filed.state}: there is nothing left to extend")
            if filed.extended is not None:
                raise Refused("the request was extended already, and the law allows it once")
            if now > legal_deadline(filed.received):
                raise Refused("the legal month is over: an extension has to be told within it")
            self.note(request_id, "extended", actor, now, {"reason": reason})

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
        """Return a request."""
        found = self.some([request_id])
        if not found:
            raise UnknownRequest("there is no such request: check its id")
        return found[0]

    def by_code(self, code: str) -> Filed | None:
        """Return the request that a receipt code belongs to, if there is one."""
        with self._ledger.reading() as connection:
            digest = receipt_code_digest(code)
            row = connection.execute("SELECT request_id FROM receipts WHERE code_digest = ?", (digest,)).fetchone()
        return self.get(row["request_id"]) if row else None

    def some(self, request_ids: Sequence[str]) -> list[Filed]:
        """Return these requests, as far as there are such, oldest first."""
        with self._ledger.reading() as connection:
            rows = list(events_of(connection, request_ids))
        return sorted(folded(rows), key=lambda filed: filed.events[0].number)

    def in_states(self, states: Collection[RequestState]) -> list[Filed]:
        """Return all requests that are in one of these states, oldest first."""
        with self._ledger.reading() as connection:
            found = ids_in_states(connection, states)
            return self.some(found)

    def ids(self, states: Collection[RequestState], limit: int, before: int | None = None) -> list[tuple[int, str]]:
        """Return the numbers and ids of the newest requests in some states, before a number if one is given."""
        with self._ledger.reading() as connection:
            return newest_ids(connection, states, limit, before)

    def counts(self) -> dict[RequestState, int]:
        """Return how many requests are in each state."""
        with self._ledger.reading() as connection:
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
        received = {filed.request_id: filed.received for filed in self.some([row["request_id"] for row in wanted])}
        return [
            Accepted(
                request_id=row["request_id"],
                received=received[row["request_id"]].isoformat(timespec="seconds"),
                user=row["user_id"],
                items=None if row["item_ids"] is None else tuple(json.loads(row["item_ids"])),
                salt=salt_of_code(row["receipt_code"]),
            )
            for row in wanted
        ]

    def journal(self, limit: int, before: int | None = None) -> list[Event]:
        """Return the newest events of all requests and of the service itself."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT * FROM events WHERE event_number < ? ORDER BY event_number DESC LIMIT ?",
                (before or 2**62, limit),
            ).fetchall()
        return [event_of(row) for row in rows]

    def last_event(self, *names: str) -> Event | None:
        """Return the newest event of the service with one of these names."""
        marks = ", ".join("?" * len(names))
        with self._ledger.reading() as connection:
            row = connection.execute(
                f"SELECT * FROM events WHERE event_name IN ({marks}) ORDER BY event_number DESC LIMIT 1",  # noqa: S608
                names,
            ).fetchone()
        return event_of(row) if row else None

    def _refuse_naming(self, request_id: str, reason: str | None, actor: str, now: datetime) -> None:
        """Refuse a reason that names the person: events stay when the person is gone.

        Whoever guesses a name learns from it who asked: so it is written down like a look.
        """
        with self._ledger.writing() as connection:
            row = connection.execute("SELECT user_id FROM open_requests WHERE request_id = ?", (request_id,)).fetchone()
            user = row["user_id"] if row else None
            named = user is not None and re.search(rf"(?<!\w){re.escape(user)}(?!\w)", reason or "") is not None
            if named:
                self.note(request_id, "named", actor, now)
        if named:
            raise WrongUse("the reason names the person, and it is kept for good: say it without the id")

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
        self, connection: sqlite3.Connection, first: Filed, request: Request, actor: str, now: datetime
    ) -> Filing:
        row = connection.execute("SELECT * FROM open_requests WHERE request_id = ?", (first.request_id,)).fetchone()
        if not _covers(row, request):
            items = None if request.items is None or row["item_ids"] is None else json.loads(row["item_ids"])
            joined = None if items is None else json.dumps(list(dict.fromkeys([*items, *(request.items or ())])))
            connection.execute("UPDATE open_requests SET item_ids = ? WHERE request_id = ?", (joined, first.request_id))
        drop_waiting(connection, request)
        scope = EVERYTHING if request.everything else first.scope
        add_event(connection, now, actor, "joined", first.request_id, None, {"scope": scope})
        # The code is a secret of whoever was given it: nobody gets it by asking for the same person.
        code = row["receipt_code"] if first.events[0].actor == actor else None
        return Filing(first.request_id, code, joined=True)


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
