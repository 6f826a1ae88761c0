"""Searching the tables of any decoded file, and which of their columns hold user ids.

User ids are in the columns named like a user (`role_of`). Without any, in a column named `id`; else in the first one,
if its name is unknown or missing. A table or file named after items has neither of the last two; in one named after
requests, groups or other measures, `id` does not mean users.

Ids are searched in fields, texts in cells, and interactions and personal rows as values.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.scan._columns import Column, Role, role_of, subject_of
from erasable.scan._evidence import File
from erasable.scan._search import Places, Values
from erasable.scan._target import SHORTEST, Floats
from erasable.scan._wanted import RUN, single

_OF_USERS = (Role.USER, Role.USERS)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length."""

    place: str
    """Where it is in its file, in words; empty if it is the whole file."""
    name: str | None
    """The name of the table or the file."""
    columns: Sequence[Column]
    part: str = "column"
    """What the columns are: columns, or their statistics or dictionaries."""
    owned: bool = False
    """Whether it stands below a user's id, to whom it belongs."""

    @cached_property
    def user_columns(self) -> frozenset[int]:
        """The columns that hold user ids."""
        roles = [role_of(column.name) for column in self.columns]
        named = frozenset(place for place, role in enumerate(roles) if role in _OF_USERS)
        if any(roles[place] is Role.USER or self.columns[place].listed for place in named):
            return named
        subject = subject_of(self.name)
        bare = frozenset(place for place, role in enumerate(roles) if role is Role.ID)
        if bare or subject is Role.ITEM:
            return named if subject in (Role.ITEM, Role.MEASURE) else named | bare
        return named | frozenset({0} if roles and roles[0] is Role.UNKNOWN else ())

    @property
    def names_users(self) -> bool:
        """Whether a column names users, so that each row belongs to one."""
        return self.owned or any(role_of(column.name) in (Role.USER, Role.ID) for column in self.columns)

    @property
    def item_columns(self) -> list[int]:
        """The columns that hold item ids: those named like items, else all unknown ones."""
        roles = [role_of(column.name) for column in self.columns]
        named = [place for place, role in enumerate(roles) if role is Role.ITEM]
        return named or [place for place, role in enumerate(roles) if role is Role.UNKNOWN]

    def described(self, column: int) -> str:
        """Describe a column in words."""
        name = self.columns[column].name
        words = f"{self.part} {column + 1 if name is None else name}"
        return f"{self.place}, {words}" if self.place else words


Read = Callable[[], Iterable[Table]]
"""Reads a table from its beginning, as tables of some rows each with the same columns."""


def search_table(file: File, table: Table) -> None:
    """Search a table for everything."""
    search_parts(file, lambda: (table,))


def search_parts(file: File, read: Read) -> None:
    """Search a table that is read in parts for everything."""
    search_in_rows(file, read)
    search_values(file, read)


def search_in_rows(file: File, read: Read) -> None:
    """Search a table for what stands in one row."""
    noted = False
    for table in read():
        if not noted and file.wanted.long_numbers and any(len(column.blobs()) for column in table.columns):
            # A longer number anywhere in the table explains a hit among bytes.
            for part in read():
                _note_numbers(file, part)
            noted = True
        search_fields(file, table, noted)
        search_pairs(file, table)


def search_fields(file: File, table: Table, noted: bool = False) -> None:
    """Search the fields of a table for ids and texts, each column by itself."""
    # What explains a hit must be known before any hit is judged.
    if not noted:
        _note_numbers(file, table)
    for place, column in enumerate(table.columns):
        described, is_user = table.described(place), place in table.user_columns
        if is_user:
            _compare_users(file, column, described)
        elif file.wanted.long_numbers and role_of(column.name) is not Role.MEASURE:
            compare_numbers(file, column.with_number(file.wanted.number_values), described)
        if role_of(column.name) is Role.ITEM and file.wanted.own_items:
            _compare_items(file, column, described)
        compared = (file.wanted.id_values,) if is_user else ()
        if place and file.is_of_items:
            compared = (_compare_declared(file, column, described, is_user),)
        _search_cells(file, column, described, compared)


