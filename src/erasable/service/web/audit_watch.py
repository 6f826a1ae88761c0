"""Whether the audit chain of the workspace is whole, looked up once for each version of it."""

import threading
from dataclasses import dataclass

from erasable.errors import WorkspaceDamaged
from erasable.operations import Home
from erasable.proof import papers_fault, records_of
from erasable.proof.audit_chain import Record


@dataclass(frozen=True)
class AuditState:
    """The records of the audit chain, and what is wrong with them or with the certificates, if anything is."""

    records: tuple[Record, ...]
    fault: str | None


class AuditWatch:
    """Reads the audit chain and checks it against the certificates whenever the workspace has changed."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._seen: tuple[object, AuditState] | None = None

    def state(self) -> AuditState:
        """Return the audit chain as it is now."""
        with self._lock:
            mark = self._home.mark()
            if self._seen is None or self._seen[0] != mark:
                self._seen = mark, self._look()
            return self._seen[1]

    def _look(self) -> AuditState:
        try:
            with self._home.reading() as session:
                papers, issued = session.papers(), session.issued()
                fault = papers_fault(papers, issued)
        except WorkspaceDamaged as error:
            return AuditState((), error.of_command)
        return AuditState(() if fault else tuple(records_of(papers.records())), fault)
