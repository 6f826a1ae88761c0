"""What an officer decides about a request: take it back, hold, release, extend, try again, look who asked."""

from datetime import datetime

from erasable.errors import Refused, WrongUse
from erasable.requests.database import Connection
from erasable.requests.events import add_event, keep_deadlines
from erasable.requests.lifecycle import legal_deadline
from erasable.requests.queue import Queue, names


class Decisions:
    """Each is written down with who decided; a reason that names the person is refused."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._database = queue.database

    def withdraw(self, request_id: str, reason: str | None, actor: str, now: datetime) -> None:
        """Take a request back; why is not kept, since who asked is not."""
        self._refuse_naming(request_id, reason, actor, now)
        self._queue.advance(request_id, "withdrawn", actor, now)

    def hold(self, request_id: str, reason: str | None, actor: str, now: datetime) -> None:
        """Put a request on hold: it is not carried out, and the person stays suppressed."""
        self._refuse_naming(request_id, reason, actor, now)
        self._queue.advance(request_id, "on hold", actor, now, reason=reason)

    def release(self, request_id: str, actor: str, now: datetime) -> None:
        """Go on with a request that is on hold."""

        def change(connection: Connection) -> None:
            if self._queue.history.get(request_id).state != "on hold":
                raise Refused("only a request that is on hold can be released")
            self._queue.advance(request_id, "suppressed", actor, now)

        self._database.change(change)

    def extend(self, request_id: str, reason: str, actor: str, now: datetime) -> None:
        """Extend the legal month by two, once, with a reason that is told to the person."""
        self._refuse_naming(request_id, reason, actor, now)

        def change(connection: Connection) -> None:
            found = self._queue.history.get(request_id)
            if not found.open:
                raise Refused(f"the request is {found.state}: there is nothing left to extend")
            if found.extended is not None:
                raise Refused("the request was extended already, and the law allows it once")
            if now > legal_deadline(found.received):
                raise Refused("the legal month is over: an extension has to be told within it")
            number = add_event(connection, now, actor, "extended", found.request_id).number
            if self._database.subjects.some(connection, [found.request_id]):
                # Where who asked is gone nothing is kept beside them.
                self._database.remarks.keep(connection, number, found.request_id, {"reason": reason})
            extended = self._queue.history.get(request_id)
            keep_deadlines(connection, found.request_id, found.state, extended.deadlines(self._queue.terms))

        self._database.change(change)

    def retry(self, request_id: str, actor: str, now: datetime) -> None:
        """Have a failed request tried again now."""

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
        """Return who asked, and write down who wanted to know."""

        def change(connection: Connection) -> str:
            self._queue.history.get(request_id)
            kept = self._database.subjects.some(connection, [request_id])
            if not kept:
                raise Refused("who asked is not kept any more: the request has ended, or the data is erased")
            add_event(connection, now, actor, "revealed", request_id)
            return kept[0].user

        return self._database.change(change)

    def _refuse_naming(self, request_id: str, reason: str | None, actor: str, now: datetime) -> None:
        """Refuse a reason that names the person: who asked is shown to nobody who does not ask for it.

        Whoever guesses a name learns from it who asked: so it is written down like a look.
        """

        def change(connection: Connection) -> bool:
            kept = self._database.subjects.some(connection, [request_id])
            named = any(names(one.user, reason or "") for one in kept)
            if named:
                add_event(connection, now, actor, "named", request_id)
            return named

        if self._database.change(change):
            raise WrongUse("the reason names the person, who is shown to nobody unasked: say it without the id")
