"""Learning goes on: more interactions of known users, and users who are new; what is known already stays as it is."""

from collections.abc import Collection

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.data import Ids, Interactions
from erasable.data.encoding import encode_ids
from erasable.data.ids import ArrowColumn
from erasable.errors import Refused
from erasable.grouping import GroupingEffort, independent_labels
from erasable.training.arrangement import regrouped
from erasable.training.state import Knowledge


def grown(knowledge: Knowledge, coming: Interactions, effort: GroupingEffort, risky: Collection[str] = ()) -> Knowledge:
    """Return the knowledge with more interactions; if a catalogue was declared it must hold their items.

    Rows of known users join their group. New users get rows only where rows are solved, join the one group that is
    trained at once, or become a new last group; under the policies independent and regroup they go where learning from
    scratch would put them, which is behind all groups if they are risky. Of two rows of one pair the later stays, as if
    they stood in one table.
    """
    if knowledge.config.min_interactions:
        raise Refused("a filter was applied when this was learned and can't be applied to more: learn again from all")
    wider = knowledge.over(_items(knowledge, coming))
    positions = _positions(wider, coming, risky)
    hit = coming.users.texts()
    held = [part.of_users(hit) for part in (*wider.groups, wider.held_out)]
    rows = _joined([*(part for part in held if len(part)), coming], wider.items)
    after = wider.revised(positions, rows)
    return regrouped(after, effort) if knowledge.config.policy == "regroup" else after


def _items(knowledge: Knowledge, coming: Interactions) -> Ids:
    """Return the declared items, or those that are there and those that come."""
    if knowledge.catalogue is not None:
        return knowledge.catalogue.items
    return encode_ids(pa.concat_arrays([knowledge.items.array, coming.items.array]))[0]


def _positions(knowledge: Knowledge, coming: Interactions, risky: Collection[str]) -> dict[str, int]:
    """Return the position of everyone's group, that of new users by the rule for them."""
    positions = _positions_of_new(knowledge, coming, risky)
    for position, group in enumerate(knowledge.groups):
        positions[group.users.positions_of(coming.users.array) >= 0] = position
    return dict(zip(coming.users, positions.tolist(), strict=True))


def _positions_of_new(knowledge: Knowledge, coming: Interactions, risky: Collection[str]) -> NDArray[np.int64]:
    config = knowledge.config
    if config.grouping == "independent":
        labels = independent_labels(coming, config.groups, config.seed)
        return np.where([user in risky for user in coming.users], config.groups, labels)
    joining = 0 if config.strategy == "retrain" else len(knowledge.groups)
    return np.full(len(coming.users), config.groups if knowledge.solves_rows else joining, dtype=np.int64)


def _joined(parts: list[Interactions], items: Ids) -> Interactions:
    """Return the rows of all parts as if they had stood one after another in one table."""
    times = [np.full(len(part), np.nan) if part.time is None else part.time for part in parts]
    timed = any(part.time is not None for part in parts)
    joined, _ = Interactions.from_columns(
        pa.concat_arrays([_texts(part.users, part.user_index) for part in parts]),
        pa.concat_arrays([_texts(part.items, part.item_index) for part in parts]),
        np.concatenate([part.rating for part in parts]),
        np.concatenate(times) if timed else None,
    )
    return joined.with_items(items)


def _texts(ids: Ids, index: NDArray[np.int32]) -> ArrowColumn:
    return ids.array.take(pa.array(index))
