"""The queue's file in SQLite: durable, for its owner alone, and what is deleted in it is gone."""

import sqlite3
import stat
import threading
import time
from contextlib import closing

import numpy as np
import pytest

from erasable.errors import WorkspaceBusy, WorkspaceDamaged, WorkspaceError
from erasable.requests import Request, sqlite
from erasable.requests import _sqlite_file as sqlite_file
from erasable.requests._sqlite_file import people_in_file
from erasable.requests.queue import Queue
from erasable.requests.sqlite import SqliteDatabase
from erasable.workspace.files import QUEUE_FILE


@pytest.fixture
def database(swift_path):
    opened = SqliteDatabase.open(swift_path)
    yield opened
    opened.close()


def add(connection, user):
    connection.execute("INSERT INTO intake (user_id, item_id) VALUES (?, 'a')", (user,))


def fail_after_adding(connection, user):
    add(connection, user)
    raise KeyError


def users(database):
    return [one.user for one in database.read(database.waiting.all)]


def content(folder):
    return b"".join(path.read_bytes() for path in folder.glob(f"{QUEUE_FILE}*"))


def test_it_is_for_its_owner_alone(database, swift_path):
    assert stat.S_IMODE((swift_path / QUEUE_FILE).stat().st_mode) == 0o600
    database.change(lambda connection: add(connection, "ann"))
    assert stat.S_IMODE((swift_path / f"{QUEUE_FILE}-wal").stat().st_mode) == 0o600


def test_nobody_who_reads_while_it_is_made_finds_it_half_made(swift_path, monkeypatch):
    seen = []

    def looked_at(module, name):
        do = getattr(module, name)

        def look_and_do(*given):
            seen.append(people_in_file(swift_path).people)
            return do(*given)

        monkeypatch.setattr(module, name, look_and_do)

    for module, name in ((sqlite_file, "write_file"), (sqlite_file, "flush_folder"), (sqlite, "_connected")):
        looked_at(module, name)
    with closing(SqliteDatabase.open(swift_path)):
        assert seen == [frozenset()] * 5
    assert [path.name for path in swift_path.iterdir()] == [QUEUE_FILE]


def test_a_block_is_written_whole_or_not_at_all(database):
    database.change(lambda connection: add(connection, "ann"))
    with pytest.raises(KeyError):
        database.change(lambda connection: fail_after_adding(connection, "bob"))
    assert users(database) == ["ann"]


def test_a_block_inside_another_is_a_part_of_it(database):
    with pytest.raises(KeyError):
        database.change(lambda _: database.change(lambda connection: fail_after_adding(connection, "ann")))
    assert users(database) == []


def test_what_is_written_is_there_for_other_processes(database, swift_path):
    other = SqliteDatabase.open(swift_path)
    mark = other.mark()
    database.change(lambda connection: add(connection, "ann"))
    assert users(other) == ["ann"]
    assert other.mark() != mark
    other.close()


def test_what_is_deleted_is_gone_from_every_file(database, swift_path):
    people = [(f"someone-{number:04d}-unmistakable",) for number in range(500)]
    statement = "INSERT INTO intake (user_id, item_id) VALUES (?, 'a')"
    database.change(lambda connection: connection.execute_many(statement, people))
    database.wipe()
    assert b"unmistakable" in content(swift_path)
    statement = "DELETE FROM intake WHERE interaction_number % 2 = 0"
    database.change(lambda connection: connection.execute(statement))
    database.wipe()
    left = content(swift_path)
    for number in range(500):
        kept = number % 2 == 0
        assert (f"someone-{number:04d}-unmistakable".encode() in left) == kept


