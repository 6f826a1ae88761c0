"""Rows that can't be used are counted all together and refused, or left out."""

import gzip

import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

from erasable.data import LONGEST_ID, RatingScale, read_interactions
from erasable.data.values import RowFaults
from erasable.errors import BadRows, DataRefused

LONG = "l" * (LONGEST_ID + 1)
SCALE = RatingScale(1, 5)
GOOD = [("ann", "a", "1", "5"), ("ann", "b", "2", "6"), ("bob", "a", "5", "7"), ("cat", "c", "3", "")]
BAD = [
    ("", "a", "1", "1"),
    ("dan", "", "1", "1"),
    ("dan", "a", "", "1"),
    ("dan", "a", "good", "1"),
    ("dan", "a", "nan", "1"),
    ("dan", "a", "7", "1"),
    ("dan", "a", "1", "soon"),
    (LONG, "a", "1", "1"),
    ("dan", LONG, "1", "1"),
    ("dan", "a"),
    ("dan", "a", "1", "1", "1"),
]


def written(path, rows, separator=","):
    lines = [separator.join(row) for row in [("user", "item", "rating", "time"), *rows]]
    text = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def mixed():
    """Good and bad rows by turns; a bad one first."""
    rows = []
    for number, row in enumerate(BAD):
        rows += [row, *GOOD[number : number + 1]]
    return rows


@pytest.mark.parametrize("name", ["f.csv", "f.tsv", "f.dat", "f.csv.gz"])
def test_left_out_they_leave_what_a_file_without_them_gives(tmp_path, name):
    separator = {"f.tsv": "\t", "f.dat": "::"}.get(name, ",")
    read = read_interactions(written(tmp_path / name, mixed(), separator), scale=SCALE, on_bad_row="skip")
    (tmp_path / "good").mkdir()
    good = read_interactions(written(tmp_path / "good" / name, GOOD, separator), scale=SCALE)
    assert read.interactions.digest() == good.interactions.digest()
    assert read.interactions.items == good.interactions.items
    assert (read.rows, read.bad_rows, good.rows, good.bad_rows) == (len(GOOD) + len(BAD), len(BAD), len(GOOD), 0)
    assert f"{len(BAD)} bad rows left out" in read.notes


@pytest.mark.parametrize("row", BAD, ids=range(len(BAD)))
def test_each_is_bad_by_itself(tmp_path, row):
    path = written(tmp_path / "f.csv", [*GOOD, row])
    with pytest.raises(BadRows, match=r"f\.csv, line 6: "):
        read_interactions(path, scale=SCALE)
    assert read_interactions(path, scale=SCALE, on_bad_row="skip").bad_rows == 1


def test_all_are_counted_and_the_first_three_are_shown(tmp_path):
    with pytest.raises(BadRows) as refused:
        read_interactions(written(tmp_path / "f.csv", mixed()), scale=SCALE)
    said = str(refused.value)
    assert said.count("line ") == 3
    assert "f.csv, line 2: the user is empty" in said
    assert "; line 4: the item is empty" in said
    assert "; line 6: an empty field is not a rating" in said
    assert said.endswith(f"; in all {len(BAD)} of {len(BAD) + len(GOOD)} rows are bad")


def test_blank_lines_do_not_move_the_numbers(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("user,item,rating\n\nann,a,1\n\n\nbob,a,9\n")
    with pytest.raises(BadRows, match=r"f\.csv, line 6: rating 9 lies outside the scale 1–5") as refused:
        read_interactions(path, scale=SCALE)
    assert refused.value.off_scale


TABLE = {
    "user": ["ann", None, "", "bob", LONG, "dan", "dan", "eve"],
    "item": ["a", "a", "a", "b", "a", "a", "a", "e"],
    "rating": [1.0, 1.0, 1.0, 5.0, 1.0, float("nan"), 7.0, 2.0],
    "time": ["2020-01-01", "2020-01-01", "", "", "", "", "", "soon"],
}


@pytest.mark.parametrize("kind", ["table", "Parquet"])
def test_rows_of_a_table_are_left_out_too(tmp_path, kind):
    source = pa.table(TABLE)
    if kind == "Parquet":
        parquet.write_table(source, tmp_path / "f.parquet")
        source = tmp_path / "f.parquet"
    with pytest.raises(BadRows, match=r"row 2: the user is missing.*; row 3: .*; row 5: .*in all 6 of 8 rows are bad"):
        read_interactions(source, scale=SCALE)
    read = read_interactions(source, scale=SCALE, on_bad_row="skip")
    assert (read.interactions.users.texts(), read.interactions.items.texts()) == (["ann", "bob"], ["a", "b"])
    assert (read.rows, read.bad_rows, read.repeated) == (8, 6, 0)


def test_entries_of_a_sparse_matrix_are_left_out_too():
    matrix = sparse.csr_array([[1.0, 7.0], [2.0, float("nan")], [3.0, 0.0]])
    with pytest.raises(BadRows, match=r"the sparse matrix, entry 2: rating 7 .*; entry 4: .*in all 2 of 5"):
        read_interactions(matrix, scale=RatingScale(0, 5))
    assert len(read_interactions(matrix, scale=RatingScale(0, 5), on_bad_row="skip").interactions) == 3


def test_a_source_without_a_good_row_is_refused_all_the_same(tmp_path):
    path = written(tmp_path / "f.csv", BAD)
    with pytest.raises(DataRefused, match="holds no row that can be used"):
        read_interactions(path, scale=SCALE, on_bad_row="skip")


def test_what_no_row_can_help_is_refused_all_the_same():
    with pytest.raises(DataRefused, match="the user column holds double"):
        read_interactions(pa.table({"user": [1.5], "item": ["a"]}), on_bad_row="skip")
    with pytest.raises(DataRefused, match=r"without ratings each is 1, outside the scale 2–5"):
        read_interactions(pa.table({"user": ["a"], "item": ["a"]}), scale=RatingScale(2, 5), on_bad_row="skip")


def test_of_several_reasons_the_first_is_told():
    faults = RowFaults()
    faults.add(4, "first")
    faults.add(4, "second")
    faults.add_where(pa.array([True, False]), "another")
    assert len(faults) == 2
    assert str(faults.refusal("f", "row", 9)) == "f, row 0: another; row 4: first; in all 2 of 9 rows are bad"
