"""Searching the tables of any decoded file, and which of their columns hold user ids.

User ids are in the columns named like a user (`role_of`). Without any, in a column named `id`; else in the first one,
if its name is unknown or missing. A table or file named after items has neither of the last two; in one named after
requests, groups or other measures, `id` does not mean users.

Ids are searched in fields, texts in cells, and interactions and personal rows as values.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from erasable.scan._columns import Column, Role, role_of, subject_of
from erasable.scan._evidence import File
from erasable.scan._target import Floats
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


def search_table(file: File, table: Table) -> None:
    """Search a table for everything."""
    search_fields(file, table)
    search_pairs(file, table)
    search_values(file, table)


def search_fields(file: File, table: Table) -> None:
    """Search the fields of a table for ids and texts, each column by itself."""
    # What explains a hit must be known before any hit is judged.
    if file.wanted.long_numbers:
        file.evidence.note_numbers(text for column in table.columns for text in column.texts())
    for place, column in enumerate(table.columns):
        if place in table.user_columns:
            _compare_users(file, column, table.described(place))
        elif file.wanted.long_numbers:
            numbers = set() if role_of(column.name) is Role.MEASURE else column.whole_numbers()
            compare_numbers(file, numbers, table.described(place))
        if role_of(column.name) is Role.ITEM and file.wanted.own_items:
            _compare_items(file, column, table.described(place))
        _search_cells(file, column, table.described(place), is_user=place in table.user_columns)


def search_values(file: File, table: Table) -> None:
    """Search a table for interactions and personal rows without an id."""
    _search_runs(file, table)
    _search_personal_rows(file, table)


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
    texts = column.texts()
    found = {text for text in texts if not text.isdigit()} if counts else texts | column.whole_numbers()
    if not file.wanted.ids.isdisjoint(found):
        file.found(place, "id", file.wanted.ids & found)


def _compare_items(file: File, column: Column, place: str) -> None:
    found = file.wanted.own_items & (column.texts() | column.whole_numbers())
    if found:
        file.found(place, "interactions", found)


def compare_numbers(file: File, numbers: Collection[str], place: str) -> None:
    """Compare integers with numeric ids of 8 digits or more."""
    found = (file.wanted.long_numbers - file.evidence.ambiguous).intersection(numbers)
    if found:
        file.found(place, "id", found)


def _search_cells(file: File, column: Column, place: str, is_user: bool) -> None:
    """Search inside cells, in any encoding; whole user ids were compared already."""
    if file.wanted.texts and not file.wanted.texts.isdisjoint(column.texts()):
        file.found(place, "text", file.wanted.texts & column.texts())
    if file.wanted.long_texts.known:
        cells = column.texts() - file.wanted.ids if is_user else column.texts()
        file.search_texts("\n".join(sorted(cells)).encode(), f"{place}, inside a text")
        file.search_texts(b"\n".join(column.blobs()), f"{place}, inside bytes", "bytes")
    if file.wanted.personal_rows.known:
        file.search_values(file.wanted.personal_rows, b"\n".join(column.blobs()), f"{place}, inside bytes")


def search_pairs(file: File, table: Table) -> None:
    """Search for rows that pair a user who stays with an erased item."""
    pairs = file.wanted.pairs
    for users in table.user_columns if pairs else ():
        owners = [(row, user) for row, user in enumerate(table.columns[users].ids()) if user in pairs]
        places = set(table.item_columns) - table.user_columns if owners else ()
        items = [table.columns[place].ids() for place in places]
        if any(ids[row] in pairs[str(user)] for ids in items for row, user in owners):
            file.found(table.described(users), "interactions")


def _search_runs(file: File, table: Table) -> None:
    """Search rows without user ids for a person's items with ratings, and for their times."""
    runs = file.wanted.runs
    if not runs.parts or not table.columns or table.names_users or len(table.columns[0]) < RUN:
        return
    items = [place for place in range(len(table.columns)) if _holds_items(table, place, runs.items)]
    if table.user_columns and len(table.columns) > 1 and not items:
        return
    numbers = {place: floats for place, column in enumerate(table.columns) if (floats := column.floats()) is not None}
    for place in items:
        ids = table.columns[place].ids()
        if any(runs.in_ratings(ids, floats) for other, floats in numbers.items() if other != place):
            file.found(table.described(place), "interactions")
    for place, floats in numbers.items():
        if len(runs.times) and runs.in_times(floats):
            file.found(table.described(place), "interactions")


def _holds_items(table: Table, place: int, items: frozenset[str]) -> bool:
    column = table.columns[place]
    if role_of(column.name) is not Role.ITEM and place > 0:
        return False
    return len(items & (column.texts() | column.whole_numbers())) >= RUN


def _search_personal_rows(file: File, table: Table) -> None:
    """Search for a personal row along a column, as lists are stored, and along a row."""
    shortest = file.wanted.shortest_row
    if not shortest:
        return
    columns = [
        (place, floats)
        for place, column in enumerate(table.columns)
        if role_of(column.name) is not Role.MEASURE and (floats := column.floats()) is not None
    ]
    for place, floats in columns:
        if len(floats) >= shortest:
            _search_numbers(file, floats, table.described(place))
    if len(columns) >= shortest:
        along = np.stack([floats for _, floats in columns], axis=1)
        _search_numbers(file, along, table.place or "its rows")


def _search_numbers(file: File, numbers: Floats, place: str) -> None:
    file.search_values(file.wanted.single_rows, single(numbers).tobytes(), place)
