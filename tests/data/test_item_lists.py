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
        ("  a \nb\t\r\n", {"a", "b"}),
        ("Apollo 13, The\nMatrix, The\n", {"Apollo 13, The", "Matrix, The"}),
        ("product_id;qty\n10;2\n 11 ;0\n", {"10", "11"}),
        ('Product_ID,title,qty\n10,"Lamp, red",2\n', {"10"}),
        ("qty\tsku\n2\ta b\n", {"a b"}),
        ("sku\na;b\n", {"a;b"}),
        ("item_id\n a , b \n", {"a , b"}),
        ("user_id;item_id;qty\nann;a;1\nbob; b;2\n", {"ann": {"a"}, "bob": {"b"}}),
        ("item_id,user_id\na,ann\n", {"ann": {"a"}}),
    ],
)
def test_one_item_a_line_or_items_by_user(tmp_path, text, expected):
    (tmp_path / "list").write_text(text)
    assert read_item_list(tmp_path / "list") == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no item: write one item id a line, or CSV with the header item_id or user_id,item_id"),
        ("product_id;qty\n", "names no item"),
        ("item_id\n", "names no item"),
        ("user_id,item_id\n", "names no item"),
        ("user_id,item_id\nann\n", "line 2: is no user_id,item_id: correct it"),
        ("item_id,stock\na\n", "line 2: is no item_id,stock: correct it"),
        ("item_id;stock\n;3\n", "line 2: is no item_id;stock: correct it"),
        ("sku,product_id,qty\n1,2,3\n", "product_id and sku may each be the item: give a file with one of them"),
        ("Artikel;Bestand\n10;2\n11;3\n", "line 1: no column is named as the item's: write one item id a line"),
        ("name,stock\nlamp,2\n", "no column is named as the item's"),
        ("10\t2\n11\tx\n", "no column is named as the item's"),
        ("user_id,item_id\nann,\n", "line 2: is no user_id,item_id"),
    ],
)
def test_a_file_that_names_none_is_refused(tmp_path, text, said):
    (tmp_path / "list").write_text(text)
    with pytest.raises(DataRefused, match=said):
        read_item_list(tmp_path / "list")
