"""Requests that have ended leave the ledger for a sealed file, and are read as before."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from erasable.errors import WorkspaceDamaged, WorkspaceError
from erasable.store import Workspace
from erasable.store.ledger import Ledger, people_in_ledger
from erasable.store.ledger_format import ENDED_TABLES, FORMAT, ended_schema, format_of

TABLES = ("events", "current_states", "receipts", "joined_submissions")


@pytest.fixture
def shop(learned):
    """A workspace with three requests: two have ended, one is open."""
    ledger = Ledger.open(learned)
    with ledger.writing() as connection:
        for request_id, status in (("one", "erased"), ("two", "erased"), ("three", "suppressed")):
            add(connection, request_id, "received")
            add(connection, request_id, status)
            connection.execute("INSERT INTO receipts VALUES (?, ?)", (f"digest of {request_id}", request_id))
        connection.execute("INSERT INTO joined_submissions VALUES ('joined', 'digest', 'one', 'at noon', x'00')")
        connection.execute("INSERT INTO open_requests VALUES ('three', 'ann', NULL, 'a code')")
        add(connection, None, None)
    ledger.close()
    return learned


@pytest.fixture
def ledger(shop):
    opened = Ledger.open(shop)
    yield opened
    opened.close()


def add(connection, request_id, status):
    values = (request_id, "2026-03-09T12:00:00+00:00", "event", status, "someone", "{}")
    connection.execute(
        "INSERT INTO events (request_id, event_time, event_name, status, actor_name, facts) VALUES (?, ?, ?, ?, ?, ?)",
        values,
    )


def everything(ledger):
    """Return all rows, in the order of their keys."""
    with ledger.reading_all() as connection:
        return {table: sorted(map(tuple, connection.execute(f"SELECT * FROM all_{table}"))) for table in TABLES}


def in_ledger(ledger):
    with ledger.reading() as connection:
        return {table: connection.execute(f"SELECT count(*) FROM main.{table}").fetchone()[0] for table in TABLES}


def put_in_place(shop, content):
    with Workspace.writing(shop) as workspace:
        workspace.amend(replace(workspace.papers(), requests=content))


def sealed_file(shop):
    (found,) = shop.glob("sealed/requests-*.sqlite")
    return found


def test_without_a_sealed_file_the_views_are_the_tables(ledger):
    assert len(everything(ledger)["events"]) == 7
    assert ledger.sealed_twice() == []


def test_what_is_sealed_is_read_once_before_and_after_it_is_deleted(shop, ledger):
    before = everything(ledger)
    put_in_place(shop, ledger.sealed_with(["one", "two"]))
    assert everything(ledger) == before
    assert sorted(ledger.sealed_twice()) == ["one", "two"]
    ledger.delete_sealed()
    ledger.wipe()
    assert everything(ledger) == before
    assert in_ledger(ledger) == {"events": 3, "current_states": 1, "receipts": 1, "joined_submissions": 0}
    assert ledger.sealed_twice() == []


def test_more_are_sealed_beside_those_that_are(shop, ledger):
    before = everything(ledger)
    for request_id in ("one", "two"):
        put_in_place(shop, ledger.sealed_with([request_id]))
        ledger.delete_sealed()
    assert everything(ledger) == before
    assert in_ledger(ledger)["current_states"] == 1
    assert sealed_file(shop).stat().st_mode & 0o777 == 0o600


def test_another_process_that_has_it_open_reads_the_same(shop, ledger):
    other = Ledger.open(shop)
    before = everything(other)
    put_in_place(shop, ledger.sealed_with(["one"]))
    ledger.delete_sealed()
    assert everything(other) == before
    put_in_place(shop, ledger.sealed_with(["two"]))
    ledger.delete_sealed()
    with other.writing():
        assert everything(other) == before
    other.close()


def test_whoever_reads_while_it_is_sealed_goes_on_with_what_was_there(shop, ledger):
    other = Ledger.open(shop)
    before = everything(other)
    with other.reading_all():
        put_in_place(shop, ledger.sealed_with(["one"]))
        ledger.delete_sealed()
        assert everything(other) == before
    assert everything(other) == before
    other.close()


def test_events_can_not_be_removed_afterwards(shop, ledger):
    put_in_place(shop, ledger.sealed_with(["one"]))
    ledger.delete_sealed()
    with pytest.raises(Exception, match="events are never removed"), ledger.writing() as connection:
        connection.execute("DELETE FROM events")


def test_an_erasure_leaves_it_where_it_is_and_does_not_search_it(shop, ledger):
    put_in_place(shop, ledger.sealed_with(["one"]))
    with Workspace.writing(shop) as workspace:
        workspace.commit(workspace.state(), workspace.papers())
        assert f"sealed/{sealed_file(shop).name}" in workspace.sealed_files
    with Workspace.reading(shop) as workspace:
        assert workspace.damaged() == []


@pytest.mark.parametrize("harm", ["changed", "missing"])
def test_a_damaged_file_is_told_and_open_requests_go_on(shop, ledger, harm):
    put_in_place(shop, ledger.sealed_with(["one", "two"]))
    ledger.delete_sealed()
    ledger.close()
    file = sealed_file(shop)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    if harm == "missing":
        file.unlink()
    opened = Ledger.open(shop)
    with pytest.raises(WorkspaceDamaged, match=r"requests-.*: restore it"), opened.reading_all():
        pass
    with opened.writing() as connection:
        add(connection, "three", "erasing")
    assert in_ledger(opened)["events"] == 4
    assert opened.sealed_twice() == []
    assert people_in_ledger(shop) == {"ann"}
    opened.close()
    with Workspace.reading(shop) as workspace:
        assert workspace.damaged() == [f"sealed/{file.name}"]


def test_what_an_older_ledger_has_open_is_not_deleted_from_it(shop, ledger):
    put_in_place(shop, ledger.sealed_with(["one", "two"]))
    with ledger.writing() as connection:
        connection.execute("INSERT INTO open_requests VALUES ('one', 'bob', NULL, 'a code')")
    ledger.delete_sealed()
    assert in_ledger(ledger)["current_states"] == 2
    assert people_in_ledger(shop) == {"ann", "bob"}


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


def test_the_file_has_the_number_of_its_format(shop, ledger):
    first = ledger.sealed_with(["one"])
    put_in_place(shop, first)
    assert number_of(first) == number_of(ledger.sealed_with(["two"])) == FORMAT


def test_a_file_without_a_number_is_read_and_gets_one(shop, ledger):
    before = everything(ledger)
    put_in_place(shop, with_number(ledger.sealed_with(["one"]), 0))
    ledger.delete_sealed()
    assert everything(ledger) == before
    assert number_of(ledger.sealed_with(["two"])) == FORMAT


def test_a_file_of_a_later_format_is_refused_and_open_requests_go_on(shop, ledger):
    put_in_place(shop, with_number(ledger.sealed_with(["one"]), 99))
    with pytest.raises(WorkspaceError, match=r"format 99.*a later version wrote it, so install that one"):
        everything(ledger)
    with pytest.raises(WorkspaceError, match="format 99"):
        ledger.sealed_with(["two"])
    with ledger.writing() as connection:
        add(connection, "three", "erasing")
    assert in_ledger(ledger)["events"] == 8


def test_the_columns_are_those_of_the_tables():
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(ended_schema())
        for table, columns in ENDED_TABLES.items():
            assert columns == ", ".join(row[1] for row in made.execute(f"PRAGMA table_info({table})"))


def test_columns_in_another_order_are_read_by_their_names(shop, ledger):
    before = everything(ledger)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.deserialize(ledger.sealed_with(["one", "two"]))
        made.execute("CREATE TABLE turned (request_id TEXT NOT NULL, code_digest TEXT PRIMARY KEY) STRICT")
        made.execute("INSERT INTO turned SELECT request_id, code_digest FROM receipts")
        made.execute("DROP TABLE receipts")
        made.execute("ALTER TABLE turned RENAME TO receipts")
        put_in_place(shop, made.serialize())
    ledger.delete_sealed()
    assert everything(ledger) == before
