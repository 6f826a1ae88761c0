from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

from erasable.data import ColumnNames, read_interactions
from erasable.errors import DataRefused, WrongUse

TABLE = {"user_id": ["b", "a", "a"], "item_id": [2, 10, 2], "rating": [4.0, 3.0, 5.0], "timestamp": [1, 2, 3]}
ROWS = [("a", "10", 3), ("a", "2", 5), ("b", "2", 4)]


def rows(interactions):
    users, items = interactions.users.texts(), interactions.items.texts()
    columns = zip(interactions.user_index, interactions.item_index, interactions.rating.tolist(), strict=True)
    return [(users[user], items[item], rating) for user, item, rating in columns]


class OnlyCapsule:
    """A table that is known by the Arrow PyCapsule interface alone."""

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.table(TABLE).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "source",
    [
        pa.table(TABLE),
        pa.record_batch(TABLE),
        pd.DataFrame(TABLE),
        pd.DataFrame(TABLE, index=[5, 3, 1]),
        pd.DataFrame(TABLE).astype({"user_id": "category"}),
        pl.DataFrame(TABLE),
        pl.DataFrame(TABLE).with_columns(pl.col("user_id").cast(pl.Categorical)),
        OnlyCapsule(),
    ],
    ids=lambda source: type(source).__name__,
)
def test_each_kind_of_table_gives_the_same_rows(source):
    result = read_interactions(source)
    assert rows(result.interactions) == ROWS
    assert result.interactions.time.tolist() == [2, 3, 1]
    assert "user_id, item_id, rating, timestamp" in result.notes[0]


def test_a_reader_of_batches_is_a_table():
    reader = pa.RecordBatchReader.from_batches(pa.table(TABLE).schema, pa.table(TABLE).to_batches())
    assert rows(read_interactions(reader).interactions) == ROWS


def test_a_file_and_a_table_give_the_same_bytes(tmp_path):
    path = tmp_path / "f.csv"
    pd.DataFrame(TABLE).to_csv(path, index=False)
    assert read_interactions(path).interactions.digest() == read_interactions(pa.table(TABLE)).interactions.digest()


@pytest.mark.parametrize("name", ["f.parquet", "f.pq", "noname"])
def test_parquet_is_known_by_its_name_or_its_bytes(tmp_path, name):
    path = tmp_path / name
    parquet.write_table(pa.table(TABLE | {"title": ["x", "y", "z"]}), path)
    result = read_interactions(str(path))
    assert rows(result.interactions) == ROWS
    assert result.notes == ("Parquet; user_id, item_id, rating, timestamp",)


def test_columns_of_a_table_are_named(tmp_path):
    table = pa.table({"who": ["a", "b"], "what": ["x", "x"], "stars": [1, 2]})
    names = ColumnNames(user="who", item="what", rating="stars")
    expected = [("a", "x", 1), ("b", "x", 2)]
    assert rows(read_interactions(table, names).interactions) == expected
    parquet.write_table(table, tmp_path / "f.parquet")
    assert rows(read_interactions(tmp_path / "f.parquet", names).interactions) == expected


@pytest.mark.parametrize("frame", [pa.table, pd.DataFrame, pl.DataFrame])
def test_a_risk_is_read_from_a_table(frame):
    source = frame(TABLE | {"churn": [0.5, 0.25, 0.125]})
    assert read_interactions(source, ColumnNames(risk="churn")).risk == {"a": 0.25, "b": 0.5}
    assert read_interactions(source).risk is None


def test_a_risk_is_read_from_parquet(tmp_path):
    path = tmp_path / "f.parquet"
    table = pa.table({"score": [2, 7], "title": ["x", "y"], "item": ["x", "x"], "user": ["007", "7"]})
    parquet.write_table(table, path)
    result = read_interactions(path, ColumnNames(risk="score"))
    assert result.risk == {"007": 2, "7": 7}
    assert result.notes == ("Parquet; user, item, score", "no rating column: every rating is 1")


