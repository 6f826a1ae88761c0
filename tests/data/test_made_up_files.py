"""Made-up data on disk: the same rows in every format, the same bytes each time, and no half file."""

import errno
import gzip

import pyarrow as pa
import pytest
from pyarrow import parquet

from erasable.data import made_up_files as made_up_files_module
from erasable.data import read_interactions
from erasable.data.made_up import MadeUpSettings
from erasable.data.made_up_files import write_made_up
from erasable.errors import Refused, WrongUse

SHOP = MadeUpSettings(users=400, items=90, interactions=4_000, ratings=True, times=True, seed=2)
NAMES = ["made.parquet", "made.pq", "made.csv", "made.csv.gz"]


@pytest.fixture
def small_pieces(monkeypatch):
    """Many pieces, although there is little data."""
    monkeypatch.setattr("erasable.data.made_up.ROWS_AT_ONCE", 500)


@pytest.mark.parametrize("name", NAMES)
def test_every_format_is_read_as_the_same_interactions(tmp_path, name, small_pieces):
    made = write_made_up(SHOP, tmp_path / name)
    read = read_interactions(tmp_path / name)
    reference = write_made_up(SHOP, tmp_path / "reference.parquet")
    assert read.interactions.digest() == read_interactions(reference.path).interactions.digest()
    assert (len(read.interactions), read.repeated, read.bad_rows) == (made.interactions, 0, 0)
    assert len(read.interactions.users) == 400
    assert made.bytes == (tmp_path / name).stat().st_size


@pytest.mark.parametrize("name", NAMES)
def test_the_same_settings_give_the_same_bytes(tmp_path, name):
    write_made_up(SHOP, tmp_path / "once" / name)
    write_made_up(SHOP, tmp_path / "again" / name)
    assert (tmp_path / "once" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


@pytest.mark.parametrize("files", [1, 3, 400])
def test_a_folder_of_files_has_the_rows_of_one_file(tmp_path, files):
    one = write_made_up(SHOP, tmp_path / "one.parquet")
    made = write_made_up(SHOP, tmp_path / "parts", files)
    parts = sorted((tmp_path / "parts").iterdir())
    assert [part.name for part in parts[:1]] == ["part-0000.parquet"]
    assert (len(parts), made.files, made.interactions) == (files, files, one.interactions)
    together = pa.concat_tables([parquet.read_table(part) for part in parts])
    assert together.equals(parquet.read_table(one.path))


def test_ids_are_texts_of_one_width_that_sort_as_numbers_do(tmp_path):
    write_made_up(MadeUpSettings(users=20_000, items=90, interactions=20_000), tmp_path / "made.parquet")
    table = parquet.read_table(tmp_path / "made.parquet")
    assert table.schema.types == [pa.string(), pa.string()]
    users = table["user_id"].to_pylist()
    assert (users[0], users[-1]) == ("u00001", "u20000")
    assert users == sorted(users)
    assert {len(item) for item in table["item_id"].to_pylist()} == {5}


def test_a_table_has_the_columns_that_are_asked_for(tmp_path):
    write_made_up(SHOP, tmp_path / "all.csv.gz")
    header, first = gzip.decompress((tmp_path / "all.csv.gz").read_bytes()).decode().splitlines()[:2]
    assert header == "user_id,item_id,rating,timestamp"
    assert first.startswith("u0001,i00")
    plain = SHOP.model_copy(update={"ratings": False, "times": False})
    write_made_up(plain, tmp_path / "plain.csv")
    assert (tmp_path / "plain.csv").read_text().splitlines()[0] == "user_id,item_id"


def test_pieces_are_written_one_by_one(tmp_path, monkeypatch, small_pieces):
    """No more than one piece is held: each is written before the next one is made."""
    told = []

    def noted(settings, first, end):
        for piece in pieces(settings, first, end):
            told.append("made")
            yield piece

    def noted_table(settings, piece):
        told.append("written")
        return table(settings, piece)

    pieces, table = made_up_files_module.made_up_pieces, made_up_files_module._table
    monkeypatch.setattr(made_up_files_module, "made_up_pieces", noted)
    monkeypatch.setattr(made_up_files_module, "_table", noted_table)
    write_made_up(SHOP, tmp_path / "made.parquet")
    assert len(told) > 10
    assert told == ["made", "written"] * (len(told) // 2)
    with parquet.ParquetFile(tmp_path / "made.parquet") as file:
        assert file.num_row_groups == len(told) // 2


@pytest.mark.parametrize("files", [None, 2])
def test_what_is_there_is_not_overwritten(tmp_path, files):
    path = tmp_path / "made.parquet"
    path.write_text("mine")
    with pytest.raises(Refused, match="is there already: move it away, or give another name"):
        write_made_up(SHOP, path, files)
    assert path.read_text() == "mine"


def test_a_name_must_say_what_to_write(tmp_path):
    with pytest.raises(WrongUse, match=r"end it with .parquet, .csv or .csv.gz, or give files=8") as refused:
        write_made_up(SHOP, tmp_path / "made.txt")
    assert "or give --files 8 for a folder" in refused.value.of_command
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("files", [0, 401])
def test_there_are_no_more_files_than_people(tmp_path, files):
    with pytest.raises(WrongUse, match="give 1 to 400 with files"):
        write_made_up(SHOP, tmp_path / "parts", files)


@pytest.mark.parametrize(
    ("failure", "raised", "said"),
    [
        (OSError(errno.ENOSPC, "no space"), Refused, "the disk is full"),
        (OSError(errno.EACCES, "denied"), Refused, "check the path and its permissions"),
        (KeyboardInterrupt(), KeyboardInterrupt, None),
    ],
)
@pytest.mark.parametrize(("name", "files"), [("made.parquet", None), ("made.csv.gz", None), ("parts", 3)])
def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch, small_pieces, failure, raised, said, name, files):
    done = []

    def fail(settings, piece):
        done.append(piece)
        if len(done) == 5:
            raise failure
        return table(settings, piece)

    table = made_up_files_module._table
    monkeypatch.setattr(made_up_files_module, "_table", fail)
    with pytest.raises(raised, match=said):
        write_made_up(SHOP, tmp_path / "new" / name, files)
    assert list(tmp_path.iterdir()) == []
