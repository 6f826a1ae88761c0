import pytest

from erasable.errors import DataRefused
from erasable.grouping.registry import read_positions


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "groups.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_each_user_s_position_is_read(written):
    path = written("user_id,group,position\nanna,3,0\nbjörn,1,1\ncleo,1,1\n")
    assert read_positions(path) == {"anna": 0, "björn": 1, "cleo": 1}


def test_ids_are_text_exactly_as_written(written):
    path = written('user_id,group,position\n007,0,0\n7,0,1\nNA,0,2\n,0,3\n" x,y",0,4\n')
    assert read_positions(path) == {"007": 0, "7": 1, "NA": 2, "": 3, " x,y": 4}


def test_columns_may_come_in_any_order_beside_others(written):
    assert read_positions(written("position,cohesion,user_id\n2,0.5,u\n")) == {"u": 2}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("user_id,group\nu,1\n", "columns user_id, group, position"),
        ("who,position\nu,1\n", "columns user_id, group, position"),
        ("", "columns user_id, group, position"),
        ("user_id,group,position\nu,0,first\n", "columns user_id, group, position"),
        ("user_id,group,position\nu,0\n", "columns user_id, group, position"),
        (b"user_id,group,position\n\xff\xfe,0,0\n", "columns user_id, group, position"),
        ("user_id,group,position\n", "every user needs a position"),
        ("user_id,group,position\nu,0,-1\n", "every user needs a position"),
        ("user_id,group,position\nu,0,\n", "every user needs a position"),
        ("user_id,group,position\nu,0,0\nv,0,0\nu,1,1\n", "a user is listed twice"),
    ],
    ids=["no position", "no user", "empty", "text", "short row", "not UTF-8", "no rows", "negative", "gap", "twice"],
)
def test_a_file_that_does_not_say_it_clearly_is_refused(written, text, why):
    with pytest.raises(DataRefused, match=why):
        read_positions(written(text))


def test_a_file_that_is_not_there_is_refused_with_the_remedy(tmp_path):
    with pytest.raises(DataRefused, match="there is no such file: give groups_from"):
        read_positions(tmp_path / "nothing.csv")


def test_a_folder_is_no_file_of_groups(tmp_path):
    with pytest.raises(DataRefused, match="columns user_id, group, position"):
        read_positions(tmp_path)
