"""The queue in Postgres: for several servers in front of one workspace, whose folder they share.

A connection may be lost at any moment. Reading is done again. A change writes its own random id first, under one lock
for all changes of the workspace: who does not know whether a commit came through finds it when trying again, so that no
change is lost or made twice.
"""

import re
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row

from erasable.documents import newer
from erasable.errors import DiskFull, QueueUnreachable, SuppressionUnknown, WorkspaceBusy, WorkspaceError, WrongUse
from erasable.requests import database
from erasable.requests.database import Connection, Row, Value
from erasable.requests.identity import IDENTITY, lost
from erasable.requests.key_files import KeyFiles, KeyMissing
from erasable.requests.schema import ENDED_TABLES, FORMAT, POSTGRES, statements
from erasable.requests.sealed import (
    SEALED_TABLES,
    Mark,
    OlderSnapshot,
    OpenSubjects,
    SealedLabels,
    SealedRemarks,
    SealedSubjects,
    SealedWaiting,
    Touched,
    keys_in_use,
)

T = TypeVar("T")
_WAIT_SECONDS = 30  # for a change: as long as SQLite waits for its file
_READ_SECONDS = 15  # a server that is restarted takes a few
_MARK_SECONDS = 1  # whoever is served meanwhile may have asked to be erased
_MOMENT_SECONDS = 0.1
_POLL_SECONDS = 0.5  # whoever listens to a line that was cut hears nothing, and is not told
_TIDY_SECONDS = 600
_KEPT_SECONDS = 3600  # nobody asks longer whether a change came through
_MOST_READERS = 8  # at once, in one process; a change has a connection beside them, and whoever listens one more
_SCHEMA = re.compile(r"[a-z_][0-9a-z_]{0,62}")
_PASSWORDS = ("password", "sslpassword")
_AGAIN = (  # the server says that it was not our fault, and that nothing was done
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.ReadOnlySqlTransaction,  # the one that writes is another by now
)
_ANOTHER = (  # the queue that is meant is not there
    psycopg.errors.UndefinedTable,
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.DivisionByZero,
)
_SETTINGS: dict[str, str | int] = {  # a line that was cut without a word is noticed within seconds
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "application_name": "erasable",
}
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"  # whatever is the default there: who had to wait sees what came before
_NEWEST = "SELECT change_number, change_id FROM {}changes ORDER BY change_number DESC LIMIT 1"
_IS_OWN = "SELECT 1 / count(*) FROM identity WHERE queue_id = '{}'"  # in another queue it divides by 0
_NUMBERED = (
    "WITH last AS (SELECT * FROM changes ORDER BY change_number DESC LIMIT 1) INSERT INTO changes SELECT "
    "1 + coalesce((SELECT change_number FROM last), 0), '{}', extract(epoch FROM clock_timestamp()), '' "
    "ON CONFLICT (change_id) DO NOTHING RETURNING change_number - 1 AS number, (SELECT change_id FROM last) AS id"
)
_WITHOUT_ROWS = re.compile(r"(?!.*\bRETURNING\b)(INSERT|UPDATE|DELETE|CREATE)\b", re.DOTALL)
_READ_FORMAT = "SELECT format_number FROM queue_format"
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_EVENTS_STAY = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'events are never changed or removed'; END $$;
CREATE TRIGGER events_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON events EXECUTE FUNCTION refuse_change()
"""


class _Lost(Exception):
    """The connection is gone, or could not be made."""


class PostgresTransaction:
    """A transaction: the statements of the queue, as Postgres wants them."""

    def __init__(
        self,
        raw: psycopg.Connection[Any],
        mark: Mark | None = None,
        newest: bool = True,
        first: Sequence[str] = (),
    ) -> None:
        """Take a connection that is in a transaction, or what begins one; a change is known by the one before it."""
        self._raw = raw
        self._mark = mark
        self.newest = newest
        self.touched = Touched()
        self._unsent: list[tuple[str, Sequence[Value]]] = [(statement, ()) for statement in first]

    def execute(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run one statement, and return its rows; one that has none is sent along with the next that has some.

        So a change goes to the server and back a few times, not once for each statement: others wait for it.
        """
        if _WITHOUT_ROWS.match(statement):
            self._unsent.append((statement, values))
            return []
        unsent, self._unsent = self._unsent, []
        if not unsent:
            return self._raw.execute(_translated(statement), values).fetchall()
        with self._raw.pipeline():
            for one, its in unsent:
                self._raw.execute(_translated(one), its)
            return self._raw.execute(_translated(statement), values).fetchall()

    def execute_many(self, statement: str, rows: Collection[Sequence[Value]]) -> None:
        """Run one statement for each row of values."""
        self._unsent += [(statement, values) for values in rows]

    def send(self) -> None:
        """Send what is not sent yet."""
        if self._unsent:
            self.execute("SELECT 1")

    @cached_property
    def mark(self) -> Mark:
        """The newest change that was there before this transaction changed anything."""
        if self._mark is not None:
            return self._mark
        rows = self.execute(_NEWEST.format(""))
        return (rows[0]["change_number"], rows[0]["change_id"]) if rows else (0, "")


