"""Ids as the library takes and gives them."""

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

from erasable.errors import WrongUse
from erasable.operations.people import shown_ids, text_of, texts_of


@pytest.mark.parametrize("given", [42, np.int8(42), np.uint64(42), "42", np.str_("42"), pa.scalar(42), pa.scalar("42")])
def test_one_id_of_any_kind_is_text(given):
    assert text_of(given) == "42"
    assert type(text_of(given)) is str
    assert texts_of(given) == ["42"]


@pytest.mark.parametrize(
    "given",
    [
        [7, "8"],
        (7, 8),
        np.array([7, 8]),
        np.array(["7", "8"]),
        pandas.Series([7, 8]),
        pandas.Series(["7", "8"], dtype="category"),
        pandas.Index([7, 8]),
        polars.Series([7, 8]),
        pa.array([7, 8]),
        pa.chunked_array([[7], [8]]),
        (number for number in (7, 8)),
        {7: "a", 8: "b"},
    ],
)
def test_many_ids_come_in_anything_that_can_be_gone_through(given):
    assert texts_of(given) == ["7", "8"]


@pytest.mark.parametrize(
    "given", [1.0, np.float64(1), None, True, np.bool_(True), b"1", pa.scalar(None), float("nan"), object()]
)
def test_what_is_no_id_is_refused(given):
    for call in (lambda: text_of(given), lambda: texts_of(given), lambda: texts_of([given])):
        with pytest.raises(WrongUse, match="is no id: give text or a whole number"):
            call()


def test_ids_are_shown_as_numbers_only_if_all_of_them_are():
    assert shown_ids(["1", "-2"], as_numbers=True).type == pa.int64()
    assert shown_ids([str(2**64 - 1)], as_numbers=True).to_pylist() == [2**64 - 1]
    assert shown_ids([], as_numbers=True).type == pa.int64()
    for texts in (["007"], ["1", "x"], ["+1"], [" 1"], ["1.0"], [""], [str(2**64)]):
        assert shown_ids(texts, as_numbers=True).to_pylist() == texts
    assert shown_ids(["1"], as_numbers=False).to_pylist() == ["1"]
