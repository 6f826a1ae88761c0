"""The role of each column, and the layout of delimited text files: recognised from names and first lines."""

import csv
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import islice

from erasable.checked_settings import CheckedSettings
from erasable.data._lines import numbered_lines
from erasable.data.sources import InputSource
from erasable.data.values import Taken, is_number
from erasable.errors import DataRefused, Said, WrongUse
from erasable.wording import listed

ROLES = ("user", "item", "rating", "time", "risk", "weight", "event")
OF_WEIGHTS = ("weight", "event")
"""The roles that weights come from; where one of them is named, no rating is read."""
_REQUIRED = ("user", "item")
# Roles in the usual order of columns; names in order of preference, in lower case and without underscores.
# Columns of risks, weights and events are read only if they are named.
_RECOGNISED = {
    "user": ("userid", "user", "uid"),
    "item": ("itemid", "movieid", "item", "iid"),
    "rating": ("rating", "weight", "score"),
    "time": ("timestamp", "datetime", "time", "purchasedat", "orderedat", "eventtime", "createdat"),
}
# Names that shops use, taken where no name above is there. Two of them in one table are refused, since nothing says
# which is meant: a product and its variants, say. An e-mail address counts only where there is no other id.
_OF_SHOPS = {
    "user": ("customerid", "clientid", "visitorid", "memberid"),
    "item": ("productid", "sku", "articleid"),
}
_QUANTITIES = ("quantity", "qty")
_E_MAILS = ("customeremail", "useremail", "email")
# Where several separators would split a file evenly, the first one counts.
SEPARATORS = {
    "::": "separated by ::",
    "\t": "tab-separated",
    ",": "comma-separated",
    ";": "semicolon-separated",
    "|": "separated by |",
    " ": "space-separated",
}
_SAMPLE_LINES = 50


class ColumnNames(CheckedSettings):
    """The columns to read, each by its name or its number from 1; user, item, rating and time are recognised."""

    user: str | None = None
    """The column with the user's id."""
    item: str | None = None
    """The column with the item's id."""
    rating: str | None = None
    """The column with the rating; without one, every rating is 1."""
    time: str | None = None
    """The column with the time, as a number or an ISO date and time."""
    risk: str | None = None
    """The column with each user's erasure risk, a number; needed with --risk-threshold."""
    weight: str | None = None
    """The column with how often or how much, a whole number from 1; rows of one pair add up to --max-weight."""
    event: str | None = None
    """The column with the type of event; needed with --event-weights."""

    def given(self) -> dict[str, str]:
        """Return the columns that were named, by role."""
        return {role: name for role in ROLES if (name := getattr(self, role)) is not None}

    def among(self, names: Sequence[str]) -> "ColumnNames":
        """Return the columns to read from a source with these names."""
        return self

    def among_numbers(self, count: int) -> "ColumnNames":
        """Return the columns to read from a source without names."""
        return self


ANY_COLUMNS = ColumnNames()


class RememberedColumns(ColumnNames):
    """Columns that were read before: they are read again if the source has them and no other is named."""

    remembered: dict[str, str]

    def among(self, names: Sequence[str]) -> ColumnNames:
        """Return the named columns, and the remembered ones that the source has."""
        return self._with(lambda name: not name.isdigit() and _find_given(names, name) is not None)

    def among_numbers(self, count: int) -> ColumnNames:
        """Return the named columns, and those remembered by number."""
        return self._with(lambda name: _is_number_up_to(name, count))

    def _with(self, is_there: Callable[[str], bool]) -> ColumnNames:
        given = self.given()
        known = {role: name for role, name in self.remembered.items() if is_there(name) and name not in given.values()}
        return ColumnNames(**{**known, **given})


@dataclass(frozen=True)
class ColumnPositions:
    """The position of each column in its source, from 0."""

    user: int
    item: int
    rating: int | None = None
    time: int | None = None
    risk: int | None = None
    weight: int | None = None
    event: int | None = None

    def by_role(self) -> dict[str, int]:
        """Return the positions of the columns that are there, by role."""
        return {role: place for role in ROLES if (place := getattr(self, role)) is not None}


