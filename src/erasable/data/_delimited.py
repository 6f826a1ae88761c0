"""Reading delimited text in pieces: quickly with Arrow; line by line where that fails, to name the bad lines."""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from erasable.data._lines import blocks_of_lines, line_text, numbered_lines
from erasable.data.columns import ColumnNames, Layout, column_option, recognise_layout
from erasable.data.ids import LONGEST_ID
from erasable.data.sources import InputSource
from erasable.data.values import (
    NO_WEIGHT,
    ColumnRefused,
    ColumnValues,
    OpenedSource,
    RowFaults,
    RowRules,
    is_finite_number,
    is_finite_rating,
    is_number,
    is_weight,
    read_columns,
    time_of_text,
)
from erasable.errors import DataRefused, said

_ONE_BYTE = "\x1f"
_BOM = b"\xef\xbb\xbf"
_SHOWN_CHARACTERS = 20
_NOTHING = "holds no interaction, only a header: give one interaction a line"


def open_delimited(source: InputSource, wanted: ColumnNames, rules: RowRules) -> OpenedSource:
    """Recognise the layout of a delimited text file, compressed or not; its pieces are read when they are asked for."""
    layout = recognise_layout(source, wanted)
    return OpenedSource(source.name, str(layout), layout.taken(), _pieces(source, layout, rules), _NOTHING)


def _pieces(source: InputSource, layout: Layout, rules: RowRules) -> Iterator[ColumnValues]:
    for before, block in blocks_of_lines(source, layout.lines_before, layout.quotes):
        values = _quick_values(block, before, layout, rules)
        if values is None and rules.on_bad_row == "refuse":
            raise _refusal(source, layout, rules)
        yield _values_of_good_lines(source, before, block, layout, rules) if values is None else values


def _refusal(source: InputSource, layout: Layout, rules: RowRules) -> DataRefused:
    """Return the error that names the bad lines of the whole file."""
    faults, rows = RowFaults(), 0
    for number, line in numbered_lines(source):
        if number > layout.lines_before and line:
            rows += 1
            faults.join(_faults_of_line(number, line, layout, rules), 0)
    return faults.refusal(source.name, "line", rows) if faults else _unreadable(source, layout)


def _unreadable(source: InputSource, layout: Layout) -> DataRefused:
    return DataRefused(f"{source.name}: can't be read as {layout}: write it again as plain CSV, one row a line")


def _values_of_good_lines(
    source: InputSource, before: int, block: bytes, layout: Layout, rules: RowRules
) -> ColumnValues:
    """Return the values of a block without its bad lines."""
    good, bad = [], 0
    for number, line in enumerate(io.BytesIO(block), before + 1):
        text = line_text(source, number, line)
        if number > layout.lines_before and text and _faults_of_line(number, text, layout, rules):
            bad += 1
        else:
            good.append(line)
    values = _quick_values(b"".join(good), before, layout, rules) if bad else None
    if values is None:
        raise _unreadable(source, layout)
    return replace(values, bad_rows=bad)


def _faults_of_line(number: int, line: str, layout: Layout, rules: RowRules) -> RowFaults:
    """Return why a line can't be used, if it can't, without its text."""
    faults = RowFaults()
    reason = _fault(layout, line, rules)
    if reason:
        faults.add(number, reason)
    elif rules.scale is not None and layout.columns.rating is not None:
        rating = float(layout.fields(line)[layout.columns.rating])
        if not rules.scale.contains(np.float32(rating)):
            faults.add_off_scale(number, rating, rules.scale)
    return faults


def _fault(layout: Layout, line: str, rules: RowRules) -> str | None:
    if layout.quotes and _leaves_a_quote_open(line, layout.separator):
        return "a quote is not closed: close it, or double the quotes inside a field"
    fields = layout.fields(line)
    if len(fields) != layout.width:
        return f"holds {len(fields)} fields instead of {layout.width}: correct its separators, or drop it"
    if layout.separator == "::" and any(_ONE_BYTE in field for field in fields):
        return "holds the control character 1F: give plain text"
    texts = {role: fields[place] for role, place in layout.columns.by_role().items()}
    return _value_fault(layout, texts) or _weight_fault(texts, rules)


def _weight_fault(texts: dict[str, str], rules: RowRules) -> str | None:
    if "weight" in texts and not is_weight(texts["weight"]):
        return NO_WEIGHT
    if "event" not in texts or rules.weights is None:
        return None
    return rules.weights.event_fault(texts["event"])


