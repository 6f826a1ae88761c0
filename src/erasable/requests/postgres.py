"""The queue in Postgres, for several servers that share the folder of one workspace.

A connection may be lost at any moment. Reads are repeated. A change first writes its own random id, under one lock for
all changes of the workspace: after a lost commit the retry finds that id, so that no change is lost or made twice.
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
from erasable.requests._key_files import KeyFiles, KeyMissing
from erasable.requests._sealed import (
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
from erasable.requests.database import IDENTITY, Connection, Row, Value, lost
from erasable.requests.schema import ENDED_TABLES, FORMAT, POSTGRES, statements

T = TypeVar("T")
_WAIT_SECONDS = 30  # for a change: as long as SQLite waits for its file
_READ_SECONDS = 15  # a server takes a few to restart
_MARK_SECONDS = 1  # short: someone served meanwhile may have asked to be erased
_MOMENT_SECONDS = 0.1
_POLL_SECONDS = 0.5  # a listener on a dead connection gets no notice and no error
_TIDY_SECONDS = 600
_KEPT_SECONDS = 3600  # no retry asks later than this whether a change was committed
_MOST_READERS = 8  # in one process; changes and the listener have connections of their own
_SCHEMA = re.compile(r"[a-z_][0-9a-z_]{0,62}")
_PASSWORDS = ("password", "sslpassword")
_AGAIN = (  # nothing was done, and a retry may succeed
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.ReadOnlySqlTransaction,  # another server has become the primary
)
_ANOTHER = (  # the database does not hold this queue
    psycopg.errors.UndefinedTable,
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.DivisionByZero,
)
_SETTINGS: dict[str, str | int] = {  # notice a dead connection within seconds
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "application_name": "erasable",
}
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"  # explicit: a change that waited must see the changes before it
_NEWEST = "SELECT change_number, change_id FROM {}changes ORDER BY change_number DESC LIMIT 1"
_IS_OWN = "SELECT 1 / count(*) FROM identity WHERE queue_id = '{}'"  # fails in another queue, dividing by 0
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
    """The connection was lost or could not be made."""


class PostgresTransaction:
    """A transaction in Postgres; statements without rows are sent in batches."""

    def __init__(
        self,
        raw: psycopg.Connection[Any],
        mark: Mark | None = None,
        newest: bool = True,
        first: Sequence[str] = (),
    ) -> None:
        """Take a connection and the statements that begin a transaction, or, for a change, the mark before it."""
        self._raw = raw
        self._mark = mark
        self.newest = newest
        self.touched = Touched()
        self._unsent: list[tuple[str, Sequence[Value]]] = [(statement, ()) for statement in first]

    def execute(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run a statement and return its rows; one without rows is sent along with the next that has some.

        So a change takes a few round trips instead of one for each statement, and others wait for it less.
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
        """Run a statement once for each row of values."""
        self._unsent += [(statement, values) for values in rows]

    def send(self) -> None:
        """Send the statements that are not sent yet."""
        if self._unsent:
            self.execute("SELECT 1")

    @cached_property
    def mark(self) -> Mark:
        """The newest change before this transaction."""
        if self._mark is not None:
            return self._mark
        rows = self.execute(_NEWEST.format(""))
        return (rows[0]["change_number"], rows[0]["change_id"]) if rows else (0, "")


class PostgresDatabase:
    """A queue in its own schema, with the keys to its personal data in the workspace."""

    def __init__(self, address: str, schema: str, keys: Path, queue_id: str | None = None) -> None:
        """Take its address and its id, if the workspace knows it, without connecting yet."""
        if not _SCHEMA.fullmatch(schema):
            raise WrongUse(
                "a queue's schema has lowercase letters, digits and underscores: correct it in the workspace"
            )
        if queue_id is not None and not IDENTITY.fullmatch(queue_id):
            raise WrongUse("a queue's id has 32 hexadecimal digits: correct it in the workspace")
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
        weakref.finalize(self, _close, self._idle)  # if nobody closes it
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
        """Run `work` on one snapshot; the tables here hold finished requests too."""
        within = getattr(self._local, "changing", None) or getattr(self._local, "reading", None)
        if within is not None:
            return work(within)
        return self._retried(lambda: self._read(work), _READ_SECONDS)

    def change(self, work: Callable[[Connection], T]) -> T:
        """Change the queue atomically: all of `work` is durable when this returns, exactly once, or none of it."""
        within = getattr(self._local, "changing", None)
        if within is not None:
            return work(within)
        change_id, done = secrets.token_hex(16), list[T]()
        with self._changing:
            return self._retried(lambda: self._change(work, change_id, done), _WAIT_SECONDS)

    def time(self, connection: Connection) -> float:
        """Return the database server's time, since the clocks of its clients may differ."""
        return float(connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8 AS now")[0]["now"])

    def mark(self) -> Mark:
        """Return the mark of the newest change, at most a moment old.

        Every answer of the service asks for it, so it is cached for a moment; and if the database did not answer just
        now, that is reported without asking again.
        """
        now = time.monotonic()
        known, at = self._last_mark
        if known is not None and now - at < _MOMENT_SECONDS:
            return known
        if self._away_since is not None and now - self._failed_at < _MARK_SECONDS:
            raise _unreachable("nobody answered a moment ago")
        return self.mark_now()

    def mark_now(self) -> Mark:
        """Return the mark of the newest change, as of now."""
        found = self._retried(self._mark, _MARK_SECONDS)
        self._last_mark = (found, time.monotonic())
        return found

    def wait(self, seconds: float) -> bool:
        """Wait for a notification of a change since the last call, and poll in case none arrives."""
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
        """Destroy every key that is no longer in use: what it encrypted becomes noise, wherever it is stored."""
        self.change(self.waiting.change_keys)
        # In a separate change: a key may go only once it is durable that nothing uses it. The keys are listed before:
        # a key listed here was made in a change that ends before this one begins, and later keys are not listed.
        listed = self._keys.names()
        self._keys.destroy(listed - self.change(keys_in_use))

    def tidy(self) -> None:
        """Drop the ids of old changes, once in a while, since this is a change itself."""
        if time.monotonic() < self._tidy_again:
            return
        self._tidy_again = time.monotonic() + _TIDY_SECONDS
        old = "DELETE FROM changes WHERE change_time < ? AND change_number < (SELECT max(change_number) FROM changes)"
        self.change(lambda connection: connection.execute(old, (self.time(connection) - _KEPT_SECONDS,)))

    def create(self) -> None:
        """Make the schema and the tables in one transaction."""
        self._retried(self._make, 0)

    def _make(self) -> None:
        with self._connected() as raw, self._explained(raw), self._ended(raw):
            raw.execute(f"{_BEGIN}; {self._path}; CREATE SCHEMA {self._schema}")
            made = [*statements(POSTGRES, sealed=True), SEALED_TABLES, _EVENTS_STAY]
            made += [f"CREATE VIEW all_{table} AS TABLE {table}" for table in ENDED_TABLES]
            raw.execute("; ".join([*made, f"CREATE TABLE queue_format AS SELECT {FORMAT} AS format_number"]))

    def drop(self) -> None:
        """Remove the keys, tables and schema of a failed move; the keys first, since without them the rest is noise."""
        self._keys.destroy(self._keys.names())
        with self._connected() as raw, self._explained(raw):
            raw.execute(f"DROP SCHEMA {self._schema} CASCADE")

    def exists(self) -> bool:
        """Whether the schema exists."""
        return self._retried(self._is_there, 0)

    def migrate(self) -> None:
        """Refuse tables of a newer format; none are made, since a database without them is the wrong one."""
        # Without retries: opening must fail at once if the database is away.
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
        """Read in one snapshot; again if others have read later changes, or destroyed a key, since it was taken."""
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
                    pass  # takes the snapshot under the lock, so that no thread can be ahead of it
            self._local.reading = transaction
            try:
                return work(transaction)
            finally:
                self._local.reading = None

    def _change(self, work: Callable[[Connection], T], change_id: str, done: list[T]) -> T:
        """Try to make a change; if an earlier attempt was committed, its id is found and the change not repeated."""
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
            done.append(result)  # from here on the outcome is unknown until the server confirms it
            committing(f"NOTIFY {self._schema}")
            for followed in (self._people, self.waiting):
                followed.take_over(transaction, (row["number"] + 1, change_id))
            return result

    def _begun(self, raw: psycopg.Connection[Any], change_id: str) -> dict[str, Any] | None:
        """Begin an exclusive, durable change; None if it was committed already."""
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
        """Commit at the end of a block or roll back; the block may commit earlier with the function it gets."""

        def commit(*last: str) -> None:
            said = raw.execute("; ".join([*last, "COMMIT"]))
            while said.nextset():
                pass
            if said.statusmessage != "COMMIT":
                raise WorkspaceError("the database rolled a change back without saying why: look into its log")

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
        """OpenList a transaction back; return whether the connection can be used again."""
        with suppress(psycopg.Error):
            raw.execute("ROLLBACK")
            return True
        return False

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """Yield an idle connection, or a new one."""
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
        """Turn errors of Postgres into ours, with a remedy."""
        try:
            yield
        except _ANOTHER as error:
            raise lost(
                self._keys.folder.parent,
                "the database that this workspace names does not hold its queue",
                "check the address, or restore the database from its newest copy",
            ) from error
        except psycopg.errors.LockNotAvailable as error:
            raise WorkspaceBusy("another process is changing the queue: try again") from error
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
        """Retry until the queue has been away for so long, counted from the first failure of any thread."""
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
        """Listen on a separate connection; if there is none to be had, polling has to do."""
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
    """Refuse an address with a password, which would end up in the workspace and its copies."""
    if any(name in _said(address) for name in _PASSWORDS):
        raise WrongUse(
            "leave the password out of the queue's address, since the workspace keeps it: put it into PGPASSWORD, or "
            "into a file that PGPASSFILE names"
        )


def _said(address: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(address)
    except psycopg.Error:
        # Without the library's message, which may quote a password.
        raise WrongUse("the queue's address is wrong: give it as postgresql://user@host:5432/database") from None


@lru_cache(maxsize=512)
def _translated(statement: str) -> Any:  # noqa: ANN401 - psycopg wants a literal
    return statement.replace("?", "%s")


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
