"""Tables of any decoded file, and which of their columns hold ids of users.

Ids of users stand in the columns that are named like a user (`field_names`). Without any, in a column named `id`; else
in the first column, if nobody knows what its name means or it has none. A table or file that is called after items has
neither of the last two, one that is called after requests, groups or other measures no `id` of users.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from erasable.proof.residue.columns import Column
from erasable.proof.residue.field_names import Role, role_of, subject_of

_OF_USERS = (Role.USER, Role.USERS)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length."""

    place: str
    """Where it stands in its file, in words; empty if it is the file."""
    name: str | None
    """What it is called: the table, or the file."""
    columns: Sequence[Column]
    part: str = "column"
    """What of each column this is: the column, its statistics, its dictionary."""
    owned: bool = False
    """Whether it stands below somebody's name, whose it is."""

    @cached_property
    def user_columns(self) -> frozenset[int]:
        """Which columns hold ids of users."""
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
        """Whether a column is named like a user, so that each row belongs to somebody."""
        return self.owned or any(role_of(column.name) in (Role.USER, Role.ID) for column in self.columns)

    @property
    def item_columns(self) -> list[int]:
        """Which columns hold ids of items: those that are named so, else all that nobody knows the meaning of."""
        roles = [role_of(column.name) for column in self.columns]
        named = [place for place, role in enumerate(roles) if role is Role.ITEM]
        return named or [place for place, role in enumerate(roles) if role is Role.UNKNOWN]

    def described(self, column: int) -> str:
        """Say which column is meant."""
        name = self.columns[column].name
        words = f"{self.part} {column + 1 if name is None else name}"
        return f"{self.place}, {words}" if self.place else words