def _note_numbers(file: File, table: Table) -> None:
    if file.wanted.long_numbers:
        for column in table.columns:
            file.evidence.note_numbers(column.texts())


def search_column_names(file: File, table: Table) -> None:
    """Search the names of columns, which are ids if a table has a column for each user."""
    known = [column.name for column in table.columns if column.name is not None]
    for name in known:
        if role_of(name) is Role.UNKNOWN and not table.names_users:
            file.compare_text(name, "the name of a column")
    file.search_texts("\n".join(known).encode(), "the name of a column")


def _compare_users(file: File, column: Column, place: str) -> None:
    # Under a plural, lists and texts are ids, but a number is a count.
    counts = role_of(column.name) is Role.USERS and not column.listed
    values = file.wanted.id_values
    texts = column.with_text(values)
    found = {text for text in texts if not text.isdigit()} if counts else texts | column.with_number(values)
    if found:
        file.found(place, "id", found)


def _compare_items(file: File, column: Column, place: str) -> None:
    values = file.wanted.item_values
    found = column.with_text(values) | column.with_number(values)
    if found:
        file.found(place, "interactions", found)


def _compare_declared(file: File, column: Column, place: str, is_user: bool) -> Values:
    """Compare each value that somebody declared of items with ids, which it returns: texts, their parts, and numbers.

    A number of fewer than 8 digits can't be told from a price or a count, nor an item's id from an item, unless the
    column is named like a user.
    """
    of_users = is_user and role_of(column.name) is not Role.USERS
    values = file.wanted.id_values if of_users else file.wanted.telling_values
    parts = column.texts().between(file.vocabulary.item_separator)
    found = column.with_text(values) | values.chosen(values.in_cells(parts))
    for number in _declared_numbers(file, column):
        if of_users or len(number.lstrip("-")) >= SHORTEST:
            found |= file.wanted.whole_numbers[number]
    if not of_users:
        found = file.evidence.not_items(found)
    if found:
        file.found(place, "id", found)
    return values


def _declared_numbers(file: File, column: Column) -> frozenset[str]:
    """Return the searched whole numbers in a column of numbers of 8 bytes."""
    kind = file.vocabulary.item_numbers.get((column.name or "").rpartition(":")[2])
    if kind is None:
        return frozenset()
    values, width = file.wanted.whole_values, np.dtype(kind).itemsize
    cells = np.concatenate([part.of_width(width) for part in (column.texts(), column.blobs())])
    return values.chosen(values.in_numbers(pa.array(cells.view(kind))))


def compare_numbers(file: File, numbers: Collection[str], place: str) -> None:
    """Compare integers with numeric ids of 8 digits or more."""
    found = {one for one in file.wanted.long_numbers.intersection(numbers) if not file.evidence.is_ambiguous(one)}
    if found:
        file.found(place, "id", found)


def _search_cells(file: File, column: Column, place: str, compared: Collection[Values]) -> None:
    """Search inside cells, in any encoding; whole ids that were compared already are left out."""
    wanted = file.wanted
    if wanted.texts and (found := column.with_text(wanted.text_values)):
        file.found(place, "text", found)
    if wanted.long_texts.known:
        file.search_cells(column.texts(), f"{place}, inside a text", "text", *compared)
        file.search_cells(column.blobs(), f"{place}, inside bytes", "bytes")
    if wanted.personal_rows.known and len(column.blobs()):
        file.search_values(wanted.personal_rows, column.blobs().joined(b"\n"), f"{place}, inside bytes")


def search_pairs(file: File, table: Table) -> None:
    """Search for rows that pair a user who stays with an erased item."""
    wanted = file.wanted
    for users in table.user_columns if wanted.pairs else ():
        owners = table.columns[users].rows_with(wanted.pair_users)
        rows = np.flatnonzero(owners >= 0)
        for place in sorted({*table.item_columns} - table.user_columns) if len(rows) else ():
            items = table.columns[place].rows_with(wanted.pair_items)
            both = rows[items[rows] >= 0]
            pairs = {*zip(owners[both].tolist(), items[both].tolist(), strict=True)}
            if any(_is_erased(file, owner, item) for owner, item in pairs):
                file.found(table.described(users), "interactions")


