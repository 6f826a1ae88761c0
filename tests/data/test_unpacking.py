"""From what was downloaded to one table that is read as interactions."""

import io
import zipfile

import pytest

from erasable.data import public_sets as unpacking
from erasable.data import read_interactions
from erasable.data.public_sets import count_rows, write_table
from erasable.errors import DataRefused
from kit.file_server import ROWS, described, lines, zipped

ADDRESS = "https://example.org/tiny.zip"
TABLE = b"user_id,item_id,rating,timestamp\n" + lines()


def unpacked(content: bytes, **changed: object) -> bytes:
    written = io.BytesIO()
    write_table(io.BytesIO(content), described(ADDRESS, content, **changed), written, lambda done: None)
    return written.getvalue()


LAYOUTS = {
    "ml-100k": (lines("\t"), {"separator": "\t"}),
    "ml-1m and ml-10m": (lines("::"), {}),
    "ml-20m": (b"userId,movieId,rating,timestamp\r\n" + lines(",", "\r\n"), {"separator": ",", "header": True}),
    "no line end at the end": (lines("::")[:-1], {}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("block", [1, 7, 2**20])
def test_every_layout_becomes_the_same_table_whatever_the_size_of_blocks(monkeypatch, layout, block):
    monkeypatch.setattr(unpacking, "_BLOCK_BYTES", block)
    ratings, facts = LAYOUTS[layout]
    assert unpacked(zipped({"tiny/README": b"x", "tiny/ratings.dat": ratings}), **facts) == TABLE


def test_a_download_that_is_no_zip_file_is_the_table_itself():
    assert unpacked(lines(), member=None, separator=",") == TABLE


def test_the_table_is_read_as_interactions_without_naming_columns(tmp_path):
    (tmp_path / "ratings.csv").write_bytes(unpacked(zipped({"tiny/ratings.dat": lines("::")})))
    interactions = read_interactions(tmp_path / "ratings.csv").interactions
    assert interactions.users.texts() == ["1", "2", "3"]
    assert interactions.items.texts() == ["10", "20", "30"]
    assert interactions.rating.tolist() == [5, 3.5, 4, 1]
    assert interactions.time.tolist() == [100, 101, 102, 103]


def test_what_is_done_is_said_in_rows():
    content, done = lines(), []
    write_table(io.BytesIO(content), described(ADDRESS, content, member=None), io.BytesIO(), done.append)
    assert sum(done) == len(ROWS)


def test_rows_are_counted_below_the_header():
    assert count_rows(io.BytesIO(TABLE)) == count_rows(io.BytesIO(TABLE[:-1])) == len(ROWS)


@pytest.mark.parametrize("ratings", [lines("::") * 2, lines("::")[:-14], b""])
def test_another_number_of_rows_is_refused(ratings):
    with pytest.raises(DataRefused, match=r"holds \d rows and not 4"):
        unpacked(zipped({"tiny/ratings.dat": ratings}))


@pytest.mark.parametrize("name", ["tiny/other.dat", "ratings.dat", "../tiny/ratings.dat", "/tiny/ratings.dat"])
def test_a_missing_member_is_refused(name):
    with pytest.raises(DataRefused, match=r"holds no tiny/ratings\.dat"):
        unpacked(zipped({name: lines("::")}))


def test_what_is_no_zip_file_is_refused():
    with pytest.raises(DataRefused, match="is not a readable zip file"):
        unpacked(b"<html>please log in</html>")


def test_a_damaged_member_is_refused():
    content = bytearray(zipped({"tiny/ratings.dat": lines("::") * 50}))
    content[60] ^= 0xFF
    with pytest.raises(DataRefused, match="is not a readable zip file"):
        unpacked(bytes(content), rows=200)


def test_a_member_behind_a_password_is_refused():
    content = bytearray(zipped({"tiny/ratings.dat": lines("::")}))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    assert zipfile.ZipFile(io.BytesIO(content)).infolist()[0].flag_bits & 1
    with pytest.raises(DataRefused, match=r"can't be unpacked .*password"):
        unpacked(bytes(content))
