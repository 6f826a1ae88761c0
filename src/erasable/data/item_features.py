"""Features of items: values of declared attributes, such as authors, each over the items that have it; about nobody."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from erasable.data.ids import ArrowColumn, Ids
from erasable.data.interactions import Interactions
from erasable.data.item_attributes import ITEM
from erasable.errors import DataRefused, option

SEPARATOR = "|"
"""What stands between several values of one item, such as fantasy|humour."""
MOST_ITEMS = 10_000
"""A value that more items have says too little about each, and would make too many pairs: it is left out."""


@dataclass(frozen=True, eq=False)
class ItemFeatures:
    """The columns of declared attributes that a model learns from, as texts, one row an item, by item id."""

    table: pa.Table

    @staticmethod
    def chosen(attributes: pa.Table, names: Sequence[str]) -> "ItemFeatures":
        """Choose columns of attributes, as `read_attributes` gives them, by their names."""
        columns = {}
        for name in names:
            if name == ITEM or name not in attributes.column_names:
                there = ", ".join(one for one in attributes.column_names if one != ITEM)
                raise DataRefused(
                    f"the items have no column {name!r}, only {there}: give others as ", option("features")
                )
            columns[name] = _texts(attributes[name], name)
        order = pc.sort_indices(attributes[ITEM].cast(pa.binary()))
        table = pa.table({ITEM: attributes[ITEM], **columns}).take(order)
        return ItemFeatures(table.combine_chunks())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(self.table.column_names[1:])

    @cached_property
    def items(self) -> Ids:
        """The items that are declared, by the order of their UTF-8 bytes."""
        return Ids(self.table[ITEM].combine_chunks())

    def over(self, items: Ids, weights: Mapping[str, int]) -> Interactions:
        """Return a row for each value that two or more of these items have, as if it were a person who has them.

        Ratings are the weights of the features. Only what is declared decides which values there are.
        """
        name = items.digest(), *sorted(weights.items())
        found = self._last.get(name)  # whoever leaves, the items are mostly the same
        if found is None:
            self._last.clear()  # perhaps while another thread reads
            found = self._last[name] = self._over(items, weights)
        return found

    @cached_property
    def _last(self) -> dict[tuple[object, ...], Interactions]:
        return {}

    def _over(self, items: Ids, weights: Mapping[str, int]) -> Interactions:
        places = items.positions_of(self.items.array)
        parts = [self._values(number, name, places) for number, name in enumerate(sorted(weights))]
        values = pa.concat_arrays([pa.array([], pa.string()), *(part[0] for part in parts)])
        numbers = np.concatenate([np.empty(0, np.int64), *(part[1] for part in parts)])
        each = [np.full(len(part[1]), weights[name]) for part, name in zip(parts, sorted(weights), strict=True)]
        found, _ = Interactions.from_columns(
            values, items.array.take(pa.array(numbers)), np.concatenate([np.empty(0), *each])
        )
        lengths = np.diff(found.user_starts)
        kept = (lengths > 1) & (lengths <= MOST_ITEMS)
        return found.select(kept[found.user_index]).with_items(items)

    def _values(self, number: int, name: str, places: NDArray[np.int64]) -> tuple[ArrowColumn, NDArray[np.int64]]:
        """Return each value of a feature, marked by its number, and the number of the item that has it."""
        listed = pc.split_pattern(self.table[name].combine_chunks().fill_null(""), SEPARATOR)
        owners = places[np.asarray(pc.list_parent_indices(listed))]
        values = pc.utf8_trim_whitespace(pc.list_flatten(listed))
        kept = (owners >= 0) & np.asarray(pc.greater(pc.utf8_length(values), 0).cast(pa.uint8())).astype(bool)
        marked = pc.binary_join_element_wise(str(number), values.filter(pa.array(kept)), "=")
        return marked, owners[kept]


def _texts(column: Any, name: str) -> ArrowColumn:  # noqa: ANN401 - Arrow's own
    """Return a column of texts, whole numbers or truth values as texts."""
    if not (pa.types.is_string(column.type) or pa.types.is_int64(column.type) or pa.types.is_boolean(column.type)):
        raise DataRefused(
            f"the column {name} holds {column.type}, which items rarely share: as a feature give texts or whole numbers"
        )
    return column.cast(pa.string()).combine_chunks()
