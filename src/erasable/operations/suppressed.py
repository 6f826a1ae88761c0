"""Who is suppressed: has asked to be erased and is not served; answered here for library, command and service."""

import time
from pathlib import Path

from erasable.errors import WorkspaceError
from erasable.operations.home import Session
from erasable.proof import read_pending
from erasable.store.ledger import ledger_mark, people_in_ledger

NOBODY: frozenset[str] = frozenset()
_SETTLED_NANOSECONDS = 1_000_000_000  # a file that changes twice within one tick of its clock looks as if it did once


def suppressed_people(session: Session) -> frozenset[str]:
    """Return everyone with an open request; refused if that can't be read, since then nobody may be served."""
    return pending_people(session) | (people_in_ledger(session.path) if session.path else NOBODY)


def pending_people(session: Session) -> frozenset[str]:
    """Return whose requests the workspace itself holds; the service's are in its ledger."""
    content = session.papers().pending
    if session.pending_files and not content:
        raise WorkspaceError(
            f"{session.pending_files[0]} can't be read, and it says who has asked to be erased: run this as the owner "
            "of the workspace"
        )
    return read_pending(content).users


class FiledPeople:
    """Those who have an open request with the service, read again whenever the ledger may have changed."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._mark: object = None
        self.last_read = NOBODY

    def now(self) -> frozenset[str]:
        """Return who they are at this moment."""
        if self._folder is None:
            return NOBODY
        # In this order: what is written after the mark was taken is read the next time at the latest.
        mark, changed = ledger_mark(self._folder)
        if mark != self._mark or time.time_ns() - changed < _SETTLED_NANOSECONDS:
            self.last_read = people_in_ledger(self._folder)
            self._mark = mark
        return self.last_read
