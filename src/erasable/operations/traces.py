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
    """Add the names of checkpoints and the items that go; leave out a row that stays as it was."""
    rows_of = _personal_rows(checkpoints, after)
    left = frozenset(user for group in after.knowledge.groups for user in group.users)
    kept = [
        trace.model_copy(update={"personal": ()})
        if trace.user in left and _written(rows_of(trace.user)) == trace.personal
        else trace
        for trace in traces
    ]
    gone = _names_that_go(before, after)
    items = {*before.knowledge.items}.difference(after.knowledge.items, after.knowledge.kept_items or ())
    told = {"texts": tuple(sorted(gone)), "own_items": tuple(sorted(items))}
    return (kept[0].model_copy(update=told), *kept[1:]) if kept else ()


def _names_that_go(before: State, after: State) -> set[str]:
    """Return the names of checkpoints that no stage has any more, also those that an earlier release gave them."""
    stay = {link.fingerprint for link in after.chain}
    go = [link.fingerprint not in stay for link in before.chain]
    former = [link.fingerprint for place, link in enumerate(before.recorded) if place >= len(go) or go[place]]
    return {link.fingerprint for link in before.chain} - stay | {*former}


def target_of(trace: Trace) -> Target:
    """Return what to search for."""
    users = pa.array([trace.user] * len(trace.rows), pa.string())
    items = pa.array([item for item, _, _ in trace.rows], pa.string())
    times = [math.nan if time is None else time for _, _, time in trace.rows]
    rows, _ = Interactions.from_columns(users, items, [rating for _, rating, _ in trace.rows], times)
    personal = (np.frombuffer(bytes.fromhex(content), dtype=kind) for kind, content in trace.personal)
    return Target(trace.user, trace.items, rows, tuple(personal), trace.texts, trace.own_items)


def held_ids(knowledge: Knowledge, pending: Pending) -> Held:
    """Return the ids that a workspace holds: in its data, and in requests that were accepted."""
    kept = () if knowledge.kept_items is None else (Ids.of(sorted(knowledge.kept_items)),)
    users = (*(group.users for group in knowledge.groups), knowledge.held_out.users, Ids.of(sorted(pending.users)))
    return Held(users, (knowledge.items, *kept), settings=tuple(knowledge.config.learner.settings.model_dump()))


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
    """Return what finds the rows of a user that a stage trained; each checkpoint is read once."""

    @cache
    def rows_at(position: int) -> Arrays:
        return state.trained_rows(checkpoints, position)

    def find(user: str) -> tuple[NDArray[Any], ...]:
        position, row = state.knowledge.find(user)
        return tuple(array[row] for array in rows_at(position).values())

    return find


def _written(rows: Iterable[NDArray[Any]]) -> tuple[WrittenRow, ...]:
    return tuple((row.dtype.str, row.tobytes().hex()) for row in rows)
