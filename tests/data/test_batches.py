"""Reading in pieces gives what reading at once gives, whatever the size of a piece."""

import gzip
from contextlib import contextmanager
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from erasable.data import ColumnNames, RatingScale, _lines, _tables, read_batches, read_interactions
from erasable.errors import BadRows, DataRefused, ErasableError, WrongUse

RISK = ColumnNames(risk="risk")


@contextmanager
def pieces_of(size):
    """Read pieces of so many bytes or rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lines, "BLOCK_BYTES", size)
        patch.setattr(_tables, "ROWS_AT_ONCE", size)
        yield


def outcome(source, **rules):
    """Return all that is known of a source after reading it, or the refusal."""
    columns = rules.pop("columns", ColumnNames())
    try:
        batches = read_batches(source, columns, **rules)
        pieces = list(batches)
        read = read_interactions(source, columns, fewest_users=1, **rules)
    except ErasableError as refused:
        return type(refused), refused.of_command, getattr(refused, "off_scale", None)
    columns = [(piece.users.to_pylist(), piece.items.to_pylist()) for piece in pieces]
    numbers = [
        b"".join(b"" if values is None else values.tobytes() for values in one)
        for one in zip(*((piece.rating, piece.time, piece.risk) for piece in pieces), strict=True)
    ]
    users, items = (list(chain(*texts)) for texts in zip(*columns, strict=True))
    return users, items, numbers, batches.facts, read.notes, read.interactions.digest(), read.risk


ids = st.sampled_from(["a", "b", "ä", "007", "7", "user", " x", 'a"b', '"q"', "\ufeffz"])
bad_ids = st.sampled_from(["", "l" * 1001])
ratings, bad_ratings = st.sampled_from(["1", "2.5", "5"]), st.sampled_from(["", "x", "nan", "7", "1_0"])
numbers, bad_times = st.sampled_from(["1", "2.5", "", "1e9"]), st.sampled_from(["soon", "inf", "2020-13-01"])
moments = st.sampled_from(
    ["2020-01-01", "2020-01-01T00:00:01", "2020-01-01 01:00:00Z", "", "9999-12-31T23:59:59.999999", " 2020-01-02 ", "5"]
)
risks, bad_risks = st.sampled_from(["0.1", "2"]), st.sampled_from(["x", "", "inf"])


@st.composite
def texts(draw):
    """Draw a delimited file with a few bad lines or none."""
    separator = draw(st.sampled_from([",", "\t", "::", ";"]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    times = draw(st.sampled_from([numbers, moments]))
    kinds = {"user": (ids, bad_ids), "item": (ids, bad_ids), "rating": (ratings, bad_ratings)}
    kinds |= {"time": (times, bad_times), "risk": (risks, bad_risks), "other": (ids, bad_ids)}
    names = ["user", "item", *draw(st.lists(st.sampled_from(["rating", "time", "risk", "other"]), unique=True))]
    faulty = draw(st.sampled_from([0, 0, 10]))
    rows = []
    for _ in range(draw(st.integers(0, 12))):
        is_bad = draw(st.integers(0, 20)) < faulty
        rows.append(separator.join(draw(kinds[name][is_bad and draw(st.booleans())]) for name in names))
    rows += draw(st.lists(st.just(""), max_size=1))
    text = "".join(row + end for row in [separator.join(names), *draw(st.permutations(rows))])
    text = draw(st.sampled_from(["", "\ufeff", "\n"])) + text[: len(text) - draw(st.integers(0, len(end)))]
    return text.encode(), names


@settings(max_examples=60, deadline=None)
@given(texts(), st.integers(1, 80), st.booleans(), st.sampled_from([None, RatingScale(1, 5)]), st.booleans())
def test_pieces_of_a_text_give_what_the_whole_gives(tmp_path_factory, drawn, size, skips, scale, packed):
    content, names = drawn
    path = tmp_path_factory.mktemp("text") / "f.csv"
    path.write_bytes(gzip.compress(content) if packed else content)
    rules = {"scale": scale, "on_bad_row": "skip" if skips else "refuse"}
    rules["columns"] = RISK if "risk" in names else ColumnNames()
    whole = outcome(path, **rules)
    with pieces_of(size):
        assert outcome(path, **rules) == whole


def columns_of(draw, rows):
    text = st.sampled_from(["a", "b", "007", *draw(st.sampled_from([[], [], ["", None, "a\n"]]))])
    number = st.sampled_from([1, 2, 3])
    times = [
        (st.sampled_from([1, 2, None]), pa.int64()),
        (st.sampled_from([1, None]), pa.timestamp("us", "UTC")),
        (moments | bad_times | st.none(), pa.string()),
        (moments | numbers, pa.large_string()),
        (st.none(), pa.null()),
    ]
    kinds = {
        "user": draw(
            st.sampled_from([(text, pa.string()), (text, pa.dictionary(pa.int8(), pa.string())), (number, None)])
        ),
        "item": draw(st.sampled_from([(text, pa.string_view()), (number, pa.uint8())])),
        "rating": (st.sampled_from([1.0, 5.0, *draw(st.sampled_from([[], [None, float("nan"), 7.0]]))]), pa.float64()),
        "time": draw(st.sampled_from(times)),
        "risk": (st.sampled_from([0.5, 2.0]), pa.float32()),
    }
    names = ["user", "item", *draw(st.lists(st.sampled_from(["rating", "time", "risk"]), unique=True))]
    return {name: pa.array([draw(kinds[name][0]) for _ in range(rows)], kinds[name][1]) for name in names}


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(0, 10), st.integers(1, 5), st.booleans(), st.booleans())
def test_pieces_of_a_table_give_what_the_whole_gives(tmp_path_factory, data, rows, size, skips, stored):
    table = pa.table(columns_of(data.draw, rows))
    rules = {"scale": RatingScale(1, 5), "on_bad_row": "skip" if skips else "refuse"}
    rules["columns"] = RISK if "risk" in table.column_names else ColumnNames()
    source = table
    if stored:
        source = tmp_path_factory.mktemp("table") / "f.parquet"
        pq.write_table(table, source, row_group_size=4)
    whole = outcome(source, **rules)
    with pieces_of(size):
        assert outcome(source, **rules) == whole


def test_a_sparse_matrix_comes_in_pieces_too():
    matrix = sparse.csr_array([[1.0, 7.0], [2.0, float("nan")], [3.0, 0.0]])
    whole = outcome(matrix, scale=RatingScale(0, 5)), outcome(matrix, scale=RatingScale(0, 5), on_bad_row="skip")
    assert whole[0][0] is BadRows
    with pieces_of(2):
        assert len(list(read_batches(matrix, on_bad_row="skip"))) == 3
        assert outcome(matrix, scale=RatingScale(0, 5)) == whole[0]
        assert outcome(matrix, scale=RatingScale(0, 5), on_bad_row="skip") == whole[1]


def test_what_is_known_after_a_pass(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text(
        "user,item,rating,time,risk,note\na,x,3,2020-01-01,1,\nb,x,2,,2,\na,y,bad,,9,\na,x,4,2020-01-02,5,\n"
    )
    batches = read_batches(path, RISK, on_bad_row="skip")
    with pytest.raises(WrongUse, match="not been read to its end"):
        _ = batches.facts
    with pieces_of(20):
        pieces = list(batches)
    assert len(pieces) > 1
    facts = batches.facts
    assert (facts.rows, facts.bad_rows, facts.rated, facts.lowest, facts.highest) == (4, 1, True, 2, 4)
    assert facts.risk == {"a": 5, "b": 2}
    assert (facts.taken.columns["time"], facts.taken.left, facts.taken.time_form) == ("time", ("note",), "date")
    assert facts.notes(1) == (
        "comma-separated with a header; user, item, rating, time, risk",
        "1 repeated (user, item) pairs dropped; the latest of each stays",
        "1 bad rows left out",
    )
    assert [piece.rating.dtype for piece in pieces] == [np.float32] * len(pieces)


def test_the_numbers_of_lines_count_over_the_whole_file(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("user,item,rating\n" + "a,x,1\n" * 50 + "a,x,bad\n" + "a,x,1\n" * 50 + "a,x,worse\n")
    with pieces_of(30), pytest.raises(BadRows, match=r"line 52: .*; line 103: .*in all 2 of 102 rows are bad"):
        list(read_batches(path))


def test_a_form_of_time_that_changes_below_is_that_of_the_whole(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("user,item,time\na,x,2020-01-01\nb,x,2020-01-01T01:00:00\nc,x,2020-01-01T01:00:00+01:00\n")
    with pieces_of(1):
        read = read_interactions(path)
    assert read.taken.time_form == "moment with zone"
    assert np.diff(read.interactions.time).tolist() == [3600, -3600]


@pytest.mark.parametrize("size", [40, 10**6])
def test_a_field_of_several_lines_is_read_if_its_column_is_not(tmp_path, size):
    path = tmp_path / "f.csv"
    path.write_text("user,item,review\n" + 'a,x,"good,\nand ""cheap""\n"\nb,x,"never\nagain"\nc,x,\n' * 3)
    with pieces_of(size):
        assert sum(map(len, read_batches(path))) == 9


@pytest.mark.parametrize("size", [40, 10**6])
def test_a_quote_left_open_swallows_no_row(tmp_path, size):
    path = tmp_path / "f.csv"
    path.write_text('user,item,review\na,x,"good\nb,x,\nc,x,"fine"\nd,x,\n')
    with pieces_of(size), pytest.raises(DataRefused, match=r"f\.csv, line 2: a quote is not closed"):
        list(read_batches(path))
    with pieces_of(size):
        assert sum(map(len, read_batches(path, on_bad_row="skip"))) == 3


def test_a_damaged_file_is_told_wherever_it_breaks(tmp_path):
    path = tmp_path / "f.csv.gz"
    path.write_bytes(gzip.compress(b"a,x,3\n" * 99999, mtime=0)[:-9])
    with pieces_of(1000), pytest.raises(DataRefused, match="the gzip file is damaged: compress it again"):
        list(read_batches(path))