@pytest.mark.parametrize(
    ("risk", "reason"),
    [
        ([1.0, None, 2.0], "the table, row 2: the risk is missing: fill it in, or drop the row"),
        ([1.0, 2.0, float("inf")], "the table, row 3: the risk is not a finite number"),
        (["low", "high", "low"], "the table: the risk column holds string: turn the risks into numbers first"),
    ],
)
def test_a_bad_risk_is_refused_by_its_row(tmp_path, risk, reason):
    table = pa.table(TABLE | {"risk": risk})
    with pytest.raises(DataRefused, match=reason):
        read_interactions(table, ColumnNames(risk="risk"))
    parquet.write_table(table, tmp_path / "f.parquet")
    with pytest.raises(DataRefused, match=reason.replace("the table", r"f\.parquet")):
        read_interactions(tmp_path / "f.parquet", ColumnNames(risk="risk"))
    assert rows(read_interactions(table).interactions) == ROWS


def test_a_sparse_matrix_has_no_risk():
    with pytest.raises(WrongUse, match="a sparse matrix has no risk column: give a table or a file that has one"):
        read_interactions(sparse.csr_array([[1.0], [2.0]]), ColumnNames(risk="3"))


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array, sparse.csc_array])
def test_a_sparse_matrix_gives_row_and_column_numbers(kind):
    matrix = kind(sparse.coo_array(([3.0, 5.0, 0.0], ([0, 11, 2], [7, 7, 10])), shape=(12, 11)))
    assert rows(read_interactions(matrix).interactions) == [("0", "7", 3), ("11", "7", 5), ("2", "10", 0)]
    assert matrix.nnz == 3


def test_repeated_entries_of_a_sparse_matrix_are_summed_as_scipy_does():
    matrix = sparse.coo_array(([1, 2, 5], ([0, 0, 1], [0, 0, 0])), shape=(2, 1))
    assert rows(read_interactions(matrix).interactions) == [("0", "0", 3), ("1", "0", 5)]
    assert matrix.nnz == 3


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        (sparse.csr_array((3, 3)), "no entry"),
        (sparse.coo_array(np.array([1.0, 2.0])), "two dimensions"),
        (sparse.csr_array([[np.nan, 1.0]]), "finite"),
        (sparse.csr_array([[1.0, 1.0]]), "one user only"),
    ],
)
def test_a_sparse_matrix_that_makes_no_sense_is_refused(matrix, reason):
    with pytest.raises(DataRefused, match=reason):
        read_interactions(matrix)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"user_id": [1.0, 2.0, 3.5]}, "the table: the user column holds double: turn the ids into text"),
        ({"user_id": ["a", None, "b"]}, "the table, row 2: the user is missing"),
        ({"item_id": ["x", "y", ""]}, "the table, row 3: the item is empty"),
        ({"rating": [1.0, None, 2.0]}, "the table, row 2: the rating is missing"),
        ({"rating": [1.0, 2.0, float("inf")]}, "the table, row 3: the rating is not a finite number"),
        ({"rating": ["good", "bad", "good"]}, "the table: the rating column holds string"),
        ({"timestamp": ["2020-01-01", "2020-01-01", "soon"]}, "the table, row 3: the time"),
        ({"user_id": ["a", "a", "a"]}, "the table holds one user only"),
    ],
)
def test_a_bad_table_is_refused_by_its_row(tmp_path, change, reason):
    table = pa.table(TABLE | change)
    with pytest.raises(DataRefused, match=reason):
        read_interactions(table)
    parquet.write_table(table, tmp_path / "f.parquet")
    with pytest.raises(DataRefused, match=reason.replace("the table", r"f\.parquet")):
        read_interactions(tmp_path / "f.parquet")


def test_a_table_of_mixed_types_is_refused():
    with pytest.raises(DataRefused, match="one type"):
        read_interactions(pd.DataFrame({"user": ["a", 3], "item": ["x", "y"]}, dtype=object))


def test_a_table_without_rows_or_columns_is_refused():
    with pytest.raises(DataRefused, match="no row"):
        read_interactions(pa.table(TABLE)[:0])
    with pytest.raises(DataRefused, match=r"shop, price.*user='NAME'"):
        read_interactions(pa.table({"shop": ["a"], "price": [1]}))


