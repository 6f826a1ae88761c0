"""Where a workspace keeps its requests: in a file of its own, or in a Postgres that several servers share."""

import secrets
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from erasable.errors import QueueLost, Refused, WorkspaceDamaged, WrongUse
from erasable.operations.home import DiskHome, Home, Session
from erasable.operations.recording import version_facts
from erasable.proof import add_record
from erasable.requests.database import Database
from erasable.requests.identity import beginning, given_id
from erasable.requests.lease import holder_of
from erasable.requests.moving import copy_queue
from erasable.requests.opening import asked_in, database_at, open_database, queue_place, remove_queue_file
from erasable.store import Papers
from erasable.store.layout import KEYS, LEDGER_FILES

if TYPE_CHECKING:
    from erasable.requests.postgres import PostgresDatabase


def name_queue(home: DiskHome, address: str) -> None:
    """Keep requests in a Postgres from now on; those that are kept in the workspace move there, open ones too."""
    with home.writing() as session:
        preferences = session.papers().preferences
        named = preferences.queue
        if named is None:
            _move(session, home.path, address)
        elif named[0] != address:
            _rename(session, home.path, (address, named[1]), preferences.queue_id)


def begin_new_queue(home: Home) -> None:
    """Begin a new queue in place of one that is lost: what was asked for there is lost, and must be asked for again.

    The log says so.
    """
    if home.path is None:
        raise WrongUse("in memory no queue is lost: leave out new_queue")
    with home.writing() as session:
        _refuse_unless_lost(home.path)
        papers = session.papers()
        record = add_record(papers.audit, "new queue", version_facts(session.state(), session.stamp))
        place = papers.preferences.queue
        if place is not None:
            place, queue_id = _made_elsewhere(home.path, place[0])
            _amend(session, replace(papers, audit=record), place, queue_id)
            return
        remove_queue_file(home.path)  # which is empty
        # Whoever is stopped here leaves a workspace that has no queue yet, which is what was declared.
        _amend(session, replace(papers, audit=record), None, None)
        open_database(home.path, session).close()


def _refuse_unless_lost(folder: Path) -> None:
    try:
        asked_in(folder)
    except (QueueLost, WorkspaceDamaged):
        pass
    else:
        raise Refused("the queue of this workspace is there, and says who has asked: nothing was done")
    left = [str(path) for path in (folder / name for name in LEDGER_FILES) if path.is_file() and path.stat().st_size]
    if queue_place(folder) is None and any((folder / KEYS).glob("*")):
        left.append(str(folder / KEYS))  # of a queue in Postgres, which an older manifest does not name
    if left:
        raise Refused(
            f"what lies where the queue was may hold someone's requests: move {', '.join(left)} elsewhere, then begin "
            "with ",
            beginning(folder),
        )


def _made_elsewhere(folder: Path, address: str) -> tuple[tuple[str, str], str]:
    schema = f"erasable_{secrets.token_hex(8)}"
    with closing(database_at(folder, address, schema)) as there:
        there.create()
        return (address, schema), there.change(given_id)


def _rename(session: Session, folder: Path, place: tuple[str, str], queue_id: str | None) -> None:
    """Name another address of the same queue; another queue would not know who has asked."""
    with closing(database_at(folder, *place, queue_id)) as there:
        if not there.exists():
            raise Refused(
                f"this workspace's queue, the schema {place[1]}, is not in that database: move it there first with "
                "pg_dump and pg_restore, while no server runs"
            )
        there.migrate()
    _amend(session, session.papers(), place, queue_id)


def _move(session: Session, folder: Path, address: str) -> None:
    schema = f"erasable_{secrets.token_hex(8)}"
    with closing(database_at(folder, address, schema)) as there, closing(open_database(folder, session)) as here:
        there.create()
        try:
            # Whoever waits to write meanwhile finds the new queue named, and is refused: all that was answered moves.
            here.change(lambda _: _copied_and_named(here, there, session, (address, schema)))
        except BaseException:
            if queue_place(folder) is None:
                there.drop()
            raise
    remove_queue_file(folder)


def _copied_and_named(here: Database, there: "PostgresDatabase", session: Session, place: tuple[str, str]) -> None:
    holder = holder_of(here)
    if holder is not None:
        raise Refused(f"a worker is at work here (process {holder.number}): stop the service, then move the queue")
    copy_queue(here, there)
    papers = session.papers()
    _amend(session, papers, place, papers.preferences.queue_id)


def _amend(session: Session, papers: Papers, place: tuple[str, str] | None, queue_id: str | None) -> None:
    preferences = papers.preferences.model_copy(update={"queue": place, "queue_id": queue_id})
    session.amend(replace(papers, preferences=preferences))
