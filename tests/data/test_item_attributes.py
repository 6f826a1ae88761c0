"""Tables of item attributes."""

import datetime
import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable.data.item_attributes import read_attributes
from erasable.errors import DataRefused

TEXT = "item_id,kind,price,new\n007,book,3.5,true\n8,,4,false\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("items.csv", TEXT),
        ("items.tsv", TEXT.replace(",", "\t")),
        ("items.txt", "\ufeff" + TEXT.replace(",", ";")),
        ("items.csv", TEXT.replace("item_id", '"movieId"')),
    ],
)
def test_a_file_of_text(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = read_attributes(tmp_path / name)
    assert found.to_pydict() == {
        "item_id": ["007", "8"],
        "kind": ["book", None],
        "price": [3.5, 4.0],
        "new": [True, False],
    }


def test_only_what_is_empty_is_missing_in_a_file_of_text(tmp_path):
    (tmp_path / "items.csv").write_text(
        "item_id,country,pages,price\nnull,NA,3,1.5\nNA,null,,nan\nN/A,N/A,5,\nb,,6,2\nc,None,7,3\n"
    )
    assert read_attributes(tmp_path / "items.csv").to_pydict() == {
        "item_id": ["null", "NA", "N/A", "b", "c"],
        "country": ["NA", "null", "N/A", None, "None"],
        "pages": [3, None, 5, 6, 7],
        "price": [1.5, None, None, 2.0, 3.0],
    }
    (tmp_path / "items.csv").write_text("item_id,country\na,NA\n,NO\n")
    with pytest.raises(DataRefused, match="a row has no item id"):
        read_attributes(tmp_path / "items.csv")


def test_compressed_or_with_a_named_column(tmp_path):
    with gzip.open(tmp_path / "items.csv.gz", "wt") as file:
        file.write("sku_code,price\n01,3\n")
    assert read_attributes(tmp_path / "items.csv.gz", "sku_code").to_pydict() == {"item_id": ["01"], "price": [3]}


def test_a_parquet_file_and_a_frame_of_pandas(tmp_path):
    table = pa.table(
        {
            "genre": pa.array(["a", "b"]).dictionary_encode(),
            "item": [1, 2],
            "price": pa.array([1, 2], pa.int8()),
            "out": pa.array([datetime.date(2026, 1, 1), None]),
        }
    )
    pq.write_table(table, tmp_path / "items.parquet")
    for source in (tmp_path / "items.parquet", table, table.to_pandas()):
        found = read_attributes(source)
        assert found.column_names == ["item_id", "genre", "price", "out"]
        assert found["item_id"].to_pylist() == ["1", "2"]
        assert found["genre"].to_pylist() == ["a", "b"]


def test_not_a_number_says_nothing():
    found = read_attributes(pa.table({"item": ["a", "b"], "price": [float("nan"), 1.5]}))
    assert found["price"].to_pylist() == [None, 1.5]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"name": ["a"]}, "no column is recognised as the item; the columns are name: name one of them with item="),
        ({"item": ["a", "a"]}, "the item 'a' has several rows: give one row for each item"),
        ({"item": ["a", None]}, "a row has no item id"),
        ({"item": ["a", ""]}, "a row has no item id"),
        ({"item": pa.array([], pa.string())}, "there is no row"),
        ({"item": [1.5]}, "item ids are texts or whole numbers"),
        ({"item": ["x" * 1001]}, "more than 1,000 characters"),
        ({"item": ["a"], "tags": [["x"]]}, "the column tags holds list<.*leave it out"),
    ],
)
def test_what_is_refused_and_what_to_do(table, said):
    with pytest.raises(DataRefused, match=said):
        read_attributes(pa.table(table))


def test_a_file_that_is_not_there_or_no_table(tmp_path):
    (tmp_path / "items.parquet").write_text("no")
    (tmp_path / "ragged.csv").write_text("item_id,a\n1,2,3\n")
    for name, said in (
        ("none.csv", "does not exist: check the path"),
        ("items.parquet", "give CSV with a header, or Parquet"),
        ("ragged.csv", "give CSV with a header, or Parquet"),
    ):
        with pytest.raises(DataRefused, match=said):
            read_attributes(tmp_path / name)
