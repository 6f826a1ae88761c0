"""Lists of items in files."""

import pytest

from erasable.data.item_lists import read_item_list
from erasable.errors import DataRefused


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\n", {"a", "b"}),
        ("item_id\na\n\nb", {"a", "b"}),
        ("a,b\n", {"a,b"}),
        ('"item_id"\n"a"\n"b,c"\n"d ""e"""\n', {"a", "b,c", 'd "e"'}),
        ('"a"\n', {'"a"'}),
        ('user_id,item_id\nann,a\nann,"b,c"\nbob,a\n', {"ann": {"a", "b,c"}, "bob": {"a"}}),
    ],
)
def test_one_item_a_line_or_items_by_user(tmp_path, text, expected):
    (tmp_path / "list").write_text(text)
    assert read_item_list(tmp_path / "list") == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no item: write one item id a line"),
        ("item_id\n", "names no item"),
        ("user_id,item_id\n", "names no item"),
        ("user_id,item_id\nann\n", "line 2: is no user_id,item_id: correct it"),
        ("item_id,stock\na,3\n", "has the columns item_id, stock: give item_id alone, or user_id,item_id"),
        ("user_id,item_id\nann,\n", "line 2: is no user_id,item_id"),
    ],
)
def test_a_file_that_names_none_is_refused(tmp_path, text, said):
    (tmp_path / "list").write_text(text)
    with pytest.raises(DataRefused, match=said):
        read_item_list(tmp_path / "list")
