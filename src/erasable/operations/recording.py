"""What operations record: versions in the log, facts about the input, the issuer's name, and where the queue is."""

import re
import secrets
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from erasable.chain.dataset import (
    Dataset,
    State,
)
from erasable.data.columns import OF_WEIGHTS, quantity_among
from erasable.data.readers import ReadResult
from erasable.errors import (
    ErasableError,
    QueueLost,
    Refused,
    ResidueFound,
    Said,
    WorkspaceDamaged,
    WorkspaceError,
    WrongUse,
    said,
)
from erasable.operations.storage import DiskStorage, Session, Storage
from erasable.operations.work import Work
from erasable.progress import LOG
from erasable.proof.certificate import data_digest, new_key, public_key_of, state_digest
from erasable.proof.log import add_record
from erasable.requests.database import Database, beginning, given_id
from erasable.requests.lease import holder_of
from erasable.requests.opening import asked_in, copy_queue, database_at, open_database, queue_place, remove_queue_file
from erasable.requests.queue import SHORTEST_PART
from erasable.workspace.files import KEYS, QUEUE_FILES
from erasable.workspace.manifest import Documents, Preferences, Stamp

if TYPE_CHECKING:
    from erasable.requests.postgres import PostgresDatabase


_USUAL_NUMBERS = {"user": "1", "item": "2", "rating": "3", "time": "4", "weight": None, "event": None}
_FIRST_WINS = ("weight", "event")  # rows that the service takes in have their weight in a column of another name
_LONGEST = 200


def first_documents(state: State, stamp: Stamp, readmitted: int = 0) -> Documents:
    """Return the documents of a recommender that has just learned: a new key, and the first record."""
    key = new_key()
    facts = {"public_key": public_key_of(key), **version_facts(state, stamp), **readmission_facts(readmitted)}
    return Documents(log=add_record(b"", "learn", facts), key=key)


def version_facts(state: State, stamp: Stamp) -> dict[str, object]:
    """Return what a record says about its version."""
    return {
        "version": stamp.version,
        "state": state_digest(stamp.salt, state),
        "data": data_digest(stamp.salt, state),
        "erasable": version("erasable"),
    }


def readmission_facts(readmitted: int) -> dict[str, object]:
    """Return what a record says about people who came back after an erasure: how many, not who."""
    return {"readmitted": readmitted} if readmitted else {}


def record_verification(storage: Storage, facts: dict[str, object], work: Work) -> bool:
    """Record the outcome of a verification; if that fails, a note says so, and the verdict stays."""
    try:
        with storage.writing() as session:
            documents = session.documents()
            session.amend(replace(documents, log=add_record(documents.log, "verify", facts)))
    except WorkspaceError as error:
        work.reporter.note(said("the verification could not be recorded: ", error.said))
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class InputFacts:
    """The model, the columns used by role and those left, and how many rows were read, dropped and left out."""

    model: str
    rating_scale: str
    columns: dict[str, str]
    columns_left: tuple[str, ...]
    rows_read: int
    """How many rows the input has."""
    repeated: int
    """How many were dropped because a later row has the same user and item, or were added to another's weight."""
    bad_rows: int
    """How many were left out because they can't be used."""

    @classmethod
    def of(cls, read: ReadResult, dataset: Dataset) -> "InputFacts":
        """Return the facts about an input and its dataset, and log them."""
        facts = cls(
            model=dataset.config.model,
            rating_scale=str(dataset.scale),
            columns=read.taken.columns,
            columns_left=read.taken.left,
            rows_read=read.rows,
            repeated=read.repeated,
            bad_rows=read.bad_rows,
        )
        for sentence in facts.in_words():
            LOG.info("%s", sentence)
        return facts

    def in_words(self) -> Iterator[str]:
        """Say the same in sentences."""
        weighed = not self.columns.keys().isdisjoint(OF_WEIGHTS)
        yield f"model: {self.model}; {'weights' if weighed else 'rating scale'}: {self.rating_scale}"
        taken = ", ".join(role if role == name else f"{role} ({name})" for role, name in self.columns.items())
        yield f"columns taken: {taken}; left: {', '.join(self.columns_left) or 'none'}"
        quantity = quantity_among(self.columns_left)
        if quantity and not weighed and "rating" not in self.columns:
            option = Said(f"weight={quantity!r}", f"--weight-column {quantity}")
            yield said(f"the column {quantity} is not used; to learn it as a weight, give ", option)
        bad = f"; bad rows left out: {self.bad_rows:,}" if self.bad_rows else ""
        repeated = (
            "rows added to others of their (user, item) pair" if weighed else "repeated (user, item) pairs dropped"
        )
        yield f"rows read: {self.rows_read:,}; {repeated}: {self.repeated:,}{bad}"


