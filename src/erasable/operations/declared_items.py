"""Declared items: attributes to filter by, and items that are hidden; declared by the owner, and about nobody.

They reach no stage and no score, so that hiding an item trains nothing (docs/decisions/0043-hidden-items.md). What is
learned from them as features is a part of the dataset (docs/decisions/0049-item-features.md).
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from erasable.data.ids import Ids
from erasable.data.item_attributes import ITEM, read_attributes
from erasable.data.where import matching
from erasable.errors import DataRefused, Said, UnknownItem, WrongUse
from erasable.operations.storage import Session, Storage
from erasable.proof.log import add_record
from erasable.workspace.declared_items import HIDDEN, encode_declared
from erasable.workspace.manifest import Documents, Stamp

_MOST_FILTERS = 100


class DeclaredItems:
    """Which items are hidden, and the attributes of items."""

    def __init__(self, table: pa.Table | None = None) -> None:
        self._given = table
        self._found: dict[str, frozenset[str]] = {}

    @cached_property
    def table(self) -> pa.Table:
        """The items that are declared, as they are stored."""
        # Not before it is needed: Arrow must not be used while modules are imported.
        nothing = {ITEM: pa.array([], pa.string()), HIDDEN: pa.array([], pa.bool_())}
        return pa.table(nothing) if self._given is None else self._given

    @cached_property
    def hidden(self) -> frozenset[str]:
        """The items that are recommended to nobody."""
        if self._given is None:
            return frozenset()
        return frozenset(self.table.filter(pc.field(HIDDEN))[ITEM].to_pylist())

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(name for name in self.table.column_names if name not in (ITEM, HIDDEN))

    def where(self, text: str) -> frozenset[str]:
        """Return the items for which a filter holds; it is worked out once."""
        if not isinstance(text, str):
            raise WrongUse(f'where: {text!r} is no text: write it like "price < 20"')
        if not self.attributes:
            raise WrongUse(
                "where: no attributes of items are declared: give them with ",
                Said("set_items(TABLE)", "erasable items DIR --set FILE"),
            )
        found = self._found.get(text)
        if found is None:
            if len(self._found) >= _MOST_FILTERS:
                self._found.clear()  # perhaps while another thread reads
            found = frozenset(matching(self.table.drop_columns([HIDDEN]), text)[ITEM].to_pylist())
            self._found[text] = found
        return found

    def with_attributes(self, table: pa.Table) -> "DeclaredItems":
        """Return other attributes for the same hidden items."""
        hidden, ids = self.hidden, table[ITEM].to_pylist()
        flags = pa.array([one in hidden for one in ids], pa.bool_())
        new = pa.table({ITEM: table[ITEM], HIDDEN: flags, **{name: table[name] for name in table.column_names[1:]}})
        return DeclaredItems(_with_rows(new, hidden.difference(ids)))

    def hiding(self, hide: Collection[str], show: Collection[str]) -> "DeclaredItems":
        """Return the same with some more items hidden, and some shown again."""
        hidden, ids = (self.hidden | {*hide}) - {*show}, self.table[ITEM].to_pylist()
        flags = pa.array([one in hidden for one in ids], pa.bool_())
        table = self.table.set_column(1, HIDDEN, flags)
        if not self.attributes:
            table = table.filter(pc.field(HIDDEN))
        return DeclaredItems(_with_rows(table, hidden.difference(ids)))

    def encoded(self) -> bytes:
        """Return the bytes of the file; none if nothing is declared."""
        return encode_declared(self.table.sort_by(ITEM)) if self.table.num_rows else b""


def _with_rows(table: pa.Table, hidden: Iterable[str]) -> pa.Table:
    """Return a table with hidden items that it does not have, without attributes."""
    rows = pa.table({ITEM: pa.array(sorted(hidden), pa.string())})
    rows = rows.append_column(HIDDEN, pa.array([True] * rows.num_rows, pa.bool_()))
    return pa.concat_tables([table, rows], promote_options="default").combine_chunks()


NOTHING_DECLARED = DeclaredItems()


@dataclass(frozen=True)
class ItemFacts:
    """What is declared about items."""

    items: int
    """How many there are in the catalogue."""
    declared: int
    """How many have attributes."""
    attributes: tuple[str, ...]
    hidden: tuple[str, ...]
    unknown: int
    """How many with attributes the catalogue does not have: they can't be recommended yet."""


def items_of(storage: Storage) -> ItemFacts:
    """Return what is declared about items."""
    with storage.reading() as session:
        return item_facts(session.state().dataset.items, DeclaredItems(session.declared_items()))


def read_declared(source: Any, item: str | None = None) -> pa.Table:  # noqa: ANN401 - a path or any table
    """Read attributes of items from a file or table."""
    table = read_attributes(source, item)
    if HIDDEN in table.column_names:
        raise DataRefused(f"the column {HIDDEN} has a name that is used already: rename it")
    if len(table.column_names) == 1:
        raise DataRefused("there is no attribute: give a table with further columns beside the item")
    return table


def also_declaring(documents: Documents, held: pa.Table | None, table: pa.Table | None, stamp: Stamp) -> Documents:
    """Return the documents of a new version that also replaces the attributes of items, if a table is given."""
    if table is None:
        return documents
    log = add_record(documents.log, "items", {"version": stamp.version})
    return replace(documents, log=log, declared_items=DeclaredItems(held).with_attributes(table).encoded())


def declare_held(session: Session, table: pa.Table | None) -> None:
    """Replace the attributes of items in a session that is open for writing, if a table is given."""
    if table is not None:
        _declare(session, DeclaredItems(session.declared_items()).with_attributes(table))


def declare_items(
    storage: Storage, hide: Collection[str] = (), show: Collection[str] = (), table: pa.Table | None = None
) -> ItemFacts:
    """Replace the attributes if a table is given, then hide items and show others again, in one change.

    Nothing is trained. What is declared already is not written or recorded again.
    """
    both = sorted({*hide} & {*show})
    if both:
        raise WrongUse(f"the item {both[0]!r} is to be hidden and shown: name it once")
    with storage.writing() as session:
        before, items = DeclaredItems(session.declared_items()), session.state().dataset.items
        after = before if table is None else before.with_attributes(table)
        named = sorted({*hide, *show}.difference(before.table[ITEM].to_pylist(), after.table[ITEM].to_pylist()))
        missing = [one for one, at in zip(named, items.positions(named), strict=True) if at < 0]
        if missing:
            raise UnknownItem(f"the catalogue has no item {missing[0]!r}: check the id, exactly as in the data")
        after = after.hiding(hide, show)
        if not after.table.sort_by(ITEM).equals(before.table.sort_by(ITEM)):
            _declare(session, after)
        return item_facts(items, after)


def _declare(session: Session, declared: DeclaredItems) -> None:
    documents = session.documents()
    log = add_record(documents.log, "items", {"version": session.stamp.version})
    session.amend(replace(documents, log=log, declared_items=declared.encoded()))


def item_facts(items: Ids, declared: DeclaredItems) -> ItemFacts:
    """Return what is declared about the items of a catalogue and others."""
    says = [declared.table[name].is_valid() for name in declared.attributes]
    described = declared.table[ITEM].filter(reduce(pc.or_, says)) if says else pa.array([], pa.string())
    unknown = int((items.positions_of(described) < 0).sum())
    return ItemFacts(len(items), len(described), declared.attributes, tuple(sorted(declared.hidden)), unknown)
