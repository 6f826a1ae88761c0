"""Requests that have ended: they leave the queue's tables for one sealed file, and both are read as one.

The file always holds all that were sealed so far. It becomes current with the manifest, and only then its requests are
deleted from the tables: whoever is stopped in between leaves them in both, and they are read once.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from erasable import fingerprint
from erasable.documents import newer
from erasable.errors import SuppressionUnknown, WorkspaceDamaged, WorkspaceError
from erasable.requests.plain import in_parts, marks
from erasable.requests.schema import ENDED_TABLES, FORMAT
from erasable.requests.sqlite_format import REMOVAL_TRIGGER, ended_schema, set_format
from erasable.store.folder import read_whole
from erasable.store.layout import MANIFEST
from erasable.store.manifest import RESTORE, Manifest
from erasable.store.opening import mark_of, read_manifest

_NUMBER = slice(60, 64)  # where a file of SQLite has the number that its writer gave it
_ENDED = "sealed"  # what the file is called on a connection
_TWICE = f"EXISTS (SELECT 1 FROM {_ENDED}.current_states AS ended WHERE ended.request_id = one.request_id)"  # noqa: S608


class WithEnded:
    """A connection to the queue whose views `all_…` have the requests that are sealed in a workspace too."""

    def __init__(self, connection: sqlite3.Connection, workspace: Path | None) -> None:
        self.connection = connection
        self.damage: WorkspaceError | None = None
        """Why the sealed requests can't be read, if so; then the views have only what is in the tables."""
        self._workspace = workspace
        self._mark: object = ()
        self._file: Path | None = None

    def begin(self, how: str) -> None:
        """Begin a transaction in which the tables and the sealed file fit each other.

        Refused where the workspace names another queue: whoever moves it holds the tables until that is named.
        """
        if self._workspace is None:
            if self._mark == ():
                self._attach(None)
                self._mark = None
            self.connection.execute(how)
            return
        while True:
            self._follow(self._workspace)
            self.connection.execute(how)
            # From the first look on the tables stay as they are; what had left them is in the file that is current.
            self.connection.execute("SELECT 1 FROM main.sqlite_master LIMIT 1").fetchone()
            if _mark(self._workspace) == self._mark:
                return
            self.connection.execute("ROLLBACK")

    def twice(self) -> list[str]:
        """Return the requests that are sealed and not deleted from the tables yet.

        To a queue that is older than its workspace one may be open: it ends there first, and who asked goes.
        """
        if self._file is None:
            return []
        rows = self.connection.execute(
            f"SELECT request_id FROM main.current_states AS one WHERE {_TWICE} "  # noqa: S608
            "AND request_id NOT IN (SELECT request_id FROM main.open_deadlines)"
        )
        return [row[0] for row in rows]

    def sealed_with(self, request_ids: Sequence[str]) -> bytes:
        """Return the file of sealed requests with some more, which have ended."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
            if self._file is None:
                made.executescript(ended_schema())
            else:
                made.deserialize(self.connection.serialize(name=_ENDED))
            # Since requests are sealed their tables are the same: nothing but the number of an earlier file is another.
            set_format(made, FORMAT)
            made.execute("BEGIN")
            for table in ENDED_TABLES:
                self._copy(table, request_ids, made)
            made.execute("COMMIT")
            return made.serialize()

    def delete(self, request_ids: Sequence[str]) -> None:
        """Delete requests from the tables; they are sealed."""
        self.connection.execute("DROP TRIGGER main.events_are_not_removed")
        for table in ENDED_TABLES:
            statement = f"DELETE FROM main.{table} WHERE request_id = ?"  # noqa: S608 - a name of ours
            self.connection.executemany(statement, [(request_id,) for request_id in request_ids])
        self.connection.execute(REMOVAL_TRIGGER)

    def _copy(self, table: str, request_ids: Sequence[str], made: sqlite3.Connection) -> None:
        columns = ENDED_TABLES[table]
        for part in in_parts(request_ids):
            wanted = f"SELECT {columns} FROM main.{table} WHERE request_id IN ({marks(part)})"  # noqa: S608
            rows = self.connection.execute(wanted, part)
            made.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks(rows.description)})", map(tuple, rows))  # noqa: S608

    def _follow(self, workspace: Path) -> None:
        """Attach the file that is current, if it is another than before; refused if the queue is elsewhere."""
        mark = _mark(workspace)
        if mark == self._mark:
            return
        try:
            file, self.damage = _current_file(workspace), None
        except SuppressionUnknown:
            raise
        except WorkspaceError as error:
            file, self.damage = None, error
        if file != self._file or self._mark == ():
            self._attach(file)
        self._mark = mark

    def _attach(self, file: Path | None) -> None:
        for table in ENDED_TABLES:
            self.connection.execute(f"DROP VIEW IF EXISTS temp.all_{table}")
        if self._file is not None:
            self.connection.execute(f"DETACH {_ENDED}")
        self._file = None
        if file is not None:
            self.connection.execute(f"ATTACH ? AS {_ENDED}", (f"{file.absolute().as_uri()}?mode=ro&immutable=1",))
            self._file = file
        for table, columns in ENDED_TABLES.items():
            both = f" WHERE NOT {_TWICE} UNION ALL SELECT {columns} FROM {_ENDED}.{table}" if file else ""  # noqa: S608
            rows = f"SELECT {columns} FROM main.{table} AS one{both}"  # noqa: S608
            self.connection.execute(f"CREATE TEMP VIEW all_{table} AS {rows}")


def refuse_moved(workspace: Path, manifest: Manifest) -> None:
    """Refuse a queue in a file where the manifest names one elsewhere."""
    if manifest.preferences.queue is not None:
        raise SuppressionUnknown(f"the queue of {workspace} is in a Postgres now: restart the service, or try again")


def _current_file(workspace: Path) -> Path | None:
    """Return the file of sealed requests that the manifest names, found whole; it must not name another queue."""
    if not (workspace / MANIFEST).exists():
        return None
    manifest = read_manifest(workspace)
    refuse_moved(workspace, manifest)
    if manifest.requests is None:
        return None
    file = workspace / manifest.requests
    digest, number = _digest_and_format_of(file, _changed(file))
    if digest != manifest.files[manifest.requests]:
        raise WorkspaceDamaged(f"{file} is damaged, and it holds the requests that have ended: {RESTORE}")
    if number > FORMAT:
        raise WorkspaceError(f"{file} {newer(number, FORMAT)}")
    return file


@lru_cache(maxsize=4)
def _digest_and_format_of(file: Path, changed: object) -> tuple[str, int]:
    """Return hash and format of a file as it was last changed; each connection asks whenever the manifest is another.

    Files of the first days have no number: it is 0.
    """
    content = read_whole(file)
    return fingerprint.of_bytes(content), int.from_bytes(content[_NUMBER], "big")


def _changed(file: Path) -> object:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns, found.st_size


def _mark(workspace: Path) -> object:
    try:
        return mark_of(workspace)
    except OSError:
        return None
