"""Traces: what is held of a person now, to look for once they are erased."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.data import Interactions
from erasable.models import Arrays
from erasable.operations.home import Session
from erasable.proof import Accepted, Pending, Trace
from erasable.proof.residue import Target
from erasable.training import CheckpointStore, State

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
    """Add the names of checkpoints that go; leave out the row of someone who stays and whose row did not change."""
    rows_of = _personal_rows(checkpoints, after)
    left = frozenset(user for group in after.knowledge.groups for user in group.users)
    kept = [
        trace.model_copy(update={"personal": ()})
        if trace.user in left and _written(rows_of(trace.user)) == trace.personal
        else trace
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


def _written(rows: Sequence[NDArray[Any]]) -> tuple[tuple[str, str], ...]:
    return tuple((row.dtype.str, row.tobytes().hex()) for row in rows)