def remembering(preferences: Preferences, read: ReadResult) -> Preferences:
    """Return what a workspace remembers after learning from an input: columns, and how times and ids are written.

    A role that this input lacks keeps its column. Times are shown as in the first input, ids as whole numbers if they
    always were. Default column numbers are not stored: a scan would take a stored 1 for user 1.
    """
    known = dict(preferences.columns)
    columns = {
        role: read.taken.columns[role]
        for role, number in _USUAL_NUMBERS.items()
        if read.taken.columns.get(role, number) != number and not (role in _FIRST_WINS and role in known)
    }
    return preferences.model_copy(
        update={
            "columns": tuple({**known, **columns}.items()),
            "time_kind": preferences.time_kind or read.taken.time_form,
            "users_are_numbers": preferences.users_are_numbers and "user" in read.taken.numbers,
            "items_are_numbers": preferences.items_are_numbers and "item" in read.taken.numbers,
        }
    )


def _names(column: str, user: str) -> bool:
    return user == column or (len(user) >= SHORTEST_PART and user in column)


def without_names_like(preferences: Preferences, users: Collection[str]) -> Preferences:
    """Return preferences without columns whose names contain one of these ids."""
    ids = [user.casefold() for user in users]
    columns = [pair for pair in preferences.columns if not any(_names(pair[1].casefold(), user) for user in ids)]
    return preferences.model_copy(update={"columns": tuple(columns)})


def name_issuer(storage: Storage, issuer: str) -> None:
    """Set the issuer that certificates name from now on; an empty name removes it."""
    name = " ".join(issuer.split())
    if len(name) > _LONGEST:
        raise Refused(f"the issuer's name is longer than {_LONGEST} letters: give a shorter one")
    with storage.writing() as session:
        if name and _holds_an_id(name, session.state().dataset):
            raise Refused(
                "the issuer's name holds the id of someone in the data, and certificates name nobody: give it in other "
                "words",
                Said("", " with erasable forget DIR --issuer NAME"),
            )
        documents = session.documents()
        before = documents.preferences
        issuers = tuple(dict.fromkeys(filter(None, (*before.issuers, before.issuer, name))))
        preferences = before.model_copy(update={"issuer": name or None, "issuers": issuers})
        session.amend(replace(documents, preferences=preferences))


@contextmanager
def issuing_as(storage: Storage, issuer: str | None) -> Iterator[None]:
    """Set the issuer, if a name is given; if the block is refused, the former name comes back."""
    if issuer is None:
        yield
        return
    with storage.reading() as session:
        before, erasures = session.documents().preferences, session.erasures
    name_issuer(storage, issuer)
    try:
        yield
    except ResidueFound:  # the erasure is done, and its certificate will carry the name
        raise
    except ErasableError:
        with suppress(ErasableError), storage.writing() as session:
            documents = session.documents()
            kept = before.issuers if session.erasures == erasures else documents.preferences.issuers
            named = documents.preferences.model_copy(update={"issuer": before.issuer, "issuers": kept})
            session.amend(replace(documents, preferences=named))
        raise


def _holds_an_id(name: str, dataset: Dataset) -> bool:
    """Whether a name contains a user id as a whole word, in any case."""
    text = name.casefold()
    found = {user.casefold() for bucket in dataset.buckets for user in bucket.users if user.casefold() in text}
    return any(re.search(rf"(?<!\w){re.escape(user)}(?!\w)", text) for user in found)


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
