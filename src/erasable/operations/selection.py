"""Which items a call may offer: only some, not others, those that the user has too; for everyone or for each user."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.data.item_lists import ItemList
from erasable.errors import Said, UnknownItem
from erasable.models.machine import ItemNumbers
from erasable.progress import Reporter
from erasable.wording import counted


@dataclass(frozen=True)
class Selection:
    """Which items a call may offer."""

    only: tuple[ItemList, ...] = ()
    """Each list narrows down what may be offered; an item that is unknown is refused."""
    available: tuple[ItemList, ...] = ()
    """The same, for stock lists: items that are unknown are passed over."""
    exclude: tuple[ItemList, ...] = ()
    """Lists of items that are not offered."""
    seen: bool = False
    """Whether items that the user has may be offered too, held-out ones included."""
    where: str | None = None
    """A filter of attributes that items must fit."""

    @property
    def lists(self) -> tuple[ItemList, ...]:
        """All lists."""
        return (*self.only, *self.available, *self.exclude)

    @cached_property
    def names_users(self) -> bool:
        """Whether some list differs from user to user."""
        return any(isinstance(one, Mapping) for one in self.lists)

    def as_facts(self) -> dict[str, Any]:
        """Return the selection as JSON can hold it."""
        lists = {name: [_written(one) for one in getattr(self, name)] for name in ("only", "available", "exclude")}
        return {**lists, "seen": self.seen, "where": self.where}

    @staticmethod
    def of_facts(facts: Mapping[str, Any]) -> "Selection":
        """Return the selection that was written so."""
        only, available, exclude = (tuple(facts[name]) for name in ("only", "available", "exclude"))
        return Selection(only, available, exclude, facts["seen"], facts["where"])


EVERYTHING = Selection()
"""Whatever the user does not have."""


def _written(items: ItemList) -> dict[str, list[str]] | list[str]:
    if isinstance(items, Mapping):
        return {user: sorted(own) for user, own in items.items()}
    return sorted(items)


class Barring:
    """The numbers of the items that a call may not offer; what holds for everyone is looked up once."""

    def __init__(
        self,
        selection: Selection,
        numbers_of: Callable[[Sequence[str]], NDArray[np.int64]],
        size: int,
        hidden: ItemNumbers,
    ) -> None:
        self.selection = selection
        self._numbers_of = numbers_of
        self._size = size
        self._hidden = hidden
        self._refuse_unknown()

    def barred_for(self, user: str) -> ItemNumbers:
        """Return the items that this user may not be offered, apart from those they have."""
        return self._barred(user) if self.selection.names_users else self._for_everyone

    @cached_property
    def _for_everyone(self) -> ItemNumbers:
        return self._barred("")

    def _barred(self, user: str) -> ItemNumbers:
        if not self.selection.lists:
            return self._hidden
        barred = np.zeros(self._size, dtype=bool)
        barred[self._hidden] = True
        for items in (*self.selection.only, *self.selection.available):
            wanted = self._known(items, user)
            if wanted is not None:
                others = np.ones(self._size, dtype=bool)
                others[wanted] = False
                barred |= others
        for items in self.selection.exclude:
            unwanted = self._known(items, user)
            if unwanted is not None:
                barred[unwanted] = True
        return np.flatnonzero(barred)

    def _known(self, items: ItemList, user: str) -> NDArray[np.int64] | None:
        """Return the numbers of a list's items that are known; None if it says nothing about the user."""
        own = items.get(user) if isinstance(items, Mapping) else items
        if own is None:
            return None
        numbers = self._numbers_of(list(own))
        return numbers[numbers >= 0]

    def tell_unknown(self, asked: Selection, reporter: Reporter) -> None:
        """Say how many items of the lists that were given are known: an id that is written otherwise limits nothing."""
        for what, lists in (("that may be recommended", asked.available), ("to leave out", asked.exclude)):
            for items in lists:
                named = {one for own in items.values() for one in own} if isinstance(items, Mapping) else {*items}
                known = int(np.count_nonzero(self._numbers_of(sorted(named)) >= 0))
                text = f"{known:,} of {counted(len(named), 'id')} {what} are in the catalogue"
                if named and not known:
                    reporter.doubt(f"{text}: check the ids, exactly as in the data")
                elif known < len(named):
                    reporter.note(text)

    def _refuse_unknown(self) -> None:
        """Refuse an item to recommend that is unknown: it may be a typing error."""
        for items in self.selection.only:
            named = sorted({one for own in items.values() for one in own} if isinstance(items, Mapping) else items)
            unknown = np.flatnonzero(self._numbers_of(named) < 0)
            if len(unknown):
                first = named[int(unknown[0])]
                raise UnknownItem(
                    f"the catalogue has no item {first!r}: check the id, exactly as in the data, or give ",
                    Said("available", "--available FILE"),
                    Said(", which passes over unknown items", ", which passes over unknown items (in HTTP: available)"),
                )
