"""Which column holds what: names recognised, given or counted; the values themselves are not read here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from erasable.errors import DataRefused, Said, WrongUse

ROLES = ("user", "item", "rating", "time", "risk")
_REQUIRED = ("user", "item")
# Roles in the usual order of columns, names in order of preference, lower case and without underscores.
# A risk is read only when it is named.
_RECOGNISED = {
    "user": ("userid", "user", "uid"),
    "item": ("itemid", "movieid", "item", "iid"),
    "rating": ("rating", "weight", "score"),
    "time": ("timestamp", "datetime", "time"),
}


class ColumnNames(BaseModel):
    """The columns to read, each by its name or its number from 1; those left out, but for the risk, are recognised."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

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

    def given(self) -> dict[str, str]:
        """Return the columns that were named, by role."""
        return {role: name for role in ROLES if (name := getattr(self, role)) is not None}

    def among(self, names: Sequence[str]) -> "ColumnNames":
        """Return the columns to read from a source with these names."""
        return self

    def among_numbers(self, count: int) -> "ColumnNames":
        """Return the columns to read from a source without names."""
        return self


class RememberedColumns(ColumnNames):
    """Columns that were read before: they are read again where the source has them and no other is named."""

    remembered: dict[str, str]

    def among(self, names: Sequence[str]) -> ColumnNames:
        """Return the columns named, and those remembered that have one of these names."""
        return self._with(lambda name: not name.isdigit() and _find_given(names, name) is not None)

    def among_numbers(self, count: int) -> ColumnNames:
        """Return the columns named, and those remembered by a number."""
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

    def by_role(self) -> dict[str, int]:
        """Return the positions of the columns that are there, by role."""
        return {role: place for role in ROLES if (place := getattr(self, role)) is not None}


def looks_like_header(names: Sequence[str], wanted: ColumnNames) -> bool:
    """Say whether one of these texts is a column name that is recognised or asked for."""
    plain = {_plain(name) for name in names}
    known = any(plain.intersection(_RECOGNISED[role]) for role in _REQUIRED)
    # A number counts columns; that it also stands in the first row says nothing.
    asked = [name for name in wanted.among(names).given().values() if not name.isdigit()]
    return known or any(_find_given(names, name) is not None for name in asked)


def locate_by_name(names: Sequence[str], wanted: ColumnNames, source: str) -> ColumnPositions:
    """Find the columns by their names, those given before those recognised."""
    given = wanted.among(names).given()
    places = {role: _place_of_given(names, role, name, source) for role, name in given.items()}
    for role in _RECOGNISED:
        if role not in places:
            found = _find_recognised(names, role, taken=set(places.values()))
            if found is not None:
                places[role] = found
            elif role in _REQUIRED:
                raise _no_such_column(names, f"no column is recognised as the {role}", role, source)
    return _positions(places, source)


def column_option(role: str) -> Said:
    """Say how the column of a role is named."""
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
        if role not in places and usual < count and usual not in places.values():
            places[role] = usual
    for role in _REQUIRED:
        if role not in places:
            number = Said(f"{role}=NUMBER, a number", f"--{role}-column as a number")
            raise DataRefused(f"{source}: which column is the {role}? Give ", number, " from 1")
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


def _find_recognised(names: Sequence[str], role: str, taken: set[int]) -> int | None:
    plain = [None if place in taken else _plain(name) for place, name in enumerate(names)]
    return next((plain.index(known) for known in _RECOGNISED[role] if known in plain), None)


def _plain(name: str) -> str:
    # RecBole writes the type behind a colon: user_id:token.
    return name.split(":")[0].strip().lower().replace("_", "")


def _is_number_up_to(name: str, count: int) -> bool:
    return name.isascii() and name.isdigit() and 1 <= int(name) <= count


def _no_such_column(names: Sequence[str], problem: str, role: str, source: str) -> DataRefused:
    return DataRefused(
        f"{source}: {problem}; the columns are {', '.join(names)}: name one of them with ", column_option(role)
    )


def _positions(places: dict[str, int], source: str) -> ColumnPositions:
    if len(set(places.values())) < len(places):
        raise WrongUse(f"{source}: one column is named twice: give each of {', '.join(places)} its own column")
    return ColumnPositions(**places)