def test_a_parquet_file_that_is_none_is_refused(tmp_path):
    path = tmp_path / "f.parquet"
    for content in (b"user,item\na,x\n", b"PAR1 and no more"):
        path.write_bytes(content)
        with pytest.raises(DataRefused, match=r"f\.parquet is not a Parquet file"):
            read_interactions(path)


@pytest.mark.parametrize("source", [3, None, [("a", "x")], {"user": ["a"]}, np.ones((2, 2))])
def test_anything_else_is_wrong_use(source):
    with pytest.raises(WrongUse, match="give a path"):
        read_interactions(source)


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "+02:00"])
def test_timestamps_of_any_unit_and_zone_are_read_from_parquet(tmp_path, unit, zone):
    moment = NOON if zone else NOON.replace(tzinfo=None)
    times = pa.array([moment, None]).cast(pa.timestamp(unit, zone))
    parquet.write_table(pa.table({"user": ["a", "b"], "item": ["x", "y"], "time": times}), tmp_path / "t.parquet")
    read = read_interactions(tmp_path / "t.parquet")
    assert read.interactions.time.tolist() == pytest.approx([NOON.timestamp(), np.nan], nan_ok=True)
    assert read.taken.time_form == ("moment with zone" if zone else "moment")


CATEGORIES = {
    "user": ["a", "b"],
    "item": [7, 8],
    "rating": [3, 4],
    "time": ["2026-01-01T12:00:00Z", "2026-01-01T14:00:00+02:00"],
}


def arrow_categories():
    return pa.table({name: pa.array(values).dictionary_encode() for name, values in CATEGORIES.items()})


def polars_categories():
    frame = pl.DataFrame({**CATEGORIES, "item": ["7", "8"]})
    return frame.with_columns(pl.col("user", "time").cast(pl.Categorical), pl.col("item").cast(pl.Enum(["7", "8"])))


@pytest.mark.parametrize(
    "table",
    [
        arrow_categories(),
        pd.DataFrame(CATEGORIES).astype("category"),
        pd.DataFrame(CATEGORIES).astype(
            {"item": "Int64", "rating": "Int8", "user": "string", "time": "string[pyarrow]"}
        ),
        polars_categories(),
    ],
    ids=["arrow", "pandas", "pandas nullable", "polars"],
)
def test_categorical_and_nullable_columns_are_read(table, tmp_path):
    read = [read_interactions(table)]
    if isinstance(table, pa.Table):
        parquet.write_table(table, tmp_path / "t.parquet")
        read.append(read_interactions(tmp_path / "t.parquet"))
    for one in read:
        assert rows(one.interactions) == [("a", "7", 3), ("b", "8", 4)]
        assert one.interactions.time.tolist() == [NOON.timestamp()] * 2
        assert one.taken.time_form == "moment with zone"


@pytest.mark.parametrize("column", ["user", "rating"])
def test_a_missing_value_of_a_nullable_column_is_a_bad_row(column):
    table = pd.DataFrame({"user": [1, 2], "item": ["x", "y"], "rating": [3, 4]}).astype({column: "Int64"})
    table.loc[1, column] = pd.NA
    with pytest.raises(DataRefused, match=f"row 2: the {column} is missing"):
        read_interactions(table)
    assert len(read_interactions(table, on_bad_row="skip", fewest_users=1).interactions) == 1


GAP = {"user": [1, None, 2, 2], "item": [7, 8, None, 9], "rating": [1.0, 2.0, 3.0, 4.0]}


@pytest.mark.parametrize(
    "table",
    [pd.DataFrame(GAP), pl.DataFrame(pd.DataFrame(GAP).to_dict("list")), pa.table(pd.DataFrame(GAP).to_dict("list"))],
    ids=["pandas", "polars", "arrow"],
)
def test_ids_that_a_gap_made_floats_of_are_whole_numbers(table):
    with pytest.raises(DataRefused, match=r"row 2: the user is missing.*row 3: the item is missing"):
        read_interactions(table)
    found = read_interactions(table, on_bad_row="skip")
    assert (list(found.interactions.users), list(found.interactions.items)) == (["1", "2"], ["7", "9"])
    assert (found.bad_rows, found.taken.numbers) == (2, {"user", "item"})