class PostgresDatabase:
    """A queue in a schema of its own, with the keys of its people in the workspace."""

    def __init__(self, address: str, schema: str, keys: Path, queue_id: str | None = None) -> None:
        """Take where it lies, and its id if the workspace knows that; nothing is asked of it yet."""
        if not _SCHEMA.fullmatch(schema):
            raise WrongUse("a queue's schema has small letters, digits and underscores: correct it in the workspace")
        if queue_id is not None and not IDENTITY.fullmatch(queue_id):
            raise WrongUse("a queue's id has 32 digits from 0 to f: correct it in the workspace")
        self._is_own = "SELECT 1" if queue_id is None else _IS_OWN.format(queue_id)
        refuse_passwords(address)
        self._schema = schema
        self._address = make_conninfo(address, **{k: v for k, v in _SETTINGS.items() if k not in _said(address)})
        self._keys = KeyFiles(keys)
        self._people = OpenSubjects(self._keys)
        self.subjects = SealedSubjects(self._people)
        self.remarks = SealedRemarks(self._people, self.subjects)
        self.waiting = SealedWaiting(self._people)
        self.labels = SealedLabels(self._keys)
        self._idle: list[psycopg.Connection[Any]] = []
        weakref.finalize(self, _close, self._idle)  # for whoever does not close it
        self._readers = threading.BoundedSemaphore(_MOST_READERS)
        self._local = threading.local()
        self._changing, self._listening = threading.Lock(), threading.Lock()
        self._listener: psycopg.Connection[Any] | None = None
        self._seen: object = None
        self._away_since: float | None = None
        self._failed_at = self._tidy_again = 0.0
        self._last_mark: tuple[Mark | None, float] = (None, 0)
        self._closed = threading.Event()

    def read(self, work: Callable[[Connection], T], with_ended: bool = False) -> T:
        """Return what `work` finds in one snapshot; requests that have ended are among the others here."""
        within = getattr(self._local, "changing", None) or getattr(self._local, "reading", None)
        if within is not None:
            return work(within)
        return self._retried(lambda: self._read(work), _READ_SECONDS)

    def change(self, work: Callable[[Connection], T]) -> T:
        """Change the queue: all of `work` is durable when this returns, once, or nothing of it ever was."""
        within = getattr(self._local, "changing", None)
        if within is not None:
            return work(within)
        change_id, done = secrets.token_hex(16), list[T]()
        with self._changing:
            return self._retried(lambda: self._change(work, change_id, done), _WAIT_SECONDS)

    def time(self, connection: Connection) -> float:
        """Return the database's own time: servers may have other clocks."""
        return float(connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8 AS now")[0]["now"])

    def mark(self) -> Mark:
        """Return the number and the id of the newest change, or what was the newest a moment ago.

        It is asked for each answer that a server gives, while thousands may submit: so not each time anew, and where
        nobody answered just now that is said without asking.
        """
        now = time.monotonic()
        known, at = self._last_mark
        if known is not None and now - at < _MOMENT_SECONDS:
            return known
        if self._away_since is not None and now - self._failed_at < _MARK_SECONDS:
            raise _unreachable("nobody answered a moment ago")
        return self.mark_now()

    def mark_now(self) -> Mark:
        """Return the number and the id of the newest change, as it is now."""
        found = self._retried(self._mark, _MARK_SECONDS)
        self._last_mark = (found, time.monotonic())
        return found

    def wait(self, seconds: float) -> bool:
        """Wait until the queue has changed since this was last called: until it is told, or finds it by looking."""
        end = time.monotonic() + seconds
        with self._listening:
            while not self._closed.is_set():
                self._listen()
                mark = self.mark_now()
                if mark != self._seen:
                    self._seen = mark
                    return True
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._be_told(min(left, _POLL_SECONDS))
        return False

    def wipe(self) -> None:
        """Destroy every key that nothing needs any more: what it opened is noise from then on, wherever it lies."""
        self.change(self.waiting.change_keys)
        # In a change of its own: a key goes only when it is durable that nothing has it. Listed before: whoever made
        # one by then has done so in a change that is over when this one begins, and later ones are not listed.
        listed = self._keys.names()
        self._keys.destroy(listed - self.change(keys_in_use))

    def tidy(self) -> None:
        """Drop the ids of changes that nobody asks for any more, once in a while: it is a change itself."""
        if time.monotonic() < self._tidy_again:
            return
        self._tidy_again = time.monotonic() + _TIDY_SECONDS
        old = "DELETE FROM changes WHERE change_time < ? AND change_number < (SELECT max(change_number) FROM changes)"
        self.change(lambda connection: connection.execute(old, (self.time(connection) - _KEPT_SECONDS,)))

    def create(self) -> None:
        """Make schema and tables, all at once."""
        self._retried(self._make, 0)

    def _make(self) -> None:
        with self._connected() as raw, self._explained(raw), self._ended(raw):
            raw.execute(f"{_BEGIN}; {self._path}; CREATE SCHEMA {self._schema}")
            made = [*statements(POSTGRES, sealed=True), SEALED_TABLES, _EVENTS_STAY]
            made += [f"CREATE VIEW all_{table} AS TABLE {table}" for table in ENDED_TABLES]
            raw.execute("; ".join([*made, f"CREATE TABLE queue_format AS SELECT {FORMAT} AS format_number"]))

    def drop(self) -> None:
        """Remove keys, tables and schema of a queue that came to nothing; without the keys the rest is noise."""
        self._keys.destroy(self._keys.names())
        with self._connected() as raw, self._explained(raw):
            raw.execute(f"DROP SCHEMA {self._schema} CASCADE")

    def exists(self) -> bool:
        """Whether the schema is there."""
        return self._retried(self._is_there, 0)

    def migrate(self) -> None:
        """Refuse tables of a newer format. None are made: a database without them is not the one that is meant."""
        # Without patience: whoever opens it is told at once that it is not there.
        rows = self._retried(lambda: self._read(lambda connection: connection.execute(_READ_FORMAT)), 0)
        found = max((row["format_number"] for row in rows), default=0)
        if found > FORMAT:
            raise SuppressionUnknown(f"the queue {newer(found, FORMAT)}")

    def close(self) -> None:
        """Close it."""
        self._closed.set()
        _close(self._idle)
        listener = self._listener
        if listener is not None:
            listener.close()

    def _is_there(self) -> bool:
        with self._connected() as raw, self._explained(raw):
            found = raw.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (self._schema,)).fetchone()
        return found is not None

    def _read(self, work: Callable[[Connection], T]) -> T:
        """Read in one snapshot; anew where others have gone on, or destroyed a key, since it was taken."""
        for newest in (False, True, True):
            with suppress(OlderSnapshot, KeyMissing):
                return self._read_once(work, newest)
        return self._read_once(work, newest=True)

    def _read_once(self, work: Callable[[Connection], T], newest: bool) -> T:
        with (
            self._readers,
            self._connected() as raw,
            self._explained(raw),
            self._ended(raw),
        ):
            transaction = PostgresTransaction(raw, newest=newest, first=(_SNAPSHOT, self._path, self._is_own))
            if newest:
                with self._people.as_of(transaction):
                    pass  # the snapshot is taken here, when nobody can have gone further
            self._local.reading = transaction
            try:
                return work(transaction)
            finally:
                self._local.reading = None

    def _change(self, work: Callable[[Connection], T], change_id: str, done: list[T]) -> T:
        """Try to make a change; one whose commit came through before is found by its id, and not made again."""
        with self._connected() as raw, self._explained(raw), self._ended(raw) as committing:
            row = self._begun(raw, change_id)
            if row is None:
                return done[0]
            done.clear()
            transaction = self._local.changing = PostgresTransaction(raw, (row["number"], row["id"] or ""))
            try:
                result = work(transaction)
            finally:
                self._local.changing = None
            touched = transaction.touched.written()
            if touched:
                transaction.execute("UPDATE changes SET touched = ? WHERE change_id = ?", (touched, change_id))
            transaction.send()
            database.before_commit()
            done.append(result)  # from here on nobody knows, until it is said or looked up
            committing(f"NOTIFY {self._schema}")
            for followed in (self._people, self.waiting):
                followed.take_over(transaction, (row["number"] + 1, change_id))
            return result

    def _begun(self, raw: psycopg.Connection[Any], change_id: str) -> dict[str, Any] | None:
        """Begin a change: it is the only one, and durable when it is over; None if it was made already."""
        first = (
            _BEGIN,
            self._path,
            f"SET LOCAL lock_timeout = {1000 * _WAIT_SECONDS}",
            f"SET LOCAL idle_in_transaction_session_timeout = {1000 * _WAIT_SECONDS}",
            "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'",
            f"SELECT pg_advisory_xact_lock(hashtextextended('{self._schema}', 0))",
            self._is_own,
            _NUMBERED.format(change_id),
        )
        said = raw.execute(_translated("; ".join(first)))
        while said.nextset():
            pass
        found: dict[str, Any] | None = said.fetchone()
        return found

    @property
    def _path(self) -> str:
        return f"SET LOCAL search_path TO {self._schema}, pg_catalog"

    @contextmanager
    def _ended(self, raw: psycopg.Connection[Any]) -> Iterator[Callable[..., None]]:
        """End the transaction of a block; whoever commits earlier is given how."""

        def commit(*last: str) -> None:
            said = raw.execute("; ".join([*last, "COMMIT"]))
            while said.nextset():
                pass
            if said.statusmessage != "COMMIT":
                raise WorkspaceError("the database took a change back without saying why: look into its log")

        try:
            yield commit
            if raw.info.transaction_status is not psycopg.pq.TransactionStatus.IDLE:
                commit()
        except BaseException as error:
            if not isinstance(error, Exception) or not self._rolled_back(raw):
                raw.close()
            raise

    @staticmethod
    def _rolled_back(raw: psycopg.Connection[Any]) -> bool:
        """Take a transaction back; say whether the connection can be used again."""
        with suppress(psycopg.Error):
            raw.execute("ROLLBACK")
            return True
        return False

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """Have a connection for a while: one that is idle, or a new one."""
        try:
            raw = self._idle.pop()
        except IndexError:
            raw = self._connect()
        try:
            yield raw
        finally:
            if raw.closed or raw.broken or self._closed.is_set():
                raw.close()
            else:
                self._idle.append(raw)

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            return psycopg.connect(self._address, autocommit=True, prepare_threshold=None, row_factory=dict_row)
        except psycopg.Error as error:
            raise _Lost(_first_line(error)) from None

    @contextmanager
    def _explained(self, raw: psycopg.Connection[Any]) -> Iterator[None]:
        """Say what went wrong in words that help."""
        try:
            yield
        except _ANOTHER as error:
            raise lost(
                self._keys.folder.parent,
                "the database that this workspace names does not hold its queue",
                "check the address, or put the database back from its newest copy",
            ) from error
        except psycopg.errors.LockNotAvailable as error:
            raise WorkspaceBusy("somebody else is changing the queue: try again") from error
        except psycopg.errors.DiskFull as error:
            raise DiskFull("the disk of the queue's database is full: free some space there and try again") from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise WorkspaceError(
                f"the database refuses ({_first_line(error)}): let this user make schemas there "
                "(GRANT CREATE ON DATABASE)"
            ) from error
        except psycopg.Error as error:
            if raw.broken or raw.closed or isinstance(error, _AGAIN):
                raise _Lost(_first_line(error)) from error
            raise

    def _retried(self, attempt: Callable[[], T], seconds: float) -> T:
        """Try until it is done, or the queue is away for so long; whoever comes later has less to wait for it."""
        pause = 0.0
        while True:
            try:
                result = attempt()
            except _Lost as lost:
                self._failed_at = now = time.monotonic()
                self._away_since = since = self._away_since or now
                if now + pause > since + seconds:
                    raise _unreachable(str(lost)) from None
                time.sleep(pause)
                pause = min(0.5, 2 * pause or 0.01)
            else:
                self._away_since = None
                return result

    def _mark(self) -> Mark:
        with self._readers, self._connected() as raw, self._explained(raw):
            row = raw.execute(_translated(_NEWEST.format(f"{self._schema}."))).fetchone()
        return (row["change_number"], row["change_id"]) if row else (0, "")

    def _listen(self) -> None:
        """Listen on a connection of its own; where that is not to be had, looking has to do."""
        if self._listener is not None and not self._listener.closed:
            return
        with suppress(psycopg.Error, _Lost):
            self._listener = self._connect()
            self._listener.execute(f"LISTEN {self._schema}")

    def _be_told(self, seconds: float) -> None:
        if self._listener is None or self._listener.closed:
            self._closed.wait(seconds)
            return
        try:
            for _ in self._listener.notifies(timeout=seconds, stop_after=1):
                return
        except psycopg.Error:
            self._listener.close()


def _close(connections: list[psycopg.Connection[Any]]) -> None:
    while connections:
        connections.pop().close()


def _unreachable(why: str) -> QueueUnreachable:
    return QueueUnreachable(
        f"the queue of this workspace can't be reached ({why}), and it says who has asked to be erased, so nobody is "
        "served and nobody forgotten: start the database, or check its address, PGPASSWORD and the network, and try "
        "again"
    )


def refuse_passwords(address: str) -> None:
    """Refuse an address with a password in it: it would be written into the workspace and its copies."""
    if any(name in _said(address) for name in _PASSWORDS):
        raise WrongUse(
            "leave the password out of the queue's address, since the workspace keeps it: put it into PGPASSWORD, or "
            "into a file that PGPASSFILE names"
        )


def _said(address: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(address)
    except psycopg.Error:
        # Not what the library says: it may quote a password.
        raise WrongUse("the queue's address is none: give it as postgresql://user@host:5432/database") from None


@lru_cache(maxsize=512)
def _translated(statement: str) -> Any:  # noqa: ANN401 - psycopg wants a literal
    return statement.replace("?", "%s")


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
