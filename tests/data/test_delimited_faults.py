import pytest

from erasable.data import ColumnNames, read_interactions
from erasable.errors import DataRefused


def read(tmp_path, content, **columns):
    path = tmp_path / "ratings.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_interactions(path, ColumnNames(**columns))


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("user,item,rating\na,x,3\nb,x,good\n", 3, "'good' is not a rating"),
        ("user,item,rating\na,x,3\n\nb,x,\n", 4, "an empty field is not a rating"),
        ("user,item,rating\na,x,nan\nb,x,3\n", 2, "'nan' is not a rating"),
        ("user,item,rating\na,x,inf\nb,x,3\n", 2, "'inf' is not a rating"),
        ("user,item,rating\na,x,1e39\nb,x,3\n", 2, "'1e39' is not a rating"),
        ("a,x,3\nb,x,1_0\n", 2, "'1_0' is not a rating"),
        ("user,item,rating\na,x,3\nb,x\n", 3, "2 fields instead of 3"),
        ("user,item,rating\na,x,3\nb,x,4,5\n", 3, "4 fields instead of 3"),
        ("a::x::3\nb:x::4\n", 2, "2 fields instead of 3"),
        ("a::x::3\nb::x\x1f::4\n", 2, "control character"),
        ('user,item,rating\n"a,x,3\n"b,x,4\n', 2, "a quote is not closed"),
        ('user,item,rating\na,x"y,3\nb,x,"4\n', 3, "a quote is not closed"),
        ("user,item,rating\na,x,3\nb,x,٣\n", 3, "'٣' is not a rating"),
        ("1,2,bad\n2,3,4\n", 1, "'bad' is not a rating"),
        ("user,item,rating,time\na,x,3,2020-01-01\nb,x,4,1_0\n", 3, "'1_0' is not a time"),
        ("user,item,rating\n,x,3\nb,x,4\n", 2, "the user is empty"),
        ("user,item,rating\na,x,3\nb,,4\n", 3, "the item is empty"),
        ("user,item,rating\na,x,3\nb,x\0,4\n", 3, "NUL"),
        (b"user,item,rating\na,x,3\nb,\xe9,4\n", 3, "not UTF-8"),
        ("user,item,rating,time\na,x,3,5\nb,x,4,soon\n", 3, "'soon' is not a time"),
        ("user,item,rating,time\na,x,3,5\nb,x,4,inf\n", 3, "'inf' is not a time"),
        ("user,item,rating,time\na,x,3,2020-01-01\nb,x,4,2020-31-01\n", 3, "'2020-31-01' is not a time"),
        ("user,item,rating,time\na,x,3,5\nb,x,4,2020-01-01\n", 3, "one kind in all lines"),
    ],
)
def test_a_bad_line_is_refused_by_its_number(tmp_path, content, line, reason):
    with pytest.raises(DataRefused, match=rf"ratings\.csv, line {line}: .*{reason}") as refused:
        read(tmp_path, content)
    assert refused.value.__cause__ is refused.value.__context__ is None


@pytest.mark.parametrize("bad", ["high", "nan", "inf", "1_0", ""])
@pytest.mark.parametrize("separator", [",", "::"])
def test_a_bad_risk_is_refused_by_its_line(tmp_path, separator, bad):
    lines = (("user", "item", "risk"), ("a", "x", "1e39"), ("b", "x", bad))
    shown = repr(bad) if bad else "an empty field"
    with pytest.raises(DataRefused, match=rf"line 3: {shown} is not a risk: give a finite number.*risk='NAME'"):
        read(tmp_path, "\n".join(map(separator.join, lines)), risk="risk")


@pytest.mark.parametrize("fault", [b"\xff,x,4", b"b\0,x,4", b"b,x", b"b,x,bad"])
def test_a_fault_far_below_is_found_too(tmp_path, fault):
    content = b"user,item,rating\n" + b"".join(b"u%d,x,3\n" % number for number in range(5000)) + fault
    with pytest.raises(DataRefused, match=r"ratings\.csv, line 5002: "):
        read(tmp_path, content)


def test_a_long_bad_value_is_shortened(tmp_path):
    with pytest.raises(DataRefused) as refused:
        read(tmp_path, "user,item,rating\na,x,3\nb,x," + "private" * 20)
    assert len(str(refused.value)) < 200 + len(str(tmp_path))


def test_a_file_without_a_nameable_fault_is_refused_all_the_same(tmp_path):
    # Line ends of old Macs alone: Arrow sees rows, a plain pass sees one line.
    with pytest.raises(DataRefused, match=r"ratings\.csv: can't be read .*: write it again"):
        read(tmp_path, "user,item,rating\ra,x,3\rb,x,4\r")
