"""Where a workspace keeps its queue: in its own file, or in a Postgres that several servers share."""

import secrets
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from erasable.errors import QueueLost, Refused, WorkspaceDamaged, WrongUse
from erasable.operations.recording import version_facts
from erasable.operations.storage import DiskStorage, Session, Storage
from erasable.proof.log import add_record
from erasable.requests.database import Database, beginning, given_id
from erasable.requests.lease import holder_of
from erasable.requests.opening import asked_in, copy_queue, database_at, open_database, queue_place, remove_queue_file
from erasable.workspace.layout import KEYS, QUEUE_FILES
from erasable.workspace.manifest import Documents

if TYPE_CHECKING:
    from erasable.requests.postgres import PostgresDatabase


def name_queue(storage: DiskStorage, address: str) -> None:
    """Keep requests in Postgres from now on; those in the workspace move there, open ones too."""
    with storage.writing() as session:
        preferences = session.documents().preferences
        named = preferences.queue
        if named is None:
            _move(session, storage.path, address)
        elif named[0] != address:
            _rename(session, storage.path, (address, named[1]), preferences.queue_id)


def begin_new_queue(storage: Storage) -> None:
    """Begin a new queue in place of one that is lost. Its requests are lost and must be made again; the log says so."""
    if storage.path is None:
        raise WrongUse("in memory no queue is lost: leave out new_queue")
    with storage.writing() as session:
        _refuse_unless_lost(storage.path)
        documents = session.documents()
        record = add_record(documents.log, "new queue", version_facts(session.state(), session.stamp))
        place = documents.preferences.queue
        if place is not None:
            place, queue_id = _made_elsewhere(storage.path, place[0])
            _amend(session, replace(documents, log=record), place, queue_id)
            return
        remove_queue_file(storage.path)  # which is empty
        # If stopped here, the workspace has no queue yet, as the log says.
        _amend(session, replace(documents, log=record), None, None)
        open_database(storage.path, session).close()


def _refuse_unless_lost(folder: Path) -> None:
    try:
        asked_in(folder)
    except (QueueLost, WorkspaceDamaged):
        pass
    else:
        raise Refused("the queue of this workspace is there, and says who has asked: nothing was done")
    left = [str(path) for path in (folder / name for name in QUEUE_FILES) if path.is_file() and path.stat().st_size]
    if queue_place(folder) is None and any((folder / KEYS).glob("*")):
        left.append(str(folder / KEYS))  # of a queue in Postgres that an older manifest does not name
    if left:
        raise Refused(
            f"these files may hold people's requests: move {', '.join(left)} elsewhere, then begin with ",
            beginning(folder),
        )


def _made_elsewhere(folder: Path, address: str) -> tuple[tuple[str, str], str]:
    schema = f"erasable_{secrets.token_hex(8)}"
    with closing(database_at(folder, address, schema)) as there:
        there.create()
        return (address, schema), there.change(given_id)


def _rename(session: Session, folder: Path, place: tuple[str, str], queue_id: str | None) -> None:
    """Remember another address of the same queue; another queue would not know who has asked."""
    with closing(database_at(folder, *place, queue_id)) as there:
        if not there.exists():
            raise Refused(
                f"this workspace's queue, the schema {place[1]}, is not in that database: move it there first with "
                "pg_dump and pg_restore, while no server runs"
            )
        there.migrate()
    _amend(session, session.documents(), place, queue_id)


def _move(session: Session, folder: Path, address: str) -> None:
    schema = f"erasable_{secrets.token_hex(8)}"
    with closing(database_at(folder, address, schema)) as there, closing(open_database(folder, session)) as here:
        there.create()
        try:
            # A writer that waits meanwhile finds the new queue named and is refused, so nothing is left behind.
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
    documents = session.documents()
    _amend(session, documents, place, documents.preferences.queue_id)


def _amend(session: Session, documents: Documents, place: tuple[str, str] | None, queue_id: str | None) -> None:
    preferences = documents.preferences.model_copy(update={"queue": place, "queue_id": queue_id})
    session.amend(replace(documents, preferences=preferences))