def test_wiping_waits_for_a_reader_and_says_so_if_one_stays(database, swift_path, monkeypatch):
    monkeypatch.setattr(sqlite, "_TRUNCATE_SECONDS", 0.05)
    reader = sqlite3.connect(swift_path / QUEUE_FILE, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM intake").fetchall()
    database.change(lambda connection: add(connection, "ann"))
    with pytest.raises(WorkspaceBusy, match="in use"):
        database.wipe()
    reader.execute("COMMIT")
    database.wipe()
    assert database.log_size() == 0
    reader.close()


def test_threads_take_turns(database):
    def write():
        for _ in range(50):
            database.change(lambda connection: add(connection, "ann"))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(users(database)) == 200


def test_two_that_open_it_first_at_once_make_one_ledger(swift_path):
    opened = []
    threads = [threading.Thread(target=lambda: opened.append(SqliteDatabase.open(swift_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 8
    for one in opened:
        one.close()


def test_what_is_no_ledger_is_refused(swift_path):
    (swift_path / QUEUE_FILE).write_bytes(b"not a database, and longer than a header of a hundred bytes" * 5)
    with pytest.raises(WorkspaceDamaged, match="damaged"):
        SqliteDatabase.open(swift_path)


def test_a_ledger_of_another_version_is_refused(swift_path):
    SqliteDatabase.open(swift_path).close()
    connection = sqlite3.connect(swift_path / QUEUE_FILE)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(WorkspaceError, match="format 99"):
        SqliteDatabase.open(swift_path)


def test_where_nothing_can_be_written_it_is_refused(swift_path):
    with pytest.raises(WorkspaceError, match="check the disk, and that you may write there"):
        SqliteDatabase.open(swift_path / "nowhere")


def test_whether_it_can_be_written_is_told(database, swift_path, monkeypatch):
    queue = Queue(database)
    assert queue.is_writable()
    other = sqlite3.connect(swift_path / QUEUE_FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    database._writer.connection.execute("PRAGMA busy_timeout = 10")
    assert not queue.is_writable()
    other.execute("ROLLBACK")
    other.close()


def test_nothing_is_left_of_long_ids_that_came_and_went_in_any_order(database, swift_path):
    """Pages are divided and joined on the way, where SQLite overwrites only what it knows to be deleted."""
    generator = np.random.default_rng(0)
    gone = set()
    for turn in range(12):
        coming = [f"{turn:02d}{generator.bytes(8).hex()}" + "x" * int(generator.integers(100)) for _ in range(300)]
        statement = "INSERT INTO intake (user_id, item_id) VALUES (?, 'a')"
        rows = [(user,) for user in coming]
        database.change(lambda connection: connection.execute_many(statement, rows))  # noqa: B023 - run at once
        left = users(database)
        leaving = [left[place] for place in generator.permutation(len(left))[: len(left) * 2 // 3]]
        gone_now = [(user,) for user in leaving]
        statement = "DELETE FROM intake WHERE user_id = ?"
        database.change(lambda connection: connection.execute_many(statement, gone_now))  # noqa: B023 - run at once
        gone.update(leaving)
    database.wipe()
    found = content(swift_path)
    assert not [user for user in gone if user[:18].encode() in found]


def test_who_reads_does_not_wait_for_who_waits_to_write(database, swift_path):
    other = sqlite3.connect(swift_path / QUEUE_FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    database._writer.connection.execute("PRAGMA busy_timeout = 3000")
    waiting = threading.Thread(target=Queue(database).is_writable)
    waiting.start()
    began = time.monotonic()
    assert users(database) == []
    database.mark()
    assert time.monotonic() - began < 2
    other.execute("ROLLBACK")
    waiting.join()
    other.close()


def test_inside_a_change_what_was_changed_is_read(database):
    def add_and_read(connection):
        add(connection, "ann")
        assert users(database) == ["ann"]

    database.change(add_and_read)


def test_a_file_that_was_removed_or_replaced_is_neither_written_to_nor_made_again(database, swift_path):
    (swift_path / QUEUE_FILE).unlink()
    for ask in (database.change, database.read):
        with pytest.raises(WorkspaceError, match="removed or replaced"):
            ask(lambda connection: None)
    assert not (swift_path / QUEUE_FILE).exists()
    assert not Queue(database).is_writable()


def test_who_has_asked_is_told_to_other_commands(database, swift_path, tmp_path):
    assert people_in_file(tmp_path).people == frozenset()
    statement = "INSERT INTO open_requests VALUES ('1', 'ann', NULL, 'code'), ('2', NULL, NULL, NULL)"
    database.change(lambda connection: connection.execute(statement))
    assert people_in_file(swift_path).people == {"ann"}


def test_a_flipped_bit_of_who_asked_is_noticed_before_anybody_is_served(database, swift_path):
    user, path = "ann-the-unmistakable", swift_path / QUEUE_FILE
    database.change(lambda connection: database.subjects.keep(connection, Request(user, request_id="r1")))
    database.wipe()
    database.close()
    whole = path.read_bytes()
    assert people_in_file(swift_path).people == {user}
    places = [at for at in range(len(whole)) if whole.startswith(user.encode(), at)]
    assert len(places) == 2  # in the table, and in its index
    for place in (at + offset for at in places for offset in range(len(user))):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(WorkspaceError, match="damaged"):
            people_in_file(swift_path)
