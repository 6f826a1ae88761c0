"""What a field holds is told by its name; columns of any source hold texts, numbers and bytes, nested or not."""

import uuid
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from erasable.scan._columns import ArrayColumn, Column, ListColumn, Role, TextColumn, flattened, role_of, subject_of
from erasable.scan._search import Cells, Values

NAMES = {
    Role.USER: "user user_id userId UserID user-id USER uid userid customer_no memberIds person user_ids owner "
    "customer account client subject user_id_1 user_external_ref who user_id:token e_mail reviewerID",
    Role.USERS: "users n_users num_users people customers",
    Role.ID: "id ids ID _id",
    Role.ITEM: "item item_id itemID movieId movies ISBN asin title",
    Role.MEASURE: "rating user_rating timestamp time count user_count group groups position request_id",
    Role.UNKNOWN: "f0 x customer-12 user1 zoë name account_balance 7 _ -",
}


@pytest.mark.parametrize(("name", "role"), [(name, role) for role, names in NAMES.items() for name in names.split()])
def test_a_name_tells_what_a_field_holds(name, role):
    assert role_of(name) is role


def test_no_name_tells_nothing():
    assert role_of(None) is role_of("") is Role.UNKNOWN


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("users-2024.csv", Role.USER),
        ("user_items.csv", Role.USER),
        ("u.item", Role.ITEM),
        ("kept-items-0123456789ab.parquet", Role.ITEM),
        ("requests", Role.MEASURE),
        ("backup.json", Role.UNKNOWN),
        (None, Role.UNKNOWN),
    ],
)
def test_the_name_of_a_table_tells_what_it_is_about(name, role):
    assert subject_of(name) is role


def all_of(cells: Cells) -> set[bytes]:
    return {cells.at(cell) for cell in range(len(cells))}


def texts(column: Column) -> set[str]:
    return {text.decode() for text in all_of(column.texts())} - {""}


def numbers(column: Column, *tried: str) -> set[str]:
    return {*column.with_number(Values.of(tried))}


def ids(column: Column, *tried: str) -> list[str | None]:
    values = Values.of(tried)
    return [None if place < 0 else values.texts[place] for place in column.rows_with(values).tolist()]


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2)]
)
def test_whole_numbers_of_any_width_are_decimal_text(kind):
    values = [7, 100, -2]
    array = pa.array([Decimal(value) for value in values] if pa.types.is_decimal(kind) else values, kind)
    column = ArrayColumn("user", array)
    assert numbers(column, "7", "100", "-2", "8", "007", "7.0", "ann", "9" * 30) == {"7", "100", "-2"}
    assert ids(column, "7", "100", "8") == ["7", "100", None]
    assert column.floats().tolist() == values
    assert texts(column) == set()


def test_half_numbers_are_no_ids():
    column = ArrayColumn("user", pa.array([7.5, 7.0, float("nan"), float("inf"), None]))
    assert numbers(column, "7", "8", "0", "nan", "inf") == {"7"}


@pytest.mark.parametrize(
    "kind", [pa.float16(), pa.float32(), pa.float64(), pa.int8(), pa.uint64(), pa.decimal128(5, 0)]
)
def test_numbers_that_a_type_can_not_hold_are_not_in_it(kind):
    value = Decimal(0) if pa.types.is_decimal(kind) else np.float16(0) if kind == pa.float16() else 0
    assert numbers(ArrayColumn("user", pa.array([value], kind)), "0", "16777217", "-1", "9" * 25) == {"0"}


def test_a_large_float_is_the_integer_that_it_equals():
    column = ArrayColumn("user", pa.array([16777216.0], pa.float32()))
    assert numbers(column, "16777216", "16777217") == {"16777216"}
    assert numbers(ArrayColumn("user", pa.array([-0.0])), "0") == {"0"}


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
)
def test_texts_of_any_type_are_texts(kind):
    column = ArrayColumn("user", pa.chunked_array([pa.array(["zoë", None], kind), pa.array(["ann"], kind)]))
    assert texts(column) == {"zoë", "ann"}
    assert column.with_text(Values.of(["ann", "zo", "zoë", "an", "anna"])) == {"ann", "zoë"}
    assert ids(column, "ann") == [None, None, "ann"]
    assert column.floats() is None


