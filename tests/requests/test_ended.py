"""Requests that have ended leave the database for a sealed file, and are read as before."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from erasable.errors import WorkspaceDamaged, WorkspaceError
from erasable.requests._sqlite_file import people_in_file
from erasable.requests.database import add_event
from erasable.requests.schema import ENDED_TABLES, FORMAT, ended_schema, format_of
from erasable.requests.sqlite import SqliteDatabase
from erasable.workspace import Workspace

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
OPEN = (
    "INSERT INTO open_deadlines (request_id, first_number, status, legal_time, over_limit) "
    "VALUES (?, 1, 'suppressed', 0, 0)"
)
TABLES = ("events", "current_states", "receipts", "joined_submissions")


@pytest.fixture
def shop(learned):
    """A workspace with three requests: two have ended, one is open."""
    database = SqliteDatabase.open(learned)

    def fill(connection):
        for request_id, status in (("one", "erased"), ("two", "erased"), ("three", "suppressed")):
            add(connection, request_id, "received")
            add(connection, request_id, status)
            connection.execute("INSERT INTO receipts VALUES (?, ?)", (f"digest of {request_id}", request_id))
        connection.execute("INSERT INTO joined_submissions VALUES ('joined', 'digest', 'one', 'at noon', x'00')")
        connection.execute("INSERT INTO open_requests VALUES ('three', 'ann', NULL, 'a code')")
        connection.execute(OPEN, ("three",))
        add(connection, None, None)

    database.change(fill)
    database.close()
    return learned


@pytest.fixture
def database(shop):
    opened = SqliteDatabase.open(shop)
    yield opened
    opened.close()


def add(connection, request_id, status):
    add_event(connection, NOON, "someone", "event", request_id, status)


def everything(database):
    """Return all rows, in the order of their keys."""

    def found(connection):
        return {table: sorted(map(tuple, connection.execute(f"SELECT * FROM all_{table}"))) for table in TABLES}

    return database.read(found, with_ended=True)


def in_tables(database):
    def found(connection):
        return {table: connection.execute(f"SELECT count(*) AS total FROM {table}")[0]["total"] for table in TABLES}

    return database.read(found)


def put_in_place(shop, content):
    with Workspace.writing(shop) as workspace:
        workspace.amend(replace(workspace.documents(), requests=content))


def sealed_file(shop):
    (found,) = shop.glob("sealed/requests-*.sqlite")
    return found


def test_without_a_sealed_file_the_views_are_the_tables(database):
    assert len(everything(database)["events"]) == 7
    assert database.sealed_twice() == []


def test_what_is_sealed_is_read_once_before_and_after_it_is_deleted(shop, database):
    before = everything(database)
    put_in_place(shop, database.sealed_with(["one", "two"]))
    assert everything(database) == before
    assert sorted(database.sealed_twice()) == ["one", "two"]
    database.delete_sealed()
    database.wipe()
    assert everything(database) == before
    assert in_tables(database) == {"events": 3, "current_states": 1, "receipts": 1, "joined_submissions": 0}
    assert database.sealed_twice() == []


def test_more_are_sealed_beside_those_that_are(shop, database):
    before = everything(database)
    for request_id in ("one", "two"):
        put_in_place(shop, database.sealed_with([request_id]))
        database.delete_sealed()
    assert everything(database) == before
    assert in_tables(database)["current_states"] == 1
    assert sealed_file(shop).stat().st_mode & 0o777 == 0o600


def test_another_process_that_has_it_open_reads_the_same(shop, database):
    other = SqliteDatabase.open(shop)
    before = everything(other)
    put_in_place(shop, database.sealed_with(["one"]))
    database.delete_sealed()
    assert everything(other) == before
    put_in_place(shop, database.sealed_with(["two"]))
    database.delete_sealed()
    assert other.change(lambda connection: everything(other)) == before
    other.close()


def test_whoever_reads_while_it_is_sealed_goes_on_with_what_was_there(shop, database):
    other = SqliteDatabase.open(shop)
    before = everything(other)

    def seal_meanwhile(connection):
        put_in_place(shop, database.sealed_with(["one"]))
        database.delete_sealed()
        assert everything(other) == before

    other.read(seal_meanwhile, with_ended=True)
    assert everything(other) == before
    other.close()


def test_events_can_not_be_removed_afterwards(shop, database):
    put_in_place(shop, database.sealed_with(["one"]))
    database.delete_sealed()
    with pytest.raises(Exception, match="events are never removed"):
        database.change(lambda connection: connection.execute("DELETE FROM events"))


def test_an_erasure_leaves_it_where_it_is_and_does_not_search_it(shop, database):
    put_in_place(shop, database.sealed_with(["one"]))
    with Workspace.writing(shop) as workspace:
        workspace.commit(workspace.state(), workspace.documents())
        assert f"sealed/{sealed_file(shop).name}" in workspace.sealed_files
    with Workspace.reading(shop) as workspace:
        assert workspace.damaged() == []


@pytest.mark.parametrize("harm", ["changed", "missing"])
def test_a_damaged_file_is_told_and_open_requests_go_on(shop, database, harm):
    put_in_place(shop, database.sealed_with(["one", "two"]))
    database.delete_sealed()
    database.close()
    file = sealed_file(shop)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    if harm == "missing":
        file.unlink()
    opened = SqliteDatabase.open(shop)
    with pytest.raises(WorkspaceDamaged, match=r"requests-.*: restore it"):
        everything(opened)
    opened.change(lambda connection: add(connection, "three", "erasing"))
    assert in_tables(opened)["events"] == 4
    assert opened.sealed_twice() == []
    assert people_in_file(shop).people == {"ann"}
    opened.close()
    with Workspace.reading(shop) as workspace:
        assert workspace.damaged() == [f"sealed/{file.name}"]


def test_what_an_older_ledger_has_open_is_not_deleted_from_it(shop, database):
    put_in_place(shop, database.sealed_with(["one", "two"]))
    statement = "INSERT INTO open_requests VALUES ('one', 'bob', NULL, 'a code')"
    database.change(lambda connection: (connection.execute(statement), connection.execute(OPEN, ("one",))))
    database.delete_sealed()
    assert in_tables(database)["current_states"] == 2
    assert people_in_file(shop).people == {"ann", "bob"}


def with_number(content, number):
    """The same file with another number of its format."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.deserialize(content)
        made.execute(f"PRAGMA user_version = {number}")
        return made.serialize()


