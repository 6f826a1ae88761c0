"""What a field holds is told by its name; columns of any source hold texts, numbers and bytes, nested or not."""

import uuid
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from erasable.scan._columns import ArrayColumn, ListColumn, Role, flattened, role_of, subject_of

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


WHOLE = [7, 300, -2]


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2)]
)
def test_whole_numbers_of_any_width_are_decimal_text(kind):
    values = [7, 100, -2]
    array = pa.array([Decimal(value) for value in values] if pa.types.is_decimal(kind) else values, kind)
    column = ArrayColumn("user", array)
    assert column.whole_numbers() == {"7", "100", "-2"}
    assert column.ids() == ["7", "100", "-2"]
    assert column.floats().tolist() == values
    assert column.texts() == set()


def test_half_numbers_are_no_ids():
    assert ArrayColumn("user", pa.array([7.5, 7.0, float("nan"), float("inf"), None])).whole_numbers() == {"7"}


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
)
def test_texts_of_any_type_are_texts(kind):
    column = ArrayColumn("user", pa.chunked_array([pa.array(["zoë", None], kind), pa.array(["ann"], kind)]))
    assert column.texts() == {"zoë", "ann"}
    assert column.floats() is None


def test_bytes_that_are_no_text_are_bytes():
    column = ArrayColumn("x", pa.array([b"\xff\x00", b"ann"]))
    assert (column.texts(), list(column.blobs())) == ({"ann"}, [b"\xff\x00"])


def test_values_of_a_dictionary_that_no_row_refers_to_count():
    values = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["ann", "eve"]))
    assert ArrayColumn("user", pa.chunked_array([values])).texts() == {"ann", "eve"}


def test_a_moment_is_a_number_of_seconds():
    moment = datetime(2001, 9, 9, 1, 46, 40, 500_000, tzinfo=UTC)
    for kind in (pa.timestamp("ms", "UTC"), pa.timestamp("ns", "Europe/Paris")):
        assert ArrayColumn("t", pa.array([moment, None], kind)).floats()[0] == 1_000_000_000.5


def test_lists_structs_and_maps_fall_apart():
    rows = pa.array([{"user": "ann", "tags": ["a", "b"]}, {"user": "eve", "tags": []}])
    found = {(column.name, column.listed): column.texts() for column in flattened("row", pa.chunked_array([rows]))}
    assert found == {("user", False): {"ann", "eve"}, ("tags", True): {"a", "b"}}
    pairs = pa.array([[("ann", 5)], [("eve", 7)]], pa.map_(pa.string(), pa.int64()))
    keys, values = flattened("ratings", pairs)
    assert (keys.texts(), values.whole_numbers()) == ({"ann", "eve"}, {"5", "7"})


def test_an_extension_is_what_it_is_stored_as():
    someone = uuid.uuid5(uuid.NAMESPACE_DNS, "someone")
    array = pa.array([someone.bytes], pa.uuid())
    (column,) = flattened("user", array)
    assert list(column.blobs()) == [someone.bytes]


def test_values_of_python_may_be_mixed():
    column = ListColumn("user", ["ann ", 7, 7.0, 8.5, b"eve", b"\xff\xfe", None, True, "9.0"])
    assert column.texts() == {"ann ", "ann", "eve", "9.0"}
    assert column.whole_numbers() == {"7", "9"}
    assert column.ids() == ["ann", "7", "7", None, "eve", None, None, None, "9.0"]
    assert list(column.blobs()) == [b"\xff\xfe"]
    assert np.array_equal(column.floats()[1:4], [7, 7, 8.5])


def test_a_column_without_numbers_has_none():
    assert ListColumn(None, ["ann", None]).floats() is None