def _is_erased(file: File, owner: int, item: int) -> bool:
    wanted = file.wanted
    return wanted.pair_items.texts[item] in wanted.pairs[wanted.pair_users.texts[owner]]


# Interactions and personal rows as values


def search_values(file: File, read: Read) -> None:
    """Search a table for interactions and personal rows without an id."""
    wanted = file.wanted
    if not (wanted.runs.parts or wanted.shortest_row):
        return
    items = _item_places(file, read)
    if items is None and not wanted.shortest_row:
        return
    numbers = _Tails(wanted.overlap)
    for table in read():
        columns = [column.floats() for column in table.columns]
        joined = {place: numbers.joined(place, one) for place, one in enumerate(columns) if one is not None}
        if items is not None:
            _search_runs(file, table, joined, {place: _items_of(file, table, place, numbers) for place in items})
        if wanted.shortest_row:
            _search_personal_rows(file, table, joined)


@dataclass(eq=False)
class _Tails:
    """The last rows of each column in the part before, so that values across the border of two parts are found."""

    size: int
    kept: dict[int | str, NDArray[Any]] = field(default_factory=dict)

    def joined(self, name: int | str, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values with the last ones before them."""
        before = self.kept.get(name)
        whole = values if before is None else np.concatenate([before, values])
        self.kept[name] = whole[len(whole) - min(self.size, len(whole)) :]
        return whole


def _item_places(file: File, read: Read) -> list[int] | None:
    """Return the columns with items of a person; None if rows belong to users, so that no runs are searched."""
    runs, found, size = file.wanted.runs, dict[int, frozenset[str]](), 0
    if not runs.parts:
        return None
    for table in read():
        if not table.columns or table.names_users:
            return None
        size += len(table.columns[0])
        for place, column in enumerate(table.columns):
            if role_of(column.name) is Role.ITEM or place == 0:
                here = column.with_text(runs.item_values) | column.with_number(runs.item_values)
                found[place] = found.get(place, frozenset()) | here
    places = [place for place, held in found.items() if len(held) >= RUN]
    of_users = size and table.user_columns and len(table.columns) > 1
    return None if size < RUN or (of_users and not places) else places


def _items_of(file: File, table: Table, place: int, tails: _Tails) -> Places:
    return tails.joined(f"items {place}", table.columns[place].rows_with(file.wanted.runs.item_values))


def _search_runs(file: File, table: Table, numbers: Mapping[int, Floats], items: Mapping[int, Places]) -> None:
    """Search rows without user ids for a person's items with ratings, and for their times."""
    runs = file.wanted.runs
    for place, held in items.items():
        if any(runs.in_ratings(held, floats) for other, floats in numbers.items() if other != place):
            file.found(table.described(place), "interactions")
    for place, floats in numbers.items():
        if len(runs.times) and runs.in_times(floats):
            file.found(table.described(place), "interactions")


def _search_personal_rows(file: File, table: Table, numbers: Mapping[int, Floats]) -> None:
    """Search for a personal row along a column, as lists are stored, and along a row."""
    shortest = file.wanted.shortest_row
    columns = [
        (place, floats) for place, floats in numbers.items() if role_of(table.columns[place].name) is not Role.MEASURE
    ]
    for place, floats in columns:
        if len(floats) >= shortest:
            _search_numbers(file, floats, table.described(place))
    if len(columns) >= shortest:
        along = np.stack([floats for _, floats in columns], axis=1)
        _search_numbers(file, along, table.place or "its rows")


def _search_numbers(file: File, numbers: Floats, place: str) -> None:
    file.search_values(file.wanted.single_rows, single(numbers).tobytes(), place)
