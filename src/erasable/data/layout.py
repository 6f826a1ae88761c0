"""How a delimited file is laid out, told from its first lines: separator, header, columns; no rows here."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from erasable.data.column_values import Taken, is_number
from erasable.data.columns import (
    ColumnNames,
    ColumnPositions,
    locate_by_name,
    locate_by_number,
    looks_like_header,
)
from erasable.data.source_file import numbered_lines
from erasable.errors import DataRefused

# The order decides where several would do.
SEPARATORS = {
    "::": "separated by ::",
    "\t": "tab-separated",
    ",": "comma-separated",
    ";": "semicolon-separated",
    "|": "separated by |",
    " ": "space-separated",
}
_SAMPLE_LINES = 50


@dataclass(frozen=True)
class Layout:
    """The layout of one delimited file; `lines_before` the first row include the header."""

    separator: str
    quotes: bool
    header: tuple[str, ...] | None
    width: int
    lines_before: int
    columns: ColumnPositions
    time_is_number: bool

    def fields(self, line: str) -> list[str]:
        """Split one line into its fields."""
        return split_fields(line, self.separator, self.quotes)

    def taken(self) -> Taken:
        """Return the columns that are taken and left, by their names, or numbers from 1 without a header."""
        names = self.header or [str(place + 1) for place in range(self.width)]
        places = self.columns.by_role()
        left = tuple(name for place, name in enumerate(names) if place not in places.values())
        return Taken({role: names[place] for role, place in places.items()}, left)

    def __str__(self) -> str:
        places = self.columns.by_role()
        name = SEPARATORS[self.separator]
        if self.header is not None:
            return f"{name} with a header; {', '.join(self.header[place] for place in places.values())}"
        numbers = ", ".join(str(place + 1) for place in places.values())
        return f"{name} without a header; columns {numbers} are {', '.join(places)}"


def recognise_layout(path: Path, wanted: ColumnNames) -> Layout:
    """Tell the layout of a file from its first lines."""
    sample = list(islice(((n, text) for n, text in numbered_lines(path) if text.strip()), _SAMPLE_LINES))
    if not sample:
        raise DataRefused(f"{path} is empty: give a file with one interaction a line")
    separator = _separator(path, [text for _, text in sample])
    quotes = separator != "::" and ".inter" not in path.suffixes
    rows = [split_fields(text, separator, quotes) for _, text in sample]
    first, others = rows[0], rows[1:]
    if _has_header(first, others, wanted):
        columns, lines_before = locate_by_name(first, wanted, str(path)), sample[0][0]
    else:
        columns, lines_before = locate_by_number(len(first), wanted, str(path)), sample[0][0] - 1
    has_header = lines_before == sample[0][0]
    return Layout(
        separator=separator,
        quotes=quotes,
        header=tuple(first) if has_header else None,
        width=len(first),
        lines_before=lines_before,
        columns=columns,
        time_is_number=_time_is_number(others if has_header else rows, columns.time),
    )


def split_fields(line: str, separator: str, quotes: bool) -> list[str]:
    """Split a line at its separators, minding quotes where the format has them."""
    if not (quotes and '"' in line):
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator))
    except csv.Error:
        return []


def _separator(path: Path, lines: Sequence[str]) -> str:
    present = [separator for separator in SEPARATORS if separator in lines[0]]
    if not present:
        raise DataRefused(
            f"{path}, line 1: holds one column only: give user and item, separated by a comma, a tab or ::"
        )
    even = [separator for separator in present if _splits_evenly(lines, separator)]
    return (even or present)[0]


def _splits_evenly(lines: Sequence[str], separator: str) -> bool:
    return len({len(split_fields(line, separator, separator != "::")) for line in lines}) == 1


def _has_header(first: Sequence[str], others: Sequence[Sequence[str]], wanted: ColumnNames) -> bool:
    if looks_like_header(first, wanted):
        return True
    if any(map(is_number, first)):
        return False
    # Names that nobody knows: text above a column that goes on with numbers; for ids alone, both must be numbers.
    below = others[0] if others else []
    above_numbers = any(map(is_number, below[2:])) or (
        bool(others) and all(len(row) >= 2 and is_number(row[0]) and is_number(row[1]) for row in others)
    )
    # A name was given that is not there: this must be the header it is missing from.
    asked_by_name = any(not name.isdigit() for name in wanted.given().values())
    return above_numbers or asked_by_name


def _time_is_number(rows: Sequence[Sequence[str]], place: int | None) -> bool:
    if place is None:
        return False
    texts = [row[place] for row in rows if len(row) > place and row[place]]
    return bool(texts) and is_number(texts[0])
