"""Traces: what is held of a person now, to look for once they are erased."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.data import Ids, Interactions
from erasable.models import Arrays
from erasable.operations.home import Session
from erasable.proof import Accepted, Pending, Trace
from erasable.proof.residue import Held, Target
from erasable.training import CheckpointStore, Knowledge, State

WrittenRow = tuple[str, str]
"""A type and bytes in hexadecimal, as a trace holds a row."""
PersonalRows = Callable[[str], tuple[NDArray[Any], ...]]


def traces_of(pending: Pending, session: Session, state: State) -> tuple[Trace, ...]:
    """Return what is held now of what will be erased."""
    rows_of = _personal_rows(session.checkpoints, state)
    held = state.knowledge.data_of({accepted.user for accepted in pending.accepted})
    return tuple(
        Trace(
            user=accepted.user,
            items=accepted.items,
            rows=_rows(_asked_for(accepted, held.of_users([accepted.user]))),
            personal=_written(rows_of(accepted.user)),
            texts=(),
        )
        for accepted in pending.accepted
    )


def that_must_be_gone(
    traces: Sequence[Trace], checkpoints: CheckpointStore, before: State, after: State
) -> tuple[Trace, ...]:
    """Add the names of checkpoints that go; leave out rows that someone who stays has now, the person or another."""
    rows_of = _personal_rows(checkpoints, after)
    left = frozenset(user for group in after.knowledge.groups for user in group.users)
    others = _solved_to_the_same(traces, checkpoints, after)
    kept = [
        trace.model_copy(update={"personal": ()})
        if trace.user in left and _written(rows_of(trace.user)) == trace.personal
        else trace.model_copy(update={"personal": tuple(row for row in trace.personal if row not in others)})
        for trace in traces
    ]
    gone = {link.fingerprint for link in before.chain} - {link.fingerprint for link in after.chain}
    return (kept[0].model_copy(update={"texts": tuple(sorted(gone))}), *kept[1:]) if kept else ()


def target_of(trace: Trace) -> Target:
    """Return what to search for."""
    users = pa.array([trace.user] * len(trace.rows), pa.string())
    items = pa.array([item for item, _, _ in trace.rows], pa.string())
    times = [math.nan if time is None else time for _, _, time in trace.rows]
    rows, _ = Interactions.from_columns(users, items, [rating for _, rating, _ in trace.rows], times)
    personal = (np.frombuffer(bytes.fromhex(content), dtype=kind) for kind, content in trace.personal)
    return Target(trace.user, trace.items, rows, tuple(personal), trace.texts)


def held_ids(knowledge: Knowledge, pending: Pending) -> Held:
    """Return the ids that a workspace holds: in its data, and in requests that were accepted."""
    kept = () if knowledge.kept_items is None else (Ids.of(sorted(knowledge.kept_items)),)
    users = (*(group.users for group in knowledge.groups), knowledge.held_out.users, Ids.of(sorted(pending.users)))
    return Held(users, (knowledge.catalogue.items, *kept))


def _solved_to_the_same(traces: Sequence[Trace], checkpoints: CheckpointStore, after: State) -> set[WrittenRow]:
    """Return the rows that are, to the byte, those of someone who stays: what is solved from like data may be equal."""
    wanted = {row for trace in traces for row in trace.personal}
    found: set[WrittenRow] = set()
    if not wanted or not after.knowledge.solves_rows:
        return found
    firsts = [np.frombuffer(bytes.fromhex(content), kind)[0] for kind, content in wanted]
    for position, group in enumerate(after.knowledge.groups):
        for array in checkpoints.get(after.rows_link(position).fingerprint).parameters.rows.values():
            rows = array[: len(group.users)]
            found |= wanted & set(_written(rows[np.isin(rows[:, 0], firsts)]))
    return found


def _asked_for(accepted: Accepted, held: Interactions) -> Interactions:
    if accepted.items is None:
        return held
    others = {held.items[number] for number in held.item_index.tolist()} - {*accepted.items}
    return held.without(pairs=[(accepted.user, item) for item in others])


def _rows(held: Interactions) -> tuple[tuple[str, float, float | None], ...]:
    times = [math.nan] * len(held) if held.time is None else held.time.tolist()
    items = (held.items[number] for number in held.item_index.tolist())
    rows = zip(items, held.rating.tolist(), times, strict=True)
    return tuple((item, rating, None if math.isnan(time) else time) for item, rating, time in rows)


def _personal_rows(checkpoints: CheckpointStore, state: State) -> PersonalRows:
    """Return what finds the personal rows of a user; each checkpoint is read once."""

    @cache
    def rows_at(position: int) -> Arrays:
        return checkpoints.get(state.rows_link(position).fingerprint).parameters.rows

    def find(user: str) -> tuple[NDArray[Any], ...]:
        position, row = state.knowledge.find(user)
        return tuple(array[row] for array in rows_at(position).values())

    return find


def _written(rows: Iterable[NDArray[Any]]) -> tuple[WrittenRow, ...]:
    return tuple((row.dtype.str, row.tobytes().hex()) for row in rows)
