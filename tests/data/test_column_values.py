import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from erasable.data import RatingScale, read_interactions
from erasable.data.ids import LONGEST_ID
from erasable.data.values import (
    ColumnRefused,
    RowFaults,
    has_e_mails,
    id_values,
    is_finite_number,
    is_finite_rating,
    rating_values,
    risk_values,
    text_of_time,
    time_of_text,
    time_values,
)


def column(values, kind=None):
    return pa.chunked_array([pa.array(values, kind)])


def read(reader, *arguments):
    """Read a column without a bad row."""
    faults = RowFaults()
    values = reader(*arguments, faults)
    assert not faults
    return values


def bad(reader, *arguments):
    """Return the bad rows of a column, and what is said about them."""
    faults = RowFaults()
    reader(*arguments, faults)
    return faults.rows, str(faults.refusal("file", "row", 2))


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.large_string())]
)
def test_text_of_any_arrow_type_stays_as_it_is(kind):
    assert read(id_values, column(["007", "7"], kind), "user").to_pylist() == ["007", "7"]


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.dictionary(pa.int32(), pa.int64())])
def test_whole_numbers_are_written_in_decimal(kind):
    assert read(id_values, column([7, 42], kind), "item").to_pylist() == ["7", "42"]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.dictionary(pa.int32(), pa.float64())])
@pytest.mark.parametrize("gap", [None, float("nan")])
def test_whole_numbers_with_a_gap_that_came_as_floats_are_whole_numbers(kind, gap):
    faults = RowFaults()
    assert id_values(column([7.0, gap, -42.0], kind), "item", faults).to_pylist() == ["7", None, "-42"]
    assert (faults.rows, "the item is missing" in str(faults.refusal("file", "row", 3))) == ({1}, True)


@pytest.mark.parametrize(("kind", "exact"), [(pa.float64(), 2**53), (pa.float32(), 2**24)])
def test_floats_so_large_that_two_ids_may_be_one_are_refused(kind, exact):
    assert read(id_values, column([exact - 1.0], kind), "user").to_pylist() == [str(exact - 1)]
    for number in (float(exact), -float(exact), float("inf")):
        with pytest.raises(ColumnRefused, match=r"the user column holds .*, which rounds ids from .* on"):
            id_values(column([1.0, number], kind), "user", RowFaults())


@pytest.mark.parametrize("values", [[1.0, 1.5], [True], [b"a"], [dt.date(2020, 1, 1)]])
def test_other_types_are_refused_as_ids(values):
    with pytest.raises(ColumnRefused, match=r"the user column holds .*: turn the ids into text"):
        id_values(column(values), "user", RowFaults())


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["a", None], "missing"),
        (["a", ""], "empty"),
        (["a", "b\n"], "line end"),
        (["ä" * LONGEST_ID, "ä" * LONGEST_ID + "b"], "more than 1,000 characters: shorten it"),
    ],
)
def test_a_bad_id_is_told_with_its_row(values, reason):
    rows, said = bad(id_values, column(values), "user")
    assert rows == {1}
    assert reason in said


@pytest.mark.parametrize("values", [[1, 4], [1.0, 4.0], [Decimal("1.0"), Decimal("4.0")]])
def test_ratings_of_any_number_type_are_read(values):
    assert read(rating_values, column(values)).tolist() == [1, 4]
    assert read(rating_values, column([True, False])).tolist() == [1, 0]


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), 1e39])
def test_a_bad_rating_is_told_with_its_row(value):
    rows, said = bad(rating_values, column([1.0, value]))
    assert rows == {1}
    assert "the rating is" in said


def test_ratings_off_the_scale_are_told_with_their_rows():
    faults = RowFaults()
    rating_values(column([1.0, 7.0, None, 0.0]), faults, RatingScale(1, 5))
    assert faults.rows == {1, 2, 3}
    refused = faults.refusal("file", "row", 4, first=1)
    assert "row 2: rating 7 lies outside the scale 1–5" in str(refused)
    assert "row 3: the rating is missing" in str(refused)
    assert refused.off_scale


def test_risks_are_read_in_double_precision():
    assert read(risk_values, column([0.1, 1e39])).tolist() == [0.1, 1e39]
    assert read(risk_values, column([2**60 + 1, -1])).tolist() == [2.0**60, -1]


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), float("-inf")])
def test_a_bad_risk_is_told_with_its_row(value):
    rows, said = bad(risk_values, column([1.0, value]))
    assert rows == {1}
    assert "the risk is missing: " in said or "the risk is not a finite number: " in said


