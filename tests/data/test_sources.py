"""Files, folders, patterns and file URLs: what is read, in which order, and what is refused by name."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable.data import ColumnNames, name_of, read_batches, read_interactions
from erasable.data.sources import sources_of
from erasable.errors import DataRefused, WrongUse

HEADER = "user,item,rating,time\n"


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            pq.write_table(pa.table(content), path)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def users(source, **columns):
    return [user for piece in read_batches(source, ColumnNames(**columns)) for user in piece.users.to_pylist()]


FILES = {
    "b.csv": HEADER + "b,x,1,1\n",
    "a/year=2024/z.csv.gz": gzip.compress((HEADER + "az,x,1,1\n").encode()),
    "a-b.csv": HEADER + "ab,x,1,1\n",
    "Z.csv": HEADER + "Z,x,1,1\n",
    "ä.csv": HEADER + "ä,x,1,1\n",
    "_SUCCESS": "",
    "_temporary/0/part.csv": "nonsense",
    ".b.csv.crc": b"\0",
    "_day=1/part.csv": HEADER + "day,x,1,1\n",
    "empty.csv": HEADER,
}


def test_a_folder_is_read_by_the_bytes_of_its_names(tmp_path):
    assert users(write(tmp_path, FILES)) == ["Z", "day", "ab", "az", "b", "ä"]


def test_a_pattern_finds_files_and_folders(tmp_path):
    folder = write(tmp_path, FILES)
    assert users(str(folder / "*.csv")) == ["Z", "ab", "b", "ä"]
    assert users(folder / "a*") == ["ab", "az"]
    assert users(str(folder / "**" / "*.gz")) == ["az"]
    assert len(sources_of(str(folder / "a" / "**"))) == 1
    with pytest.raises(DataRefused, match=r"none\*\.csv holds no file to read"):
        read_batches(str(folder / "none*.csv"))


def test_a_name_that_looks_like_a_pattern_is_a_name_if_it_is_there(tmp_path):
    write(tmp_path, {"f[1].csv": "a,x,1\nb,x,1\n", "f1.csv": "c,x,1\nd,x,1\n"})
    assert users(tmp_path / "f[1].csv") == ["a", "b"]


def test_a_file_url_is_a_path(tmp_path):
    write(tmp_path, {"f.csv": "a,x,1\nb,x,1\n"})
    assert users((tmp_path / "f.csv").as_uri()) == users(tmp_path.as_uri()) == ["a", "b"]


def test_a_url_made_a_path_is_told(tmp_path):
    with pytest.raises(WrongUse, match="give it as text: a Path loses one of its slashes"):
        read_batches(Path("s3://shop/clicks.csv"))


def test_sources_have_names():
    assert name_of("s3://key:secret@shop/x?region=y") == "s3://shop/x"
    assert (name_of(Path("a/b")), name_of("a/b"), name_of(object())) == ("a/b", "a/b", "the table")


ROW = {"user": ["a"], "item": ["x"]}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"1.csv": HEADER + "a,x,1,1\n", "2.csv": "user,item,rating\na,y,1\n"}, r"2\.csv has another layout \(comma"),
        ({"1.csv": HEADER + "a,x,1,1\n", "2.csv": "a,x,1,1\n"}, r"2\.csv has another layout"),
        (
            {"1.csv": HEADER + "a,x,1,1\n", "2.csv": HEADER.replace(",", ";") + "a;x;1;1\n"},
            r"2\.csv has another layout",
        ),
        (
            {"1.parquet": ROW, "2.parquet": {**ROW, "p": [1]}},
            r"2\.parquet has another layout \(its other columns are not",
        ),
        (
            {"1.parquet": ROW, "2.parquet": {**ROW, "user": [1]}},
            r"2\.parquet has another layout \(its ids are of another",
        ),
        ({"1.csv": "user,item\na,x\n", "2.parquet": ROW}, r"2\.parquet has another layout"),
        (
            {"1.csv": HEADER + "a,x,1,5\n", "2.csv": HEADER + "b,x,1,2020-01-01\n"},
            r"2\.csv writes times in another way",
        ),
        ({"1.parquet": {**ROW, "time": [5]}, "2.parquet": {**ROW, "time": ["2020-01-01"]}}, r"2\.parquet writes times"),
        ({"1.csv": HEADER + "a,x,1,5\n", "2.csv": HEADER + "b,x,good,1\n"}, r"2\.csv, line 2: 'good' is not a rating"),
        (
            {"1.parquet": {**ROW, "rating": [1.0]}, "2.parquet": {**ROW, "rating": [None]}},
            r"2\.parquet: the rating column",
        ),
        ({"1.csv": HEADER + "a,x,1,5\n", "README.md": "Read me\n"}, r"README\.md.*(columns|table|recognised)"),
        ({"1.csv": HEADER + "a,x,1,5\n", "2.csv": ""}, r"2\.csv is empty"),
        ({"1.csv": HEADER, "2.csv": HEADER}, "holds no interaction, only a header"),
        ({"_SUCCESS": "", ".hidden": "a,x\n"}, "holds no file to read: check the path; names that begin with"),
    ],
)
def test_a_folder_of_unlike_files_is_refused_by_name(tmp_path, files, said):
    with pytest.raises(DataRefused, match=said):
        list(read_batches(write(tmp_path, files)))


def test_columns_may_come_in_another_order(tmp_path):
    files = {"1.csv": "user,item,n\na,x,1\n", "2.csv": "n,item,user\n1,x,b\n"}
    assert users(write(tmp_path, files)) == ["a", "b"]


def test_a_part_without_a_row_counts_for_nothing(tmp_path):
    none = {name: pa.array([], pa.string()) for name in ROW}
    assert users(write(tmp_path, {"1.parquet": none, "2.parquet": ROW})) == ["a"]


def test_a_folder_reads_like_its_files_together(tmp_path):
    rows = [f"u{n % 5},i{n * n % 7},{n % 5 + 1},{n}\n" for n in range(40)]
    write(tmp_path / "parts", {f"{part}.csv": HEADER + "".join(rows[part * 10 : part * 10 + 10]) for part in range(4)})
    write(tmp_path, {"whole.csv": HEADER + "".join(rows)})
    parts, whole = read_interactions(tmp_path / "parts"), read_interactions(tmp_path / "whole.csv")
    assert parts.interactions.digest() == whole.interactions.digest()
    assert (parts.notes, parts.taken, parts.rows) == (whole.notes, whole.taken, whole.rows)
