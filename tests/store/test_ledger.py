"""The ledger's file: durable, for its owner alone, and what is deleted in it is gone."""

import sqlite3
import stat
import threading
import time
from contextlib import closing

import numpy as np
import pytest

from erasable.errors import WorkspaceBusy, WorkspaceDamaged, WorkspaceError
from erasable.store import ledger as ledger_module
from erasable.store.layout import LEDGER
from erasable.store.ledger import Ledger, people_in_ledger


@pytest.fixture
def ledger(swift_path):
    opened = Ledger.open(swift_path)
    yield opened
    opened.close()


def add(connection, user):
    connection.execute("INSERT INTO intake (user_id, item_id) VALUES (?, 'a')", (user,))


def fail_after_adding(connection, user):
    add(connection, user)
    raise KeyError


def users(ledger):
    with ledger.reading() as connection:
        return [row["user_id"] for row in connection.execute("SELECT user_id FROM intake ORDER BY interaction_number")]


def content(folder):
    return b"".join(path.read_bytes() for path in folder.glob(f"{LEDGER}*"))


def test_it_is_for_its_owner_alone(ledger, swift_path):
    assert stat.S_IMODE((swift_path / LEDGER).stat().st_mode) == 0o600
    with ledger.writing() as connection:
        add(connection, "ann")
    assert stat.S_IMODE((swift_path / f"{LEDGER}-wal").stat().st_mode) == 0o600


def test_nobody_who_reads_while_it_is_made_finds_it_half_made(swift_path, monkeypatch):
    seen = []

    def looked_at(name):
        do = getattr(ledger_module, name)

        def look_and_do(*given):
            seen.append(people_in_ledger(swift_path))
            return do(*given)

        monkeypatch.setattr(ledger_module, name, look_and_do)

    for name in ("write_file", "flush_folder", "_connected"):
        looked_at(name)
    with closing(Ledger.open(swift_path)):
        assert seen == [frozenset()] * 5
    assert [path.name for path in swift_path.iterdir()] == [LEDGER]


def test_a_block_is_written_whole_or_not_at_all(ledger):
    with ledger.writing() as connection:
        add(connection, "ann")
    with pytest.raises(KeyError), ledger.writing() as connection:
        fail_after_adding(connection, "bob")
    assert users(ledger) == ["ann"]


def test_a_block_inside_another_is_a_part_of_it(ledger):
    with pytest.raises(KeyError), ledger.writing(), ledger.writing() as connection:
        fail_after_adding(connection, "ann")
    assert users(ledger) == []


def test_what_is_written_is_there_for_other_processes(ledger, swift_path):
    other = Ledger.open(swift_path)
    mark = other.change_mark()
    with ledger.writing() as connection:
        add(connection, "ann")
    assert users(other) == ["ann"]
    assert other.change_mark() != mark
    other.close()


def test_what_is_deleted_is_gone_from_every_file(ledger, swift_path):
    with ledger.writing() as connection:
        for number in range(500):
            add(connection, f"someone-{number:04d}-unmistakable")
    ledger.wipe()
    assert b"unmistakable" in content(swift_path)
    with ledger.writing() as connection:
        connection.execute("DELETE FROM intake WHERE interaction_number % 2 = 0")
    ledger.wipe()
    left = content(swift_path)
    for number in range(500):
        kept = number % 2 == 0
        assert (f"someone-{number:04d}-unmistakable".encode() in left) == kept


def test_wiping_waits_for_a_reader_and_says_so_if_one_stays(ledger, swift_path, monkeypatch):
    monkeypatch.setattr(ledger_module, "_TRUNCATE_SECONDS", 0.05)
    reader = sqlite3.connect(swift_path / LEDGER, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM intake").fetchall()
    with ledger.writing() as connection:
        add(connection, "ann")
    with pytest.raises(WorkspaceBusy, match="in use"):
        ledger.wipe()
    reader.execute("COMMIT")
    ledger.wipe()
    assert ledger.log_size() == 0
    reader.close()


def test_threads_take_turns(ledger):
    def write():
        for _ in range(50):
            with ledger.writing() as connection:
                add(connection, "ann")

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(users(ledger)) == 200


def test_two_that_open_it_first_at_once_make_one_ledger(swift_path):
    opened = []
    threads = [threading.Thread(target=lambda: opened.append(Ledger.open(swift_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 8
    for one in opened:
        one.close()


def test_what_is_no_ledger_is_refused(swift_path):
    (swift_path / LEDGER).write_bytes(b"not a database, and longer than a header of a hundred bytes" * 5)
    with pytest.raises(WorkspaceDamaged, match="damaged"):
        Ledger.open(swift_path)


def test_a_ledger_of_another_version_is_refused(swift_path):
    Ledger.open(swift_path).close()
    connection = sqlite3.connect(swift_path / LEDGER)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(WorkspaceError, match="format 99"):
        Ledger.open(swift_path)


def test_where_nothing_can_be_written_it_is_refused(swift_path):
    with pytest.raises(WorkspaceError, match="check the disk, and that you may write there"):
        Ledger.open(swift_path / "nowhere")


def test_whether_it_can_be_written_is_told(ledger, swift_path, monkeypatch):
    assert ledger.is_writable()
    other = sqlite3.connect(swift_path / LEDGER, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ledger._writer.execute("PRAGMA busy_timeout = 10")
    assert not ledger.is_writable()
    other.execute("ROLLBACK")
    other.close()


def test_nothing_is_left_of_long_ids_that_came_and_went_in_any_order(ledger, swift_path):
    """Pages are divided and joined on the way, where SQLite overwrites only what it knows to be deleted."""
    generator = np.random.default_rng(0)
    gone = set()
    for turn in range(12):
        coming = [f"{turn:02d}{generator.bytes(8).hex()}" + "x" * int(generator.integers(100)) for _ in range(300)]
        with ledger.writing() as connection:
            for user in coming:
                add(connection, user)
        left = users(ledger)
        leaving = [left[place] for place in generator.permutation(len(left))[: len(left) * 2 // 3]]
        with ledger.writing() as connection:
            connection.executemany("DELETE FROM intake WHERE user_id = ?", [(user,) for user in leaving])
        gone.update(leaving)
    ledger.wipe()
    found = content(swift_path)
    assert not [user for user in gone if user[:18].encode() in found]


def test_who_reads_does_not_wait_for_who_waits_to_write(ledger, swift_path):
    other = sqlite3.connect(swift_path / LEDGER, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ledger._writer.execute("PRAGMA busy_timeout = 3000")
    waiting = threading.Thread(target=ledger.is_writable)
    waiting.start()
    began = time.monotonic()
    assert users(ledger) == []
    ledger.change_mark()
    assert time.monotonic() - began < 2
    other.execute("ROLLBACK")
    waiting.join()
    other.close()


def test_inside_a_change_what_was_changed_is_read(ledger):
    with ledger.writing() as connection:
        add(connection, "ann")
        assert users(ledger) == ["ann"]


def test_a_ledger_that_was_removed_or_replaced_is_not_written_to(ledger, swift_path):
    (swift_path / LEDGER).unlink()
    with pytest.raises(WorkspaceError, match="removed or replaced"), ledger.writing():
        pass
    assert not ledger.is_writable()


def test_who_has_asked_is_told_to_other_commands(ledger, swift_path, tmp_path):
    assert people_in_ledger(tmp_path) == frozenset()
    with ledger.writing() as connection:
        connection.execute("INSERT INTO open_requests VALUES ('1', 'ann', NULL, 'code'), ('2', NULL, NULL, NULL)")
    assert people_in_ledger(swift_path) == {"ann"}