def _value_fault(layout: Layout, texts: dict[str, str]) -> str | None:
    for role in ("user", "item"):
        if not texts[role]:
            return f"the {role} is empty: fill it in, or drop the line"
        if len(texts[role]) > LONGEST_ID:
            return f"the {role} has more than {LONGEST_ID:,} characters: shorten it, or drop the line"
    for role, is_right in (("rating", is_finite_rating), ("risk", is_finite_number)):
        if role in texts and not is_right(texts[role]):
            return said(
                f"{_shown(texts[role])} is not a {role}: give a finite number, or name another ", column_option(role)
            )
    if "time" in texts and not _is_time(texts["time"], layout):
        return f"{_shown(texts['time'])} is not a time: give seconds or an ISO date and time, one kind in all lines"
    return None


def _leaves_a_quote_open(line: str, separator: str) -> bool:
    try:
        next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error as error:
        return "end of data" in str(error)
    return False


def _is_time(text: str, layout: Layout) -> bool:
    if layout.time_is_number:
        return not text or (is_number(text) and abs(float(text)) != float("inf"))
    try:
        return not text or abs(time_of_text(text)) != float("inf")
    except ValueError:
        return False


def _shown(text: str) -> str:
    short = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
    return repr(short) if text else "an empty field"


def _quick_values(block: bytes, before: int, layout: Layout, rules: RowRules) -> ColumnValues | None:
    """Return the values of whole lines, or None if one of them is bad."""
    try:
        table = _read_table(block, before, layout)
        if layout.quotes and b'"' in block and _swallows_lines(block, before, table.num_rows, layout):
            return None
        columns = {role: table.column(str(place)) for role, place in layout.columns.by_role().items()}
        values, faults = read_columns(columns, rules)
    except (pa.ArrowInvalid, ColumnRefused):
        # Arrow's message repeats the whole row, which is personal data: it must not be chained to ours.
        return None
    return None if faults else values


def _swallows_lines(block: bytes, before: int, rows: int, layout: Layout) -> bool:
    """Whether a quote is left open, so that Arrow took the lines after it as part of a field.

    A field of several lines is right in a column that is not read; an id of several lines is refused anyway.
    """
    skipped = 0 if before else layout.lines_before
    if rows + skipped >= block.count(b"\n") + (not block.endswith(b"\n")):
        return False
    if rows >= sum(1 for line in islice(io.BytesIO(block), skipped, None) if line.rstrip(b"\r\n")):
        return False  # the other lines are blank
    try:
        # Only quotes and separators count here, so any encoding will do.
        text = io.StringIO(block.decode("latin-1"), newline="")
        for _ in csv.reader(text, delimiter=layout.separator, strict=True):
            pass
    except csv.Error:
        return True
    return False


def _read_table(block: bytes, before: int, layout: Layout) -> pa.Table:
    double = layout.separator == "::"
    content = block.replace(b"::", _ONE_BYTE.encode()) if double else block
    if not content or (before and content.startswith(_BOM)):
        # Arrow refuses no bytes at all, and drops a byte order mark at the start, though here it belongs to an id.
        content = b"\n" + content
    return arrow_csv.read_csv(
        pa.BufferReader(content),
        read_options=arrow_csv.ReadOptions(
            column_names=[str(place) for place in range(layout.width)],
            skip_rows=0 if before else layout.lines_before,
            block_size=len(content) + 1,
            # A thread of Arrow's pool might release the content, a Python object, while the interpreter shuts down.
            use_threads=False,
        ),
        parse_options=arrow_csv.ParseOptions(
            delimiter=_ONE_BYTE if double else layout.separator,
            quote_char='"' if layout.quotes else False,
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=_types(layout),
            include_columns=[str(place) for place in layout.columns.by_role().values()],
            null_values=[""],
            strings_can_be_null=False,
        ),
    )


def _types(layout: Layout) -> dict[str, pa.DataType]:
    text = pa.dictionary(pa.int32(), pa.string())
    time = pa.float64() if layout.time_is_number else pa.string()
    kinds = {"user": text, "item": text, "rating": pa.float64(), "time": time, "risk": pa.float64()}
    kinds |= {"weight": pa.float64(), "event": text}
    return {str(place): kinds[role] for role, place in layout.columns.by_role().items()}
