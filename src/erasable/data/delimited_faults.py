"""A plain, slow pass over a delimited file to name every line at fault, once the quick reader gave up."""

import csv
from pathlib import Path

import numpy as np

from erasable.data.bad_rows import RowFaults
from erasable.data.column_values import is_finite_number, is_finite_rating, is_number, time_of_text
from erasable.data.columns import column_option
from erasable.data.double_colon import ONE_BYTE
from erasable.data.ids import LONGEST_ID
from erasable.data.layout import Layout
from erasable.data.rating_scale import RatingScale
from erasable.data.source_file import numbered_lines
from erasable.errors import said

_SHOWN_CHARACTERS = 20


def faults_of_lines(path: Path, layout: Layout, scale: RatingScale | None) -> tuple[RowFaults, int]:
    """Return the lines that break a rule, by their numbers and without repeating them, and how many lines there are."""
    faults, lines = RowFaults(), 0
    for number, line in numbered_lines(path):
        if number <= layout.lines_before or not line:
            continue
        lines += 1
        reason = _fault(layout, line)
        if reason:
            faults.add(number, reason)
        elif scale is not None and layout.columns.rating is not None:
            rating = float(layout.fields(line)[layout.columns.rating])
            if not scale.contains(np.float32(rating)):
                faults.add_off_scale(number, rating, scale)
    return faults, lines


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
        if len(texts[role]) > LONGEST_ID:
            return f"the {role} has more than {LONGEST_ID:,} characters: shorten it, or drop the line"
    for role, is_right in (("rating", is_finite_rating), ("risk", is_finite_number)):
        if role in texts and not is_right(texts[role]):
            return said(
                f"{_shown(texts[role])} is no {role}: give a finite number, or name another ", column_option(role)
            )
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
