"""Building a dataset from interactions: splitting off the holdout, dividing into groups, and learning more later."""

from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.chain.buckets import Buckets, dealt
from erasable.chain.dataset import Dataset, no_interactions
from erasable.chain.matching import Difference
from erasable.data.catalogue import k_core
from erasable.data.ids import ArrowColumn, Ids, encode_ids
from erasable.data.interactions import Interactions
from erasable.errors import DataRefused, Refused
from erasable.grouping.groups import Grouping, assign_groups, independent_labels
from erasable.grouping.points import GroupingEffort
from erasable.grouping.registry import BUILT_IN
from erasable.models.machine import one_blas_thread

Positions = Mapping[str, int]


def arrange(
    interactions: Interactions,
    frame: Dataset,
    effort: GroupingEffort,
    given: Positions | None = None,
    risky: Collection[str] = (),
) -> Dataset:
    """Build a dataset with the settings of a frame: split off the holdout, divide users into groups.

    Interactions are numbered by the catalogue if one was declared. With a position given for every user, no groups are
    computed. Risky users form a last group.
    """
    config = frame.config
    training, held_out = config.splitting.of(interactions)
    if given is not None:
        grouping = _given_grouping(training, given, config.groups)
    elif any(user in training.users for user in risky):
        grouping = _grouped_apart(training, risky, frame, effort)
    else:
        grouping = _grouped(training, frame, effort)
    parts = dealt(training, held_out, grouping.positions, config.seed)
    buckets = Buckets.of(parts, interactions.items, config.seed)
    count, cohesion = len(grouping.cohesion), grouping.cohesion
    return replace(frame, buckets=buckets, group_count=count, cohesion=cohesion, counted=None).tidied()


def _grouped_apart(training: Interactions, risky: Collection[str], frame: Dataset, effort: GroupingEffort) -> Grouping:
    """Group the other users as if the risky ones were not there, and put the risky ones into one more, last group."""
    config, others = frame.config, training.without(users=risky)
    grouping = _grouped(others, frame, effort)
    positions = np.full(len(training.users), config.groups, dtype=np.int64)
    positions[training.users.positions_of(others.users.array)] = grouping.positions
    return Grouping(positions, (*grouping.cohesion, None))


def _grouped(training: Interactions, frame: Dataset, effort: GroupingEffort) -> Grouping:
    """Assign groups; BLAS is limited to one thread for other packages' groupings, ours don't depend on threads."""
    config = frame.config
    with nullcontext() if config.grouping in BUILT_IN else one_blas_thread():
        return assign_groups(training, frame.scale, config.dividing, config.seed, effort)


def regrouped(dataset: Dataset, effort: GroupingEffort) -> Dataset:
    """Compute filter, holdout and groups again, as if only this data had ever been learned.

    The filter may be applied to what it kept before: the k-core of the rest of a k-core is that of the whole.
    """
    everything = Interactions.merge([*dataset.groups, dataset.held_out])
    kept_items = dataset.kept_items
    if dataset.config.min_interactions:
        everything, kept_items = _filtered(everything, dataset.config.min_interactions)
    return arrange(everything, replace(dataset, kept_items=kept_items), effort)


def _filtered(interactions: Interactions, minimum: int) -> tuple[Interactions, frozenset[str]]:
    try:
        core = k_core(interactions, minimum)
    except DataRefused:  # nobody is left, which is no reason to refuse an erasure
        return interactions.select(np.zeros(len(interactions), dtype=bool)), frozenset()
    return core.with_items(interactions.items), frozenset(core.items)


def _given_grouping(training: Interactions, given: Positions, groups: int) -> Grouping:
    positions = np.array([given[user] for user in training.users], dtype=np.int64)
    return Grouping(positions, (None,) * max(groups, 1 + int(np.max(positions, initial=-1))))


def refuse_after_filter(dataset: Dataset) -> None:
    """Refuse more rows where a filter chose those that are held."""
    if dataset.config.min_interactions:
        raise Refused(
            "a filter was applied when this was learned and can't be applied to more: learn from all data into a new "
            "folder"
        )


def grown(dataset: Dataset, coming: Interactions, effort: GroupingEffort, risky: Collection[str] = ()) -> Dataset:
    """Return the dataset with more interactions; a declared catalogue must hold their items.

    Existing users keep their group. Where rows are solved, new users only get a row; under the strategy retrain they
    join the single group; otherwise they form a new last group. Under the policies independent and regroup they go
    where learning from scratch would put them; if they are risky, that is after all groups. Of two rows of one pair the
    later is kept, or their weights add up, as in one table.
    """
    refuse_after_filter(dataset)
    wider = dataset.over(_items(dataset, coming))
    positions = _positions(wider, coming, risky)
    held = wider.data_held_of(coming.users)
    parts = [*([held] if len(held) else []), coming]
    rows = joined_rows(parts, dataset.config.max_weight).with_items(wider.items)
    after = wider.revised(positions, rows)
    return regrouped(after, effort) if dataset.config.policy == "regroup" else after