def test_text_is_no_risk():
    with pytest.raises(ColumnRefused, match="the risk column holds string: turn the risks into numbers first"):
        risk_values(column(["0.4"]), RowFaults())


def test_text_is_no_rating():
    with pytest.raises(ColumnRefused, match="rating column holds string"):
        rating_values(column(["4"]), RowFaults())


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
    np.testing.assert_array_equal(read(time_values, column(values)), [60, np.nan])


def test_dates_and_fine_timestamps_become_seconds():
    assert read(time_values, column([dt.date(1970, 1, 2)])).tolist() == [86400]
    assert read(time_values, column([1_500_000_001], pa.timestamp("ns"))).tolist() == [1.5]


@pytest.mark.parametrize("value", ["soon", "2020-13-01"])
def test_a_bad_time_is_told_with_its_row(value):
    rows, said = bad(time_values, column(["2020-01-01", value]))
    assert rows == {1}
    assert "neither a number nor an ISO" in said


def test_other_types_and_infinity_are_no_times():
    with pytest.raises(ColumnRefused, match="time column holds bool"):
        time_values(column([True]), RowFaults())
    rows, said = bad(time_values, column([1.0, float("-inf")]))
    assert rows == {1}
    assert "infinite" in said


ZONED = dt.datetime(2020, 1, 2, 3, 4, 5, 600, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("came", "shown"),
    [
        ([60, None], 60.0),
        (["60", ""], 60.0),
        (["2020-01-02", ""], "2020-01-02"),
        ([dt.date(2020, 1, 2)], "2020-01-02"),
        (["2020-01-02T03:04:05"], "2020-01-02T03:04:05"),
        (["2020-01-02 03:04"], "2020-01-02T03:04:00"),
        ([dt.datetime(2020, 1, 2)], "2020-01-02T00:00:00"),
        (["2020-01-02T03:04:05Z"], "2020-01-02T03:04:05Z"),
        (["2020-01-02T03:04:05+01:00"], "2020-01-02T02:04:05Z"),
        (["2020-01-02T03:04:05.000600", "2020-01-02"], "2020-01-02T03:04:05.000600"),
        ([ZONED], "2020-01-02T03:04:05.000600Z"),
    ],
)
def test_times_are_shown_in_the_form_that_they_came_in(came, shown):
    table = pa.table({"user": ["a", "b"][: len(came)], "item": ["x", "x"][: len(came)], "time": came})
    read = read_interactions(table, fewest_users=1)
    assert text_of_time(float(read.interactions.time[0]), read.taken.time_form) == shown


def test_a_time_beyond_the_calendar_stays_a_number():
    assert text_of_time(1e15, "moment") == 1e15


@pytest.mark.parametrize(
    ("text", "finite"),
    [("4", True), ("-.5e1", True), ("inf", False), ("1e39", False), ("x", False), ("1_0", False)],
)
def test_written_ratings_are_finite_numbers(text, finite):
    assert is_finite_rating(text) is finite


@pytest.mark.parametrize(("text", "finite"), [("1e39", True), ("1e400", False), ("nan", False), ("", False)])
def test_written_numbers_are_finite_in_double_precision(text, finite):
    assert is_finite_number(text) is finite


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2026-01-01T12:00:00+02:00", 10),
        ("2026-01-01T12:00:00-0130", 13.5),
        ("2026-01-01 12:00:00+00", 12),
        ("2026-01-01 12:00:00 UTC", 12),
        ("2026-01-01T12:00:00Z", 12),
        ("2026-01-01 12:00", 12),
        ("2026-01-01", 0),
    ],
)
def test_a_written_time_means_the_same_alone_and_among_others(text, hour):
    seconds = dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp() + 3600 * hour
    assert time_of_text(text) == seconds
    for others in ([], ["2026-01-01"], ["2026-01-01T00:00:00+05:00"], [None, ""]):
        assert time_values(pa.chunked_array([pa.array([text, *others], pa.string())]), RowFaults())[0] == seconds


def test_two_zones_in_one_time_are_refused():
    faults = RowFaults()
    time_values(pa.chunked_array([["2026-01-01 12:00:00+02:00 UTC", "2026-01-01"]]), faults)
    assert faults.rows == {0}


@pytest.mark.parametrize(
    ("ids", "found"),
    [(["a@b.de"], True), (["a", "x.y@shop.example"], True), (["a@b", "@x.de", "7"], False), ([], False)],
)
def test_e_mail_addresses_are_told_from_other_ids(ids, found):
    for column in (pa.array(ids, pa.string()), pa.array(ids, pa.string()).dictionary_encode()):
        assert has_e_mails(column) == found