def looks_like_header(names: Sequence[str], wanted: ColumnNames) -> bool:
    """Whether one of these texts is a column name that is recognised or was named."""
    plain = {_plain(name) for name in names}
    known = any(plain.intersection((*_RECOGNISED[role], *_OF_SHOPS[role])) for role in _REQUIRED)
    known = known or not plain.isdisjoint(_E_MAILS)
    # A number means a column's position; the same number in the first row says nothing.
    asked = [name for name in wanted.among(names).given().values() if not name.isdigit()]
    return known or any(_find_given(names, name) is not None for name in asked)


def locate_by_name(names: Sequence[str], wanted: ColumnNames, source: str) -> ColumnPositions:
    """Find the columns by name, those given before those recognised."""
    given = wanted.among(names).given()
    places = {role: _place_of_given(names, role, name, source) for role, name in given.items()}
    for role in _roles_to_find(given):
        if role not in places:
            found = _find_recognised(names, role, set(places.values()), source)
            if found is not None:
                places[role] = found
            elif role in _REQUIRED:
                raise _no_such_column(names, f"no column is recognised as the {role}", role, source)
    return _positions(places, source)


def locate_item(names: Sequence[str], given: str | None, source: str) -> int:
    """Find the column of item ids in a table about items, by its name or number if that is given."""
    if given is not None:
        return _place_of_given(names, "item", given, source)
    found = _find_recognised(names, "item", set(), source)
    if found is None:
        raise _no_such_column(names, "no column is recognised as the item", "item", source)
    return found


def _roles_to_find(given: Collection[str]) -> list[str]:
    """Return the roles that are recognised if they are not named: with weights no rating is."""
    return [role for role in _RECOGNISED if role != "rating" or not {*given}.intersection(OF_WEIGHTS)]


def quantity_among(names: Sequence[str]) -> str | None:
    """Return the column that says how many were bought, if there is one."""
    return next((name for name in names if _plain(name) in _QUANTITIES), None)


def column_option(role: str) -> Said:
    """Return the option that names the column of a role."""
    return Said(f"{role}='NAME'", f"--{role}-column")


def locate_by_number(count: int, wanted: ColumnNames, source: str) -> ColumnPositions:
    """Find the columns of a source without names: user, item, rating, time, unless numbers are given."""
    places = {}
    for role, name in wanted.among_numbers(count).given().items():
        if not _is_number_up_to(name, count):
            raise DataRefused(
                f"{source} has no header and {count} columns, so there is no column {name!r}: give ",
                Said(f"{role}=NUMBER, a number", f"--{role}-column as a number"),
                f" from 1 to {count}",
            )
        places[role] = int(name) - 1
    for usual, role in enumerate(_RECOGNISED):
        if role in _roles_to_find(places) and role not in places and usual < count and usual not in places.values():
            places[role] = usual
    for role in _REQUIRED:
        if role not in places:
            by_number = Said(f"{role}=NUMBER, a number", f"--{role}-column as a number")
            raise DataRefused(f"{source}: which column is the {role}? Give ", by_number, " from 1")
    return _positions(places, source)


def _place_of_given(names: Sequence[str], role: str, name: str, source: str) -> int:
    place = _find_given(names, name)
    if place is not None:
        return place
    if _is_number_up_to(name, len(names)):
        return int(name) - 1
    raise _no_such_column(names, f"there is no column {name!r}", role, source)


def _find_given(names: Sequence[str], wanted: str) -> int | None:
    exact = [place for place, name in enumerate(names) if wanted in (name, name.split(":")[0])]
    return exact[0] if exact else None


