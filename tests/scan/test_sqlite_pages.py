"""Records of SQLite among bytes: those that SQLite wrote are read as it wrote them."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.scan._source import BytesInMemory
from erasable.scan._sqlite_pages import database_pages, read_varint, type_of, untyped_number, whole_records

VALUE = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.integers(-3, 300)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=80)
    | st.binary(max_size=80)
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(VALUE, VALUE, VALUE), min_size=1, max_size=4), st.integers(1, 2**33))
def test_every_row_that_is_stored_is_found_with_its_number(rows, first):
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (a, b, c)")
        for step, row in enumerate(rows):
            connection.execute("INSERT INTO t (rowid, a, b, c) VALUES (?, ?, ?, ?)", (first + step, *row))
        connection.commit()
        pages = [page for page, _ in database_pages(BytesInMemory(connection.serialize()))]
        stored = connection.execute("SELECT rowid, a, b, c FROM t").fetchall()
    found = [(record.number, *record.values) for page in pages for record in whole_records(page, "utf-8")]
    for row in stored:
        assert row in found


def test_a_long_row_is_found_behind_a_byte_that_could_be_a_part_of_its_length():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (a, b)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [("x" * 200, "eve"), ("y", -1)])
        connection.commit()
        pages = [page for page, _ in database_pages(BytesInMemory(connection.serialize()))]
    assert [record.number for record in whole_records(pages[1], "utf-8")] == [2, 1]


def test_zeros_and_noise_hold_no_records():
    assert list(whole_records(bytes(5000), "utf-8")) == []
    assert list(whole_records(b"", "utf-8")) == []
    assert list(whole_records(b"\x05\x01\x03", "utf-8")) == []


@pytest.mark.parametrize(
    ("content", "number"),
    [(b"\x07", 7), (b"\x81\x00", 128), (b"\x81\x82\x03", (1 << 14) + (2 << 7) + 3), (b"\xff" * 9, 2**64 - 1)],
)
def test_numbers_of_any_length_are_read(content, number):
    assert read_varint(content, 0) == (number, len(content))


@pytest.mark.parametrize(
    ("content", "number"),
    [
        (b"\x07", 7),
        (b"\x01\x2c", 300),
        (b"\xff", -1),
        (b"\x00", None),
        (b"\x01", None),
        (b"\x00\x07", None),
        (b"12345", None),
    ],
)
def test_a_number_is_one_only_if_it_could_not_be_shorter(content, number):
    assert untyped_number(content) == number


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, 0), (0, 8), (1, 9), (7, 1), (-128, 1), (128, 2), (2**40, 5), (2**50, 6), (0.5, 7), (b"a", 12), ("a", 13)],
)
def test_values_have_the_types_that_sqlite_gives_them(value, kind):
    assert type_of(value) == kind