def matched(
    dataset: Dataset, export: Interactions, found: Difference, effort: GroupingEffort, risky: Collection[str] = ()
) -> Dataset:
    """Return the dataset in which everyone who differs from an export has its rows; who is missing there is gone.

    Existing users keep their group, and new ones get theirs as in `grown`. What the difference does not call missing or
    vanished stays, and so do the times of rows if the export has none.
    """
    refuse_after_filter(dataset)
    coming = export.of_users(found.touched)
    wider = dataset.over(_items(dataset, coming))
    gone = [(user, item) for user, items in found.vanished.items() for item in items]
    held = wider.data_held_of(coming.users).without(pairs=gone)
    parts = [part for part in (held.without(pairs=_pairs(coming)), _timed_as_held(coming, held)) if len(part)]
    rows = joined_rows(parts).with_items(wider.items) if parts else no_interactions(wider.items)
    leaving = {user: wider.find(user).group for user in found.missing}
    after = wider.revised({**_positions(wider, coming, risky), **leaving}, rows)
    return regrouped(after, effort) if dataset.config.policy == "regroup" else after


def _timed_as_held(coming: Interactions, held: Interactions) -> Interactions:
    """Return rows without times with those that are held of the same pairs."""
    if coming.time is not None or held.time is None:
        return coming
    users = coming.users.positions_of(held.users.array)[held.user_index]
    items = coming.items.positions_of(held.items.array)[held.item_index]
    rows = np.flatnonzero((users >= 0) & (items >= 0))
    keys, wanted = coming.keys(), users[rows] * len(coming.items) + items[rows]
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    same, times = keys[at] == wanted, np.full(len(coming), np.nan)
    times[at[same]] = held.time[rows[same]]
    return replace(coming, time=times)


def _pairs(rows: Interactions) -> list[tuple[str, str]]:
    users, items = _texts(rows.users, rows.user_index), _texts(rows.items, rows.item_index)
    return list(zip(users.to_pylist(), items.to_pylist(), strict=True))


def _items(dataset: Dataset, coming: Interactions) -> Ids:
    """Return the declared items, or the known and the new ones."""
    if dataset.catalogue is not None:
        return dataset.catalogue.items
    return encode_ids(pa.concat_arrays([dataset.items.array, coming.items.array]))[0]


def _positions(dataset: Dataset, coming: Interactions, risky: Collection[str]) -> dict[str, int]:
    """Return the position of each incoming user's group: existing users keep theirs."""
    positions = _positions_of_new(dataset, coming, risky)
    for number, places in dataset.buckets.by_bucket(coming.users).items():
        bucket = dataset.buckets[number]
        rows = bucket.users.positions_of(coming.users.take(places).array)
        positions[places[rows >= 0]] = bucket.groups[rows[rows >= 0]]
    return dict(zip(coming.users, positions.tolist(), strict=True))


def _positions_of_new(dataset: Dataset, coming: Interactions, risky: Collection[str]) -> NDArray[np.int64]:
    config = dataset.config
    if config.grouping == "independent":
        labels = independent_labels(coming, config.groups, config.seed)
        return np.where([user in risky for user in coming.users], config.groups, labels)
    joining = 0 if config.strategy == "retrain" else dataset.group_count
    return np.full(len(coming.users), config.groups if dataset.solves_rows else joining, dtype=np.int64)


def joined_rows(parts: list[Interactions], most: int | None = None) -> Interactions:
    """Return the rows of all parts as if one table held them one after another; weights add up to `most`."""
    times = [np.full(len(part), np.nan) if part.time is None else part.time for part in parts]
    timed = any(part.time is not None for part in parts)
    joined, _ = Interactions.from_columns(
        pa.concat_arrays([_texts(part.users, part.user_index) for part in parts]),
        pa.concat_arrays([_texts(part.items, part.item_index) for part in parts]),
        np.concatenate([part.rating for part in parts]),
        np.concatenate(times) if timed else None,
        most,
    )
    return joined


def _texts(ids: Ids, index: NDArray[np.int32]) -> ArrowColumn:
    return ids.array.take(pa.array(index))
