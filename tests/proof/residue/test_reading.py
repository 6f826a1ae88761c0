"""Files of a database that may be in use are read without touching its locks."""

import sqlite3

import pytest

from erasable.proof.residue.reading import read_file


def test_a_file_is_read_whole_or_from_its_beginning(tmp_path):
    (tmp_path / "notes.txt").write_bytes(b"0123456789")
    assert read_file(tmp_path / "notes.txt") == b"0123456789"
    assert read_file(tmp_path / "notes.txt", 4) == b"0123"


def test_reading_a_database_leaves_its_user_the_locks(tmp_path):
    """Who closes a file loses the locks of the own process on it, and another process would think nobody writes."""
    path = tmp_path / "x.sqlite"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE t (a)")
    writer.execute("BEGIN IMMEDIATE")
    for name in ("x.sqlite", "x.sqlite-wal", "x.sqlite-shm"):
        assert read_file(tmp_path / name) == read_file(tmp_path / name)
    assert read_file(path, 6) == b"SQLite"
    other = sqlite3.connect(path, isolation_level=None, timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    writer.execute("ROLLBACK")
    other.close()
    writer.close()


def test_what_is_not_there_can_not_be_read(tmp_path):
    for name in ("nothing", "nothing-wal"):
        with pytest.raises(OSError, match="No such file"):
            read_file(tmp_path / name)