def test_bytes_that_are_no_text_are_bytes():
    column = ArrayColumn("x", pa.array([b"\xff\x00", b"ann"]))
    assert (texts(column), all_of(column.blobs())) == ({"ann"}, {b"\xff\x00"})


def test_values_of_a_dictionary_that_no_row_refers_to_count():
    values = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["ann", "eve"]))
    column = ArrayColumn("user", pa.chunked_array([values]))
    assert texts(column) == {"ann", "eve"}
    assert ids(column, "eve", "ann") == ["ann"]


def test_a_moment_is_a_number_of_seconds():
    moment = datetime(2001, 9, 9, 1, 46, 40, 500_000, tzinfo=UTC)
    for kind in (pa.timestamp("ms", "UTC"), pa.timestamp("ns", "Europe/Paris")):
        assert ArrayColumn("t", pa.array([moment, None], kind)).floats()[0] == 1_000_000_000.5


def test_lists_structs_and_maps_fall_apart():
    rows = pa.array([{"user": "ann", "tags": ["a", "b"]}, {"user": "eve", "tags": []}])
    found = {(column.name, column.listed): texts(column) for column in flattened("row", pa.chunked_array([rows]))}
    assert found == {("user", False): {"ann", "eve"}, ("tags", True): {"a", "b"}}
    pairs = pa.array([[("ann", 5)], [("eve", 7)]], pa.map_(pa.string(), pa.int64()))
    keys, values = flattened("ratings", pairs)
    assert (texts(keys), numbers(values, "5", "6", "7")) == ({"ann", "eve"}, {"5", "7"})


def test_an_extension_is_what_it_is_stored_as():
    someone = uuid.uuid5(uuid.NAMESPACE_DNS, "someone")
    array = pa.array([someone.bytes], pa.uuid())
    (column,) = flattened("user", array)
    assert all_of(column.blobs()) == {someone.bytes}


def test_values_of_python_may_be_mixed():
    column = ListColumn("user", ["ann ", 7, 7.0, 8.5, b"eve", b"\xff\xfe", None, True, "9.0"])
    assert texts(column) == {"ann ", "ann", "eve", "9.0"}
    assert numbers(column, "7", "8", "9", "1") == {"7", "9"}
    tried = ("ann", "7", "eve", "9.0", "9", "8", "True")
    assert ids(column, *tried) == ["ann", "7", "7", None, "eve", None, None, None, "9.0"]
    assert all_of(column.blobs()) == {b"\xff\xfe"}
    assert np.array_equal(column.floats()[1:4], [7, 7, 8.5])


def test_a_column_without_numbers_has_none():
    assert ListColumn(None, ["ann", None]).floats() is None


def test_cells_of_a_text_are_compared_without_the_blanks_around_them():
    column = TextColumn("user", pa.array([" ann", "eve\u00a0", "7.00", "+8.0", "x"], pa.large_string()))
    assert column.with_text(Values.of(["ann", " ann", "eve", "e"])) == {"ann", " ann", "eve"}
    assert numbers(column, "7", "8", "+8", "x") == {"7", "+8"}
    assert ids(column, "ann", "eve") == ["ann", "eve", None, None, None]
    assert column.like_first({}, 0).floats()[2] == 7


def test_whether_a_column_has_numbers_is_told_by_its_first_rows():
    known = {}
    first = TextColumn("n", pa.array(["1", "x"], pa.large_string())).like_first(known, 0)
    assert np.array_equal(first.floats(), [1, np.nan], equal_nan=True)
    assert np.isnan(ListColumn("n", ["y"]).like_first(known, 0).floats()[0])
    assert TextColumn("n", pa.array(["1"], pa.large_string())).like_first({0: False}, 0).floats() is None
