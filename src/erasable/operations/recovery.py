"""What earlier processes left: requests that they had begun, and what an earlier release had accepted."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from erasable.operations.desk import COMMAND, Desk, of_commands
from erasable.operations.erase import outcome_of
from erasable.operations.home import Home, Session
from erasable.proof import Search, Sought, read_certificate, read_search, records_about
from erasable.requests import Request
from erasable.requests.lifecycle import AT_ONCE
from erasable.requests.queue import Queue

LOST = (
    "its certificate is missing, and nobody is known any more who asked: put back the newest copy of the workspace and "
    "try again; if there is none the person may be in the data again, so submit their request anew"
)
"""What is written down of a request whose subject is forgotten, and that neither papers nor search file name."""


def take_over(session: Session, desk: Desk) -> None:
    """Hand on to the queue who had asked a release that kept them in the workspace.

    A person's open request is joined, so that whoever is killed in between may do it again. Who is erased and not
    certified gets a request too: whatever comes of it is written there, and when it is tried again.
    """
    papers = session.papers()
    search = read_search(papers.pending)
    queue = Queue(desk.queue.database, AT_ONCE)
    for one in search.accepted:
        received = datetime.fromisoformat(one.received)
        queue.submit(Request(one.user, one.items), True, COMMAND, received, one.reference)
    for sought in unknown_to(desk.queue, search):
        queue.adopt(sought.request, COMMAND, datetime.fromisoformat(sought.received))
    if search.accepted:
        session.amend(replace(papers, pending=search.model_copy(update={"accepted": ()}).encoded()))


def unknown_to(queue: Queue, search: Search) -> list[Sought]:
    """Return who is erased and not certified, and has no request in the queue."""
    people = [*search.people]
    known = {one.request_id for one in queue.history.some([one.request_id for one in people])}
    return [one for one in people if one.request_id not in known]


def look_back(session: Session, desk: Desk, tried: Collection[str] = ()) -> None:
    """Write down as erased what was begun and is certified by now.

    What the search file names is erased, and certified next. What is neither there nor certified, and whose subject is
    forgotten, is lost: it can't be tried again by itself, someone has to look at it.
    """
    found = desk.queue.history.in_states(["erasing", "certifying", "failed"])
    certified = _end_certified(session, desk, found)
    sought = {one.request_id for one in read_search(session.papers().pending).people}
    left = [one.request_id for one in found if one.request_id not in certified | sought]
    kept = {one.request_id for one in desk.queue.subjects(left)}
    desk.fail([one for one in left if one not in kept], LOST, tried, retry=lambda request: None)


def begin(session: Session, desk: Desk, request_ids: Sequence[str]) -> list[Request]:
    """Begin requests and return those with who asked and for what, less what the search file names: it is erased."""
    sought = {one.request_id for one in read_search(session.papers().pending).people}
    return [one for one in desk.begin([one for one in request_ids if one not in sought]) if one.user]


def _end_certified(session: Session, desk: Desk, found: Sequence[Request]) -> set[str]:
    issued = session.issued()
    contents = {one.request_id: issued[name] for one in found if (name := f"{one.request_id}.json") in issued}
    if contents:
        records = records_about(contents, session.papers())
        read = {one: read_certificate(content) for one, content in contents.items()}
        desk.end({one: outcome_of(certificate, records.get(one, {})) for one, certificate in read.items()})
    return {*contents}


def is_left(request: Request) -> bool:
    """Whether an open request came by command or from the library: then whoever forgets next finishes it."""
    return of_commands(request) and request.state in ("suppressed", "erasing", "failed")


def left_to_finish(home: Home, session: Session) -> frozenset[str]:
    """Return whose erasure is not certified, and who asked by command and is not erased."""
    search = read_search(session.papers().pending)
    return search.users.union(one.user for one in home.asked() if is_left(one))
