import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.data import ColumnNames, read_interactions
from erasable.errors import DataRefused

BOTH = [("a", "x", 3.0), ("b", "x", 4.0)]


def read(tmp_path, content, name="ratings.csv", **columns):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_interactions(path, ColumnNames(**columns))


def rows(result):
    found = result.interactions
    users, items = found.users.texts(), found.items.texts()
    columns = zip(found.user_index, found.item_index, found.rating.tolist(), strict=True)
    return [(users[user], items[item], rating) for user, item, rating in columns]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("f.csv", "user_id,item_id,rating\na,x,3\nb,x,4\n"),
        ("f.csv", "userId,movieId,rating,timestamp\r\na,x,3,1\r\nb,x,4.0,2\r\n"),
        ("f.csv", "\ufeffuser,item,rating\na,x,3\nb,x,4"),
        ("f.csv", "\ufeffa,x,3\nb,x,4"),
        ("f.csv", "a,x,3.0,1406073600\nb,x,4.0,1406073601\n"),
        ("f.csv", "\n\nrating,item,user\n3,x,a\n\n4,x,b\n\n"),
        ("f.csv", '"user","item","rating"\n"a","x","3"\n"b","x",4\n'),
        ("f.tsv", "a\tx\t3\t881250949\nb\tx\t4\t891717742\n"),
        ("f.csv", "user;item;rating\na;x;3\nb;x;4\n"),
        ("f.txt", "a x 3\nb x 4\n"),
        ("f.txt", "a|x|3\nb|x|4\n"),
        ("ratings.dat", "a::x::3::978300760\nb::x::4::978300761\n"),
        ("f.inter", "user_id:token\titem_id:token\trating:float\ttimestamp:float\na\tx\t3\t1\nb\tx\t4\t2\n"),
    ],
)
def test_each_format_gives_the_same_rows(tmp_path, name, content):
    assert rows(read(tmp_path, content, name)) == BOTH


def test_compressed_files_are_read(tmp_path):
    assert rows(read(tmp_path, gzip.compress(b"a,x,3\nb,x,4\n"), "f.csv.gz")) == BOTH
    assert rows(read(tmp_path, gzip.compress(b"a::x::3\nb::x::4\n"), "f.dat.gz")) == BOTH


def test_ids_are_text_exactly_as_written(tmp_path):
    result = read(tmp_path, "user,item\n007, x\n7,x \n1e3,NA\nnull,1.0\n")
    assert rows(result) == [("007", " x", 1), ("1e3", "NA", 1), ("7", "x ", 1), ("null", "1.0", 1)]


def test_quoted_fields_may_hold_separators_and_quotes(tmp_path):
    result = read(tmp_path, 'user,item\n"a,b","say ""x"""\nc,x\n')
    assert rows(result) == [("a,b", 'say "x"', 1), ("c", "x", 1)]


def test_formats_without_quotes_keep_them(tmp_path):
    assert rows(read(tmp_path, 'a::"x::3\nb::x"::4\n', "f.dat")) == [("a", '"x', 3), ("b", 'x"', 4)]


def test_notes_say_what_was_recognised_and_dropped(tmp_path):
    result = read(tmp_path, "user,item\na,x\nb,x\na,x\n")
    assert result.notes == (
        "comma-separated with a header; user, item",
        "no rating column: every rating is 1",
        "1 repeated (user, item) pairs dropped; the latest of each stays",
    )


def test_the_latest_of_a_repeated_pair_stays(tmp_path):
    result = read(tmp_path, "a,x,1,50\na,x,2,90\na,x,3,\nb,x,4,1\n")
    assert rows(result) == [("a", "x", 2), ("b", "x", 4)]


@pytest.mark.parametrize(
    ("first", "second", "seconds"),
    [
        ("10", "11.5", [10, 11.5]),
        ("", "11", [np.nan, 11]),
        ("1970-01-02", "1970-01-01T00:00:01.5", [86400, 1.5]),
        ("1970-01-01 00:01:00Z", "1970-01-01T01:00:00+01:00", [60, 0]),
        ("1970-01-02T00:00:00Z", "1970-01-02", [86400, 86400]),
        ("1970-01-02", "", [86400, np.nan]),
    ],
)
def test_times_are_numbers_or_iso_texts(tmp_path, first, second, seconds):
    result = read(tmp_path, f"user,item,rating,time\na,x,1,{first}\nb,x,1,{second}\n")
    np.testing.assert_array_equal(result.interactions.time, seconds)


def test_columns_are_named_or_counted(tmp_path):
    named = "when,stars,what,who\n5,3,x,a\n6,4,x,b\n"
    assert rows(read(tmp_path, named, user="who", item="what", rating="stars")) == BOTH
    assert rows(read(tmp_path, "5,3,x,a\n6,4,x,b\n", user="4", item="3", rating="2", time="1")) == BOTH


@pytest.mark.parametrize(
    ("name", "content", "risk", "recognised"),
    [
        ("f.csv", "user,item,rating,p\na,x,3,.1\nb,x,4,2\n", "p", "with a header; user, item, rating, p"),
        ("f.csv", "p;item;rating;user\n.1;x;3;a\n2;x;4;b\n", "1", "with a header; user, item, rating, p"),
        ("f.tsv", "a\tx\t3\t.1\nb\tx\t4\t2\n", "4", "columns 1, 2, 3, 4 are user, item, rating, risk"),
        ("f.dat", "a::x::3::9::.1\nb::x::4::9::2\n", "5", "columns 1, 2, 3, 4, 5 are user, item, rating, time, risk"),
        ("f.inter", "user_id:token\titem_id:token\trating:float\tp:float\na\tx\t3\t.1\nb\tx\t4\t2\n", "p", "p:float"),
    ],
)
def test_a_risk_is_read_from_each_format(tmp_path, name, content, risk, recognised):
    result = read(tmp_path, content, name, risk=risk)
    assert rows(result) == BOTH
    assert result.risk == {"a": 0.1, "b": 2}
    assert result.notes[0].endswith(recognised)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"\n\r\n\n", "is empty"),
        (b"user,item,rating\n", "only a header"),
        (b"user,item\na,x\na,y\n", "one user only"),
        (b"one\ntwo\n", "one column only"),
        (gzip.compress(b"a,x,3\n" * 999, mtime=0)[:-9], "damaged"),
    ],
)
def test_a_file_that_holds_too_little_is_refused(tmp_path, content, reason):
    with pytest.raises(DataRefused, match=rf"ratings\.csv.*{reason}"):
        read(tmp_path, content)


ids = st.text(st.characters(codec="utf-8", exclude_characters='\0\x1f\r\n",:;|\t '), min_size=1, max_size=3).filter(
    lambda text: not text.startswith("\ufeff")
)
table = st.dictionaries(st.tuples(ids, ids), st.integers(1, 5), min_size=2, max_size=8)


@settings(max_examples=60, deadline=None)
@given(table.filter(lambda some: len({user for user, _ in some}) > 1), st.sampled_from([",", "\t", "::"]))
def test_what_was_written_is_read(tmp_path_factory, some, separator):
    lines = [separator.join(["user_id", "item_id", "rating"])]
    lines += [separator.join([user, item, str(rating)]) for (user, item), rating in some.items()]
    result = read(tmp_path_factory.mktemp("written"), "\n".join(lines))
    assert rows(result) == [(user, item, some[user, item]) for user, item in sorted(some)]
