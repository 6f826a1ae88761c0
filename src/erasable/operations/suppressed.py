"""Who has asked to be erased, and who of them is suppressed; for library, commands and service."""

import time

from erasable.errors import WorkspaceError
from erasable.operations.people import not_served
from erasable.operations.storage import Session, Storage
from erasable.proof.search_file import read_search
from erasable.requests.opening import queue_mark, suppressed_in
from erasable.requests.request import NOBODY_ASKED, Asked

_SETTLED_NANOSECONDS = 1_000_000_000  # two changes within one tick of the file clock look like one


def suppressed_people(storage: Storage, session: Session) -> frozenset[str]:
    """Return everyone who is not served."""
    return not_served(session.state().dataset, asked_people(storage, session))


def asked_people(storage: Storage, session: Session) -> Asked:
    """Return everyone with an open request; an error if that can't be read, since then nobody may be served."""
    return pending_people(session) | (suppressed_in(session.path) if session.path else Asked.of(storage.asked()))


def queue_fault(storage: Storage) -> str | None:
    """Return why the queue can't be read, if it can't."""
    try:
        if storage.path is not None:
            suppressed_in(storage.path)
    except WorkspaceError as error:
        return error.said
    return None


def pending_people(session: Session) -> Asked:
    """Return whose requests the workspace itself holds; the others are in the queue.

    People who are erased and not certified are served like those who wait: this version has none of the items they
    named. People who asked an earlier release were told that they are not served at all.
    """
    content = session.documents().pending
    if session.pending_files and not content:
        raise WorkspaceError(
            f"{session.pending_files[0]} may not be read by this user, and it says who has asked to be erased: run "
            "this as the owner of the workspace"
        )
    search = read_search(content)
    return Asked.of(one.request for one in search.people) | Asked(frozenset(one.user for one in search.accepted))


def places_found(session: Session) -> dict[str, tuple[str, ...]]:
    """Return where something is left of people who can't be certified, by request; it names nobody."""
    return read_search(session.documents().pending).places_shown


class AskingPeople:
    """The people with an open request in the queue; read again whenever the queue may have changed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._folder = storage.path
        self._mark: object = None
        self.last_read = NOBODY_ASKED

    def now(self) -> Asked:
        """Return who they are now."""
        if self._folder is None:
            self.last_read = Asked.of(self._storage.asked())
            return self.last_read
        # In this order: what is written after the mark is read next time at the latest.
        mark, changed = queue_mark(self._folder)
        if mark != self._mark or time.time_ns() - changed < _SETTLED_NANOSECONDS:
            self.last_read = suppressed_in(self._folder)
            self._mark = mark
        return self.last_read
