"""A plain, slow pass over a delimited file to name the first line at fault, once the quick reader gave up."""

import csv
from pathlib import Path

from erasable.data.column_values import is_finite_number, is_finite_rating, is_number, time_of_text
from erasable.data.double_colon import ONE_BYTE
from erasable.data.layout import Layout
from erasable.data.source_file import numbered_lines
from erasable.errors import DataRefused

_SHOWN_CHARACTERS = 20


def first_fault(path: Path, layout: Layout) -> DataRefused:
    """Return the refusal of the first line that breaks a rule, without repeating the line."""
    for number, line in numbered_lines(path):
        reason = _fault(layout, line) if number > layout.lines_before and line else None
        if reason:
            return DataRefused(f"{path}, line {number}: {reason}")
    return DataRefused(f"{path}: can't be read as {layout}: write it again as plain CSV, one row a line")


def _fault(layout: Layout, line: str) -> str | None:
    if layout.quotes and _leaves_a_quote_open(line, layout.separator):
        return "a quote is not closed: close it, or double the quotes inside a field"
    fields = layout.fields(line)
    if len(fields) != layout.width:
        return f"holds {len(fields)} fields instead of {layout.width}: correct its separators, or drop it"
    if layout.separator == "::" and any(ONE_BYTE in field for field in fields):
        return "holds the control character 1F: give plain text"
    return _value_fault(layout, {role: fields[place] for role, place in layout.columns.by_role().items()})


def _value_fault(layout: Layout, texts: dict[str, str]) -> str | None:
    for role in ("user", "item"):
        if not texts[role]:
            return f"the {role} is empty: fill it in, or drop the line"
    for role, is_right in (("rating", is_finite_rating), ("risk", is_finite_number)):
        if role in texts and not is_right(texts[role]):
            return f"{_shown(texts[role])} is no {role}: give a finite number, or name another --{role}-column"
    if "time" in texts and not _is_time(texts["time"], layout):
        return f"{_shown(texts['time'])} is no time: give seconds or an ISO date and time, one kind in all lines"
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
