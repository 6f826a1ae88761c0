import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from erasable.data.column_values import (
    ValueRefused,
    id_values,
    is_finite_number,
    is_finite_rating,
    rating_values,
    risk_values,
    time_values,
)


def column(values, kind=None):
    return pa.chunked_array([pa.array(values, kind)])


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.large_string())]
)
def test_text_of_any_arrow_type_stays_as_it_is(kind):
    assert id_values(column(["007", "7"], kind), "user").to_pylist() == ["007", "7"]


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.dictionary(pa.int32(), pa.int64())])
def test_whole_numbers_are_written_in_decimal(kind):
    assert id_values(column([7, 42], kind), "item").to_pylist() == ["7", "42"]


@pytest.mark.parametrize("values", [[1.0], [True], [b"a"], [dt.date(2020, 1, 1)]])
def test_other_types_are_refused_as_ids(values):
    with pytest.raises(ValueRefused, match=r"the user column holds .*: turn the ids into text"):
        id_values(column(values), "user")


@pytest.mark.parametrize(
    ("values", "reason"), [(["a", None], "missing"), (["a", ""], "empty"), (["a", "b\n"], "line end")]
)
def test_a_bad_id_is_refused_with_its_row(values, reason):
    with pytest.raises(ValueRefused, match=reason) as refused:
        id_values(column(values), "user")
    assert refused.value.row == 1


@pytest.mark.parametrize("values", [[1, 4], [1.0, 4.0], [Decimal("1.0"), Decimal("4.0")]])
def test_ratings_of_any_number_type_are_read(values):
    assert rating_values(column(values)).tolist() == [1, 4]
    assert rating_values(column([True, False])).tolist() == [1, 0]


@pytest.mark.parametrize("bad", [None, float("nan"), float("inf"), 1e39])
def test_a_bad_rating_is_refused_with_its_row(bad):
    with pytest.raises(ValueRefused, match="the rating is") as refused:
        rating_values(column([1.0, bad]))
    assert refused.value.row == 1


def test_risks_are_read_in_double_precision():
    assert risk_values(column([0.1, 1e39])).tolist() == [0.1, 1e39]
    assert risk_values(column([2**60 + 1, -1])).tolist() == [2.0**60, -1]


@pytest.mark.parametrize("bad", [None, float("nan"), float("inf"), float("-inf")])
def test_a_bad_risk_is_refused_with_its_row(bad):
    with pytest.raises(ValueRefused, match=r"the risk is (missing|not a finite number): .*drop the row") as refused:
        risk_values(column([1.0, bad]))
    assert refused.value.row == 1


def test_text_is_no_risk():
    with pytest.raises(ValueRefused, match="the risk column holds string: turn the risks into numbers first"):
        risk_values(column(["0.4"]))


def test_text_is_no_rating():
    with pytest.raises(ValueRefused, match="rating column holds string"):
        rating_values(column(["4"]))


@pytest.mark.parametrize(
    "values",
    [
        [60, None],
        [60.0, float("nan")],
        ["60", ""],
        ["1970-01-01T00:01:00", None],
        [dt.datetime(1970, 1, 1, 0, 1), None],
        [dt.datetime(1970, 1, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), None],
    ],
)
def test_times_of_any_type_become_seconds(values):
    np.testing.assert_array_equal(time_values(column(values)), [60, np.nan])


def test_dates_and_fine_timestamps_become_seconds():
    assert time_values(column([dt.date(1970, 1, 2)])).tolist() == [86400]
    assert time_values(column([1_500_000_001], pa.timestamp("ns"))).tolist() == [1.5]


@pytest.mark.parametrize("bad", ["soon", "2020-13-01"])
def test_a_bad_time_is_refused_with_its_row(bad):
    with pytest.raises(ValueRefused, match="neither a number nor an ISO") as refused:
        time_values(column(["2020-01-01", bad]))
    assert refused.value.row == 1


def test_other_types_and_infinity_are_no_times():
    with pytest.raises(ValueRefused, match="time column holds bool"):
        time_values(column([True]))
    with pytest.raises(ValueRefused, match="infinite"):
        time_values(column([1.0, float("-inf")]))


@pytest.mark.parametrize(
    ("text", "finite"),
    [("4", True), ("-.5e1", True), ("inf", False), ("1e39", False), ("x", False), ("1_0", False)],
)
def test_written_ratings_are_finite_numbers(text, finite):
    assert is_finite_rating(text) is finite


@pytest.mark.parametrize(("text", "finite"), [("1e39", True), ("1e400", False), ("nan", False), ("", False)])
def test_written_numbers_are_finite_in_double_precision(text, finite):
    assert is_finite_number(text) is finite
