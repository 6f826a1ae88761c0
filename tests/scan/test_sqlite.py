"""SQLite: rows that are there, rows that were deleted and not wiped, journals; and rows that were wiped."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from erasable.scan import Target

LEFT = "what deleted rows left"
RATINGS = "CREATE TABLE ratings (user_id TEXT, item_id TEXT, rating REAL)"
NUMBERED = "CREATE TABLE ratings (user_id INTEGER, item_id INTEGER, rating REAL)"


@contextmanager
def opened(path: Path, wiping: bool = False, journal: str = "delete") -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path)
    try:
        connection.execute(f"PRAGMA secure_delete = {'on' if wiping else 'off'}")
        connection.execute(f"PRAGMA journal_mode = {journal}")
        yield connection
        connection.commit()
    finally:
        connection.close()


def fill(connection: sqlite3.Connection, users: list, items: int = 5, schema: str = RATINGS) -> None:
    connection.execute(schema)
    rows = [(user, item if schema == NUMBERED else f"i{item}", 3.0) for user in users for item in range(items)]
    connection.executemany("INSERT INTO ratings VALUES (?, ?, ?)", rows)
    connection.commit()


def names(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def deleting(path: Path, user: object, **settings) -> None:
    with opened(path, **settings) as connection:
        connection.execute("DELETE FROM ratings WHERE user_id = ?", (user,))


@pytest.mark.parametrize("count", [3, 12, 100, 2000])
def test_a_deleted_row_stays_in_the_file_unless_it_is_wiped(tmp_path, scan, count):
    for wiping in (False, True):
        path = tmp_path / "shop.db"
        path.unlink(missing_ok=True)
        with opened(path, wiping) as connection:
            fill(connection, names(count))
        assert not scan("2").clean
        deleting(path, "2", wiping=wiping)
        assert scan("2").clean is wiping
        assert not scan("1").clean


def test_what_deleted_rows_left_is_told_from_rows(tmp_path, places):
    with opened(tmp_path / "shop.db") as connection:
        fill(connection, names(9))
    assert places("7") == {("table ratings, column user_id", "id")}
    deleting(tmp_path / "shop.db", "7")
    assert places("7") == {(f"{LEFT}, column user_id", "id")}


@pytest.mark.parametrize("user", [7, 300, 70_000, 2**40, -7])
def test_numbers_are_found_too(tmp_path, scan, user):
    with opened(tmp_path / "shop.db") as connection:
        fill(connection, [1, user, 3], schema=NUMBERED)
    assert not scan(str(user)).clean
    deleting(tmp_path / "shop.db", user)
    assert not scan(str(user)).clean
    # The items and ratings are no users.
    assert scan("4").clean
    assert scan("0").clean


def test_every_place_that_a_row_can_be_deleted_from_is_searched(tmp_path, scan):
    """First, middle and last rows of a page, in either order, one or all."""
    users = names(40)
    for start, stop in ((0, 1), (0, 9), (3, 20), (30, 40), (0, 40)):
        for order in ("ASC", "DESC"):
            path = tmp_path / "shop.db"
            path.unlink(missing_ok=True)
            with opened(path) as connection:
                fill(connection, users)
                chosen = connection.execute(f"SELECT rowid, user_id FROM ratings ORDER BY rowid {order}").fetchall()
                for row, user in chosen:
                    if user in users[start:stop]:
                        connection.execute("DELETE FROM ratings WHERE rowid = ?", (row,))
            assert all(not scan(user).clean for user in users[start:stop]), (start, stop, order)


@pytest.mark.parametrize("order", [("20", "21"), ("21", "20")])
def test_neighbours_who_were_deleted_one_after_the_other_are_both_found(tmp_path, scan, order):
    """Their free bytes are joined, and one row in the middle stays whole."""
    with opened(tmp_path / "shop.db") as connection:
        fill(connection, names(60))
    for user in order:
        deleting(tmp_path / "shop.db", user)
    assert not scan("20").clean
    assert not scan("21").clean


def test_pages_that_nothing_uses_any_more_are_searched(tmp_path, places):
    with opened(tmp_path / "shop.db") as connection:
        fill(connection, names(2000))
        connection.execute("DELETE FROM ratings")
    assert places("1234") == {(f"{LEFT}, column user_id", "id")}
    assert places("2345") == set()


def test_rows_of_a_table_that_is_gone_are_found(tmp_path, places):
    with opened(tmp_path / "shop.db") as connection:
        fill(connection, ["ann", "bob", "eve"])
        connection.execute("DROP TABLE ratings")
    assert places("eve") == {(f"{LEFT}, column 1", "id")}
    assert places("zoe") == set()


def test_an_index_keeps_ids_too(tmp_path, places):
    with opened(tmp_path / "shop.db") as connection:
        connection.execute("CREATE TABLE ratings (rating REAL, note TEXT, user_id TEXT)")
        rows = [(3.0, "x" * 50, user) for user in names(9) for _ in range(5)]
        connection.executemany("INSERT INTO ratings VALUES (?, ?, ?)", rows)
        connection.execute("CREATE INDEX by_user ON ratings (user_id)")
        # The table lets go of the id by itself; the index does not.
        connection.execute("UPDATE ratings SET user_id = 'yyyyyyy' WHERE user_id = '7'")
    assert (f"{LEFT}, column user_id", "id") in places("7")


@pytest.mark.parametrize("user", ["7", "77", "somebody"])
def test_a_table_that_is_stored_like_an_index_is_read(tmp_path, places, user):
    with opened(tmp_path / "shop.db") as connection:
        connection.execute("CREATE TABLE kept (item TEXT, user_id TEXT, n INT, PRIMARY KEY (user_id, n)) WITHOUT ROWID")
        connection.executemany("INSERT INTO kept VALUES ('a', ?, 3)", [("ann",), (user,), ("zoe",)])
        connection.commit()
        assert places(user) >= {("table kept, column user_id", "id")}
        connection.execute("DELETE FROM kept WHERE user_id = ?", (user,))
    assert (f"{LEFT}, column user_id", "id") in places(user)
    assert places("a") == places("3") == set()


def test_the_number_of_a_row_is_an_id_where_it_is_a_column_of_users(tmp_path, places):
    with opened(tmp_path / "shop.db") as connection:
        connection.execute("CREATE TABLE people (user_id INTEGER PRIMARY KEY, colour TEXT)")
        connection.executemany("INSERT INTO people VALUES (?, 'red')", [(number,) for number in range(1, 2000)])
        connection.commit()
        assert places("777") == {("table people, column user_id", "id")}
        connection.execute("DROP TABLE people")
        connection.execute("CREATE TABLE people (user_id INTEGER PRIMARY KEY, colour TEXT)")
    assert places("777") == {(f"{LEFT}, column user_id", "id")}
    assert places("red") == set()


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_a_database_in_another_encoding_is_read(tmp_path, scan, encoding):
    with opened(tmp_path / "shop.db") as connection:
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        fill(connection, ["ann", "zoë", "eve"])
    deleting(tmp_path / "shop.db", "zoë")
    assert not scan("zoë").clean
    assert scan("zoé").clean


class TestJournals:
    def test_a_log_that_was_not_written_back_is_searched(self, tmp_path, places):
        with opened(tmp_path / "shop.db", journal="wal") as connection:
            fill(connection, names(9))
            assert (tmp_path / "shop.db-wal").stat().st_size > 0
            assert ("the write-ahead log, column user_id", "id") in places("7")

    def test_a_log_without_its_database_is_searched(self, tmp_path, scan, write):
        with opened(tmp_path / "shop.db", journal="wal") as connection:
            fill(connection, names(9))
            content = (tmp_path / "shop.db-wal").read_bytes()
        (tmp_path / "shop.db").unlink()
        write("left-over", content)
        assert not scan("7").clean
        assert scan("77").clean

    def test_rows_deleted_within_the_log_are_found(self, tmp_path, scan):
        with opened(tmp_path / "shop.db", journal="wal") as connection:
            fill(connection, names(9))
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("DELETE FROM ratings WHERE user_id = '7'")
            connection.commit()
            (tmp_path / "shop.db").rename(tmp_path.parent / f"{tmp_path.name}.db")
            assert not scan("7").clean

    def test_wiped_and_written_back_nothing_is_left(self, tmp_path, scan):
        with opened(tmp_path / "shop.db", wiping=True, journal="wal") as connection:
            fill(connection, names(2000))
            connection.execute("DELETE FROM ratings WHERE user_id = '777'")
            connection.commit()
            assert not scan("777").clean
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            assert scan("777").clean
            assert not scan("776").clean

    @pytest.mark.parametrize("count", [9, 2000])
    def test_a_journal_with_its_header_wiped_is_searched(self, tmp_path, scan, count):
        with opened(tmp_path / "shop.db", wiping=True, journal="persist") as connection:
            fill(connection, names(count))
            connection.execute("DELETE FROM ratings WHERE user_id = '7'")
            connection.commit()
        assert (tmp_path / "shop.db-journal").read_bytes()[:8] == bytes(8)
        assert {residue.file for residue in scan("7").residues} == {"shop.db-journal"}

    def test_a_journal_of_a_transaction_that_was_cut_off_is_searched(self, tmp_path, scan):
        with opened(tmp_path / "shop.db", wiping=True) as connection:
            fill(connection, names(9))
            connection.execute("PRAGMA cache_spill = 1")
            connection.execute("DELETE FROM ratings WHERE user_id = '7'")
            journal = (tmp_path / "shop.db-journal").read_bytes()
            connection.commit()
        (tmp_path / "copy-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + journal[8:])
        assert {residue.file for residue in scan("7").residues} == {"copy-journal"}


class TestInteractions:
    def test_a_pair_that_was_erased_is_found_also_where_it_was_deleted(self, tmp_path, places):
        with opened(tmp_path / "shop.db") as connection:
            fill(connection, names(9))
        pair = Target("7", items=("i3",))
        assert places(pair) == {("table ratings, column user_id", "interactions")}
        with opened(tmp_path / "shop.db") as connection:
            connection.execute("DELETE FROM ratings WHERE user_id = '7' AND item_id = 'i3'")
        assert places(pair) == {(f"{LEFT}, column user_id", "interactions")}
        assert places(Target("7", items=("i8",))) == set()


class TestNoFalseAlarms:
    def test_numbers_of_rows_and_counts_are_nobody(self, tmp_path, scan):
        with opened(tmp_path / "shop.db") as connection:
            connection.execute("CREATE TABLE requests (id INTEGER PRIMARY KEY, status TEXT, users INTEGER)")
            connection.executemany("INSERT INTO requests (status, users) VALUES ('done', ?)", [(n,) for n in range(50)])
            connection.execute("DELETE FROM requests WHERE id > 20")
        assert scan("7", "30", "done", "requests", "status").clean

    def test_whoever_was_never_there_is_not_found_whatever_was_deleted(self, tmp_path, scan):
        generator = np.random.default_rng(3)
        with opened(tmp_path / "shop.db") as connection:
            fill(connection, [int(user) for user in range(0, 3000, 3)], items=4, schema=NUMBERED)
            connection.execute("CREATE INDEX by_user ON ratings (user_id)")
            for user in generator.permutation(3000)[:600].tolist():
                connection.execute("DELETE FROM ratings WHERE user_id = ?", (user,))
            connection.commit()
            rows = [(int(user) * 3, 1, 2.0) for user in generator.integers(0, 1000, 500)]
            connection.executemany("INSERT INTO ratings VALUES (?, ?, ?)", rows)
        assert scan(*(str(user) for user in range(1, 3000, 3))).residues == ()
        assert scan(*(f"i{user}" for user in range(1000))).residues == ()

    def test_a_note_of_somebody_with_a_longer_id_is_no_residue(self, tmp_path, scan):
        with opened(tmp_path / "shop.db") as connection:
            connection.execute("CREATE TABLE notes (item TEXT, note TEXT)")
            connection.execute("INSERT INTO notes VALUES ('a', 'asked for by customer-12x')")
        assert scan("customer-12", held=("customer-12x",)).residues == ()
        assert not scan("customer-12x").clean


def test_a_damaged_database_is_searched_page_by_page(tmp_path, scan):
    with opened(tmp_path / "shop.db") as connection:
        fill(connection, ["ann", "bob", "eve"])
    content = bytearray((tmp_path / "shop.db").read_bytes())
    content[100:4096] = bytes(3996)
    (tmp_path / "shop.db").write_bytes(content)
    assert not scan("eve").clean
    assert scan("zoe").clean
