import pyarrow as pa
import pytest

from erasable import data
from erasable.data import ColumnNames, read_interactions
from erasable.errors import DataRefused


@pytest.mark.parametrize("name", ["none.csv", "none.parquet"])
def test_a_missing_file_is_refused(tmp_path, name):
    with pytest.raises(DataRefused, match=rf"{name} does not exist"):
        read_interactions(tmp_path / name)


@pytest.mark.parametrize("name", ["folder", "folder.parquet"])
def test_an_empty_folder_is_refused(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(DataRefused, match=rf"{name} holds no file to read: check the path"):
        read_interactions(str(tmp_path / name))


def test_a_path_may_be_text_or_path(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("a,x,1\nb,x,2\n")
    one, other = read_interactions(path), read_interactions(str(path))
    assert one.interactions.digest() == other.interactions.digest()
    assert one.notes == other.notes


def test_reading_without_a_user_equals_removing_that_user(tmp_path):
    lines = ["user,item,rating\n", *(f"u{n % 7},i{n * n % 11},{n % 5 + 1}\n" for n in range(60))]
    whole, part = tmp_path / "whole.csv", tmp_path / "part.csv"
    whole.write_text("".join(lines))
    part.write_text("".join(line for line in lines if not line.startswith("u3,")))
    kept = read_interactions(whole).interactions.without(["u3"])
    read = read_interactions(part).interactions.with_items(kept.items)
    assert read.digest() == kept.digest()


def test_the_risk_of_a_user_is_the_largest_of_all_rows_as_they_came():
    table = pa.table({"user": ["b", "a", "a", "a"], "item": ["x", "x", "x", "y"], "risk": [-3.0, 9.0, 1.0, 2.0]})
    result = read_interactions(table, ColumnNames(risk="risk"))
    assert len(result.interactions) == 3
    assert result.risk == {"a": 9, "b": -3}
    assert list(result.risk) == result.interactions.users.texts()


def test_the_risk_of_a_user_rests_on_their_own_rows_alone(tmp_path):
    lines = [f"u{n % 7},i{n * n % 11},{n * 37 % 101 / 100}\n" for n in range(60)]
    whole, part = tmp_path / "whole.csv", tmp_path / "part.csv"
    whole.write_text("".join(lines))
    part.write_text("".join(line for line in reversed(lines) if not line.startswith("u3,")))
    risks = dict(read_interactions(whole, ColumnNames(risk="3")).risk)
    del risks["u3"]
    assert read_interactions(part, ColumnNames(risk="3")).risk == risks


def test_without_a_named_column_there_is_no_risk(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("user,item,rating,time,risk\na,x,1,5,high\nb,x,2,6,\n")
    result = read_interactions(path)
    assert result.risk is None
    assert result.notes == ("comma-separated with a header; user, item, rating, time",)


def test_the_public_names_are_there():
    assert all(hasattr(data, name) for name in data.__all__)
