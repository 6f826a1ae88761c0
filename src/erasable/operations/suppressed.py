"""Who has asked to be erased, and who of them is suppressed; answered here for library, command and service."""

import time

from erasable.errors import WorkspaceError
from erasable.operations.home import Home, Session
from erasable.operations.meanwhile import not_served
from erasable.proof import read_search
from erasable.requests.asked import NOBODY_ASKED, Asked
from erasable.requests.opening import queue_mark, suppressed_in

_SETTLED_NANOSECONDS = 1_000_000_000  # a file that changes twice within one tick of its clock looks as if it did once


def suppressed_people(home: Home, session: Session) -> frozenset[str]:
    """Return everyone who is not served."""
    return not_served(session.state().knowledge, asked_people(home, session))


def asked_people(home: Home, session: Session) -> Asked:
    """Return everyone with an open request; refused if that can't be read, since then nobody may be served."""
    return pending_people(session) | (suppressed_in(session.path) if session.path else Asked.of(home.asked()))


def queue_fault(home: Home) -> str | None:
    """Say what is wrong with the queue, if it does not say who has asked."""
    try:
        if home.path is not None:
            suppressed_in(home.path)
    except WorkspaceError as error:
        return error.said
    return None


def pending_people(session: Session) -> Asked:
    """Return whose requests the workspace itself holds; the others are in the queue.

    Who is erased and not certified is served like who waits: of the items asked for nothing is left in this version.
    Who had asked an earlier release was told that they are not served at all.
    """
    content = session.papers().pending
    if session.pending_files and not content:
        raise WorkspaceError(
            f"{session.pending_files[0]} may not be read by this user, and it says who has asked to be erased: run "
            "this as the owner of the workspace"
        )
    search = read_search(content)
    return Asked.of(one.request for one in search.people) | Asked(frozenset(one.user for one in search.accepted))


def places_found(session: Session) -> dict[str, tuple[str, ...]]:
    """Return where something is still found of those who are erased and can't be certified; it names nobody."""
    return read_search(session.papers().pending).places_shown


class FiledPeople:
    """Those who have an open request in the queue, read again whenever the queue may have changed."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._folder = home.path
        self._mark: object = None
        self.last_read = NOBODY_ASKED

    def now(self) -> Asked:
        """Return who they are at this moment."""
        if self._folder is None:
            self.last_read = Asked.of(self._home.asked())
            return self.last_read
        # In this order: what is written after the mark was taken is read the next time at the latest.
        mark, changed = queue_mark(self._folder)
        if mark != self._mark or time.time_ns() - changed < _SETTLED_NANOSECONDS:
            self.last_read = suppressed_in(self._folder)
            self._mark = mark
        return self.last_read
