"""Recover after earlier processes: requests that they began, and documents that contradict each other."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from erasable.errors import WorkspaceDamaged, said
from erasable.operations.claims import COMMAND, RequestClaims, of_commands
from erasable.operations.erase import outcome_of
from erasable.operations.storage import Session, Storage
from erasable.proof.certificate import read_certificate
from erasable.proof.checking import newest_documents_fault, records_about, version_fault
from erasable.proof.log import records_of
from erasable.proof.search_file import Search, Sought, read_search
from erasable.requests.queue import Queue
from erasable.requests.request import AT_ONCE, Request

LOST = (
    "its certificate is missing, and it is no longer known who asked: put back the newest copy of the workspace and "
    "try again; if there is none the person may be in the data again, so submit their request again"
)
"""Why a request fails whose subject is removed, and that no certificate and no search file names."""


def refuse_broken_documents(session: Session) -> None:
    """Refuse if log, signing key and version contradict each other: a new certificate would never verify."""
    documents = session.documents()
    fault = newest_documents_fault(documents, session.issued(), bool(session.sealed_files))
    if fault is None and not is_unrecorded(session):
        fault = version_fault(documents, session.stamp, session.state())
    if fault:
        remedy = ": nothing was done; restore the workspace from a copy made after the last erasure"
        raise WorkspaceDamaged(said(fault, remedy))


def is_unrecorded(session: Session) -> bool:
    """Whether the current version comes from an erasure of which nobody is certified yet."""
    documents = session.documents()
    recorded = [record["version"] for record in records_of(documents.log) if record["what"] != "verify"]
    made = [one.version for one in read_search(documents.pending).erasures]
    return any(one in (None, session.stamp.version) for one in made) and session.stamp.version not in recorded[-1:]


def take_over(session: Session, claims: RequestClaims) -> None:
    """Move requests into the queue that an earlier release kept in the workspace.

    A person's open request is joined, so this can be repeated after a kill. People who are erased and not certified get
    a request too, which records what comes of it and when it is tried again.
    """
    documents = session.documents()
    search = read_search(documents.pending)
    queue = Queue(claims.queue.database, AT_ONCE)
    for one in search.accepted:
        received = datetime.fromisoformat(one.received)
        queue.submit(Request(one.user, one.items), True, COMMAND, received, one.reference)
    for sought in unknown_to(claims.queue, search):
        queue.adopt(sought.request, COMMAND, datetime.fromisoformat(sought.received))
    if search.accepted:
        session.amend(replace(documents, pending=search.model_copy(update={"accepted": ()}).encoded()))


def unknown_to(queue: Queue, search: Search) -> list[Sought]:
    """Return people who are erased and not certified, and have no request in the queue."""
    people = [*search.people]
    known = {one.request_id for one in queue.history.some([one.request_id for one in people])}
    return [one for one in people if one.request_id not in known]


def look_back(session: Session, claims: RequestClaims, tried: Collection[str] = ()) -> None:
    """Record requests that were begun and are certified by now as erased.

    Requests that the search file names are erased, and certified next. A request that is neither there nor certified,
    and whose subject is removed, is lost: it can't be retried automatically, someone has to look at it.
    """
    found = claims.queue.history.in_states(["erasing", "certifying", "failed"])
    certified = _end_certified(session, claims, found)
    sought = {one.request_id for one in read_search(session.documents().pending).people}
    left = [one.request_id for one in found if one.request_id not in certified | sought]
    kept = {one.request_id for one in claims.queue.subjects(left)}
    claims.fail([one for one in left if one not in kept], LOST, tried, retry=lambda request: None)


def begin(session: Session, claims: RequestClaims, request_ids: Sequence[str]) -> list[Request]:
    """Begin requests, except those that the search file names as erased, and return them with their subjects."""
    sought = {one.request_id for one in read_search(session.documents().pending).people}
    return [one for one in claims.begin([one for one in request_ids if one not in sought]) if one.user]


def _end_certified(session: Session, claims: RequestClaims, found: Sequence[Request]) -> set[str]:
    issued = session.issued()
    contents = {one.request_id: issued[name] for one in found if (name := f"{one.request_id}.json") in issued}
    if contents:
        records = records_about(contents, session.documents())
        read = {one: read_certificate(content) for one, content in contents.items()}
        claims.end({one: outcome_of(certificate, records.get(one, {})) for one, certificate in read.items()})
    return {*contents}


def is_left(request: Request) -> bool:
    """Whether an open request came by command or from the library: then the next `forget` finishes it."""
    return of_commands(request) and request.state in ("suppressed", "erasing", "failed")


def left_to_finish(storage: Storage, session: Session) -> frozenset[str]:
    """Return people who are erased and not certified, or asked by command and are not erased."""
    search = read_search(session.documents().pending)
    return search.users.union(one.user for one in storage.asked() if is_left(one))