def _find_recognised(names: Sequence[str], role: str, taken: set[int], source: str) -> int | None:
    places = recognised_places(names, role, taken)
    if len(places) > 1:
        either = listed(names[place] for place in places)
        raise DataRefused(f"{source}: {either} may each be the {role}: name one of them with ", column_option(role))
    return places[0] if places else None


def recognised_places(names: Sequence[str], role: str, taken: Collection[int] = ()) -> list[int]:
    """Return where columns stand that are recognised by name; several if nothing says which of them is meant."""
    plain = [None if place in taken else _plain(name) for place, name in enumerate(names)]
    usual = [known for known in _RECOGNISED[role] if known in plain][:1]
    of_shops = [known for known in _OF_SHOPS.get(role, ()) if known in plain]
    e_mails = [known for known in _E_MAILS if known in plain][:1] if role == "user" else []
    return [plain.index(known) for known in usual or of_shops or e_mails]


def _plain(name: str) -> str:
    # RecBole appends the type after a colon: user_id:token.
    return name.split(":")[0].strip().lower().replace("_", "")


def _is_number_up_to(name: str, count: int) -> bool:
    return name.isascii() and name.isdigit() and 1 <= int(name) <= count


def _no_such_column(names: Sequence[str], problem: str, role: str, source: str) -> DataRefused:
    if 2 * sum(bool(name.strip()) for name in names) < len(names):  # most names are blank
        return DataRefused(f"{source}: does not look like a table: give a CSV or Parquet file with users and items")
    return DataRefused(
        f"{source}: {problem}; the columns are {', '.join(names)}: name one of them with ", column_option(role)
    )


def _positions(places: dict[str, int], source: str) -> ColumnPositions:
    if len(set(places.values())) < len(places):
        raise WrongUse(f"{source}: one column is named twice: give each of {', '.join(places)} its own column")
    return ColumnPositions(**places)


@dataclass(frozen=True)
class Layout:
    """The layout of one delimited file; `lines_before` counts the lines before the first row, header included."""

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
        """Return which columns are read and which are not, by name, or by number from 1 without a header."""
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


def recognise_layout(source: InputSource, wanted: ColumnNames) -> Layout:
    """Recognise the layout of a file from its first lines."""
    sample = list(islice(((n, text) for n, text in numbered_lines(source) if text.strip()), _SAMPLE_LINES))
    if not sample:
        raise DataRefused(f"{source.name} is empty: give a file with one interaction a line")
    separator = _separator(source, [text for _, text in sample])
    quotes = separator != "::" and ".inter" not in source.endings
    rows = [split_fields(text, separator, quotes) for _, text in sample]
    first, others = rows[0], rows[1:]
    if _has_header(first, others, wanted):
        columns, lines_before = locate_by_name(first, wanted, source.name), sample[0][0]
    else:
        columns, lines_before = locate_by_number(len(first), wanted, source.name), sample[0][0] - 1
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
    """Split a line at its separators, respecting quotes where the format has them."""
    if not (quotes and '"' in line):
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator))
    except csv.Error:
        return []


def _separator(source: InputSource, lines: Sequence[str]) -> str:
    present = [separator for separator in SEPARATORS if separator in lines[0]]
    if not present:
        raise DataRefused(
            f"{source.name}, line 1: holds one column only: give user and item, separated by a comma, a tab or ::"
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
    # Unknown names: text above a column of numbers is a header; with ids alone, both columns must be numbers.
    below = others[0] if others else []
    above_numbers = any(map(is_number, below[2:])) or (
        bool(others) and all(len(row) >= 2 and is_number(row[0]) and is_number(row[1]) for row in others)
    )
    # A column was asked for by name, so the first line is a header, even one without that column.
    asked_by_name = any(not name.isdigit() for name in wanted.given().values())
    return above_numbers or asked_by_name


def _time_is_number(rows: Sequence[Sequence[str]], place: int | None) -> bool:
    if place is None:
        return False
    texts = [row[place] for row in rows if len(row) > place and row[place]]
    return bool(texts) and is_number(texts[0])
