"""Finished requests: they move from the queue's tables to one sealed file, and both are read as one.

The file always holds all requests sealed so far. It becomes current with the manifest, and only then are its requests
deleted from the tables. An interruption in between leaves them in both, and they are read once.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from erasable import fingerprint
from erasable.documents import newer
from erasable.errors import SuppressionUnknown, WorkspaceDamaged, WorkspaceError
from erasable.requests._sqlite_file import in_parts, marks
from erasable.requests.schema import ENDED_TABLES, FORMAT, REMOVAL_TRIGGER, ended_schema, set_format
from erasable.workspace.folder import mark_of, read_manifest, read_whole
from erasable.workspace.layout import MANIFEST
from erasable.workspace.manifest import RESTORE, Manifest

_NUMBER = slice(60, 64)  # where an SQLite file stores its user_version
_ENDED = "sealed"  # the schema name of the attached file
_TWICE = f"EXISTS (SELECT 1 FROM {_ENDED}.current_states AS ended WHERE ended.request_id = one.request_id)"  # noqa: S608


class WithEnded:
    """A connection to the queue whose views `all_…` also have the workspace's sealed requests."""

    def __init__(self, connection: sqlite3.Connection, workspace: Path | None) -> None:
        self.connection = connection
        self.damage: WorkspaceError | None = None
        """Why the sealed requests can't be read, if so; then the views only have the rows of the tables."""
        self._workspace = workspace
        self._mark: object = ()
        self._file: Path | None = None

    def begin(self, how: str) -> None:
        """Begin a transaction in which the tables and the sealed file are consistent.

        Refused if the workspace names another queue: a move locks the tables until the new queue is named.
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
            # The first read fixes the snapshot; whatever had left the tables by then is in the current file.
            self.connection.execute("SELECT 1 FROM main.sqlite_master LIMIT 1").fetchone()
            if _mark(self._workspace) == self._mark:
                return
            self.connection.execute("ROLLBACK")

    def twice(self) -> list[str]:
        """Return the requests that are sealed but not yet deleted from the tables.

        If the queue was restored from an older copy, such a request may be open there: it must end first, so that its
        subject is deleted.
        """
        if self._file is None:
            return []
        rows = self.connection.execute(
            f"SELECT request_id FROM main.current_states AS one WHERE {_TWICE} "  # noqa: S608
            "AND request_id NOT IN (SELECT request_id FROM main.open_deadlines)"
        )
        return [row[0] for row in rows]

    def sealed_with(self, request_ids: Sequence[str]) -> bytes:
        """Return the file of sealed requests with these finished requests added."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
            if self._file is None:
                made.executescript(ended_schema())
            else:
                made.deserialize(self.connection.serialize(name=_ENDED))
            # The tables never changed since requests are sealed, so an earlier file only needs the new format number.
            set_format(made, FORMAT)
            made.execute("BEGIN")
            for table in ENDED_TABLES:
                self._copy(table, request_ids, made)
            made.execute("COMMIT")
            return made.serialize()

    def delete(self, request_ids: Sequence[str]) -> None:
        """Delete sealed requests from the tables."""
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
        """Attach the current file if it has changed; refused if the queue is elsewhere."""
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
    """Refuse the queue's file if the manifest names a queue elsewhere."""
    if manifest.preferences.queue is not None:
        raise SuppressionUnknown(f"the queue of {workspace} is in a Postgres now: restart the service, or try again")


def _current_file(workspace: Path) -> Path | None:
    """Return the file of sealed requests that the manifest names, checked; refused if it names another queue."""
    if not (workspace / MANIFEST).exists():
        return None
    manifest = read_manifest(workspace)
    refuse_moved(workspace, manifest)
    if manifest.requests is None:
        return None
    file = workspace / manifest.requests
    digest, number = _digest_and_format_of(file, _changed(file))
    if digest != manifest.files[manifest.requests]:
        raise WorkspaceDamaged(f"{file} is damaged, and it holds the finished requests: {RESTORE}")
    if number > FORMAT:
        raise WorkspaceError(f"{file} {newer(number, FORMAT)}")
    return file


@lru_cache(maxsize=4)
def _digest_and_format_of(file: Path, changed: object) -> tuple[str, int]:
    """Return hash and format of a file; cached until the file changes, since every connection asks after each commit.

    The first files had no format number: it reads as 0.
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
