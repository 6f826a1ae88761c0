import pytest

from erasable.data import ColumnNames, read_interactions
from erasable.data.columns import ColumnPositions, recognise_layout
from erasable.data.sources import local_source
from erasable.errors import DataRefused


def layout_of(tmp_path, text, name="f.csv", **columns):
    path = tmp_path / name
    path.write_text(text, newline="")
    return recognise_layout(local_source(path), ColumnNames(**columns))


@pytest.mark.parametrize("separator", ["::", "\t", ",", ";", "|", " "])
def test_separators_are_recognised_with_and_without_a_header(tmp_path, separator):
    row, header = separator.join(["u", "i", "3", "9"]), separator.join(["user", "item", "rating", "time"])
    assert layout_of(tmp_path, f"{row}\n{row}\n").separator == separator
    with_header = layout_of(tmp_path, f"{header}\n{row}\n")
    assert (with_header.separator, with_header.lines_before) == (separator, 1)


def test_a_separator_that_splits_evenly_is_preferred(tmp_path):
    assert layout_of(tmp_path, "u|a, b|3\nu|c|4\n").separator == "|"
    assert layout_of(tmp_path, "u;a;3,5\nu;b;4,0\nu;c;4\n").separator == ";"


def test_what_was_recognised_is_said_in_words(tmp_path):
    text = "user_id,item_id,rating,timestamp\na,b,3,9\n"
    assert str(layout_of(tmp_path, text)) == "comma-separated with a header; user_id, item_id, rating, timestamp"
    assert (
        str(layout_of(tmp_path, "a,b,3\n"))
        == "comma-separated without a header; columns 1, 2, 3 are user, item, rating"
    )


def test_blank_lines_before_the_header_are_counted(tmp_path):
    assert layout_of(tmp_path, "\n\nuser,item\na,b\n").lines_before == 3


def test_unknown_names_above_numbers_are_a_header(tmp_path):
    text = "customer,product,stars\na,b,3\n"
    with pytest.raises(DataRefused, match=r"customer, product, stars.*user='NAME'"):
        layout_of(tmp_path, text)
    found = layout_of(tmp_path, text, user="customer", item="product", rating="stars")
    assert found.columns == ColumnPositions(0, 1, 2)
    assert layout_of(tmp_path, text, user="1", item="2", rating="3").header == (
        "customer",
        "product",
        "stars",
    )


def test_a_misspelt_name_lists_the_columns(tmp_path):
    with pytest.raises(DataRefused, match=r"'custmer'; the columns are customer, product.*user='NAME'"):
        layout_of(tmp_path, "customer,product\na,b\n", user="custmer")


def test_a_name_for_a_file_without_header_does_not_echo_its_first_row(tmp_path):
    with pytest.raises(DataRefused, match="has no header") as refused:
        layout_of(tmp_path, "alice,secret,3\nbob,other,4\n", user="customer")
    assert "alice" not in str(refused.value)


def test_quotes_are_minded_except_where_the_format_has_none(tmp_path):
    assert layout_of(tmp_path, 'user,item\n"a,b",c\n').quotes
    assert not layout_of(tmp_path, "user_id:token\titem_id:token\na\tb\n", "x.inter").quotes
    assert not layout_of(tmp_path, "1::2::3\n", "x.dat").quotes


def test_a_time_is_a_number_if_the_first_known_one_is(tmp_path):
    header = "user,item,rating,time\n"
    assert layout_of(tmp_path, header + "a,b,1,\na,c,1,99\n").time_is_number
    assert not layout_of(tmp_path, header + "a,b,1,2020-01-01\n").time_is_number


def test_one_column_is_refused(tmp_path):
    with pytest.raises(DataRefused, match=r"f\.csv, line 1: holds one column"):
        layout_of(tmp_path, "a\nb\n")


def test_two_columns_of_unknown_names_above_numbers_are_no_person(tmp_path):
    path = tmp_path / "clicks.csv"
    path.write_text("customer,product\n1,10\n2,11\n3,12\n")
    with pytest.raises(DataRefused, match="user='NAME'"):
        read_interactions(path)
    found = read_interactions(path, ColumnNames(user="customer", item="product")).interactions
    assert found.users.texts() == ["1", "2", "3"]