def number_of(content):
    with closing(sqlite3.connect(":memory:")) as made:
        made.deserialize(content)
        return format_of(made)


def test_the_file_has_the_number_of_its_format(shop, database):
    first = database.sealed_with(["one"])
    put_in_place(shop, first)
    assert number_of(first) == number_of(database.sealed_with(["two"])) == FORMAT


def test_a_file_without_a_number_is_read_and_gets_one(shop, database):
    before = everything(database)
    put_in_place(shop, with_number(database.sealed_with(["one"]), 0))
    database.delete_sealed()
    assert everything(database) == before
    assert number_of(database.sealed_with(["two"])) == FORMAT


def test_a_file_of_a_later_format_is_refused_and_open_requests_go_on(shop, database):
    put_in_place(shop, with_number(database.sealed_with(["one"]), 99))
    with pytest.raises(WorkspaceError, match=r"format 99.*a later version wrote it, so install that one"):
        everything(database)
    with pytest.raises(WorkspaceError, match="format 99"):
        database.sealed_with(["two"])
    database.change(lambda connection: add(connection, "three", "erasing"))
    assert in_tables(database)["events"] == 8


def test_the_columns_are_those_of_the_tables():
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(ended_schema())
        for table, columns in ENDED_TABLES.items():
            assert columns == ", ".join(row[1] for row in made.execute(f"PRAGMA table_info({table})"))


def test_columns_in_another_order_are_read_by_their_names(shop, database):
    before = everything(database)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.deserialize(database.sealed_with(["one", "two"]))
        made.execute("CREATE TABLE turned (request_id TEXT NOT NULL, code_digest TEXT PRIMARY KEY) STRICT")
        made.execute("INSERT INTO turned SELECT request_id, code_digest FROM receipts")
        made.execute("DROP TABLE receipts")
        made.execute("ALTER TABLE turned RENAME TO receipts")
        put_in_place(shop, made.serialize())
    database.delete_sealed()
    assert everything(database) == before
