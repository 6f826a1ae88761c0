"""Traces: what is held of a person now, and what to look for once they are erased."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.data import Ids, Interactions
from erasable.models import Arrays
from erasable.operations.home import Session
from erasable.proof import Erased, Sought
from erasable.proof.residue import Held, Target
from erasable.requests import Request
from erasable.requests.codes import salt_of_code
from erasable.training import CheckpointStore, Knowledge, State

WrittenRow = tuple[str, str]
"""A type and bytes in hexadecimal, as a trace holds a row."""
PersonalRows = Callable[[str], tuple[NDArray[Any], ...]]


def held_of(requests: Sequence[Request], session: Session, state: State) -> list[Target]:
    """Return what is held now of what these requests are about."""
    rows_of = _personal_rows(session.checkpoints, state)
    held = state.knowledge.data_of({request.user for request in requests})
    places = held.users.positions([request.user for request in requests])
    return [
        Target(one.user, one.items, _asked_for(one, held.at(place[place >= 0])), rows_of(one.user))
        for one, place in zip(requests, places[:, np.newaxis], strict=True)
    ]


def sought_after(
    requests: Sequence[Request], held: Sequence[Target], checkpoints: CheckpointStore, after: State
) -> tuple[Sought, ...]:
    """Return what to look for now that it is gone; a personal row that stays as it was is not among it."""
    rows_of = _personal_rows(checkpoints, after)
    left = frozenset(user for group in after.knowledge.groups for user in group.users)

    def stays(target: Target) -> bool:
        return _written(rows_of(target.user)) == _written(target.personal)

    return tuple(
        Sought(
            request_id=request.request_id,
            received=request.received.isoformat(timespec="seconds"),
            user=request.user,
            items=request.items,
            salt=salt_of_code(request.receipt_code or ""),
            reference=request.reference,
            rows=() if target.rows is None else _rows(target.rows),
            personal=() if request.user in left and stays(target) else _written(target.personal),
        )
        for request, target in zip(requests, held, strict=True)
    )


def names_that_go(before: State, after: State) -> tuple[str, ...]:
    """Return the names of checkpoints that no stage has any more, also those that an earlier release gave them."""
    stay = {link.fingerprint for link in after.chain}
    go = [link.fingerprint not in stay for link in before.chain]
    former = [link.fingerprint for place, link in enumerate(before.recorded) if place >= len(go) or go[place]]
    return tuple(sorted({link.fingerprint for link in before.chain} - stay | {*former}))


def items_that_go(before: Knowledge, after: Knowledge) -> tuple[str, ...]:
    """Return the items that nobody has any more."""
    return tuple(sorted({*before.items}.difference(after.items, after.kept_items or ())))


def targets_of(erased: Erased) -> list[Target]:
    """Return what to search for; what goes with all of them together stands with the first."""
    found = [_target(one) for one in erased.people]
    return [replace(one, texts=erased.texts, own_items=erased.own_items) for one in found[:1]] + found[1:]


def _target(sought: Sought) -> Target:
    users = pa.array([sought.user] * len(sought.rows), pa.string())
    items = pa.array([item for item, _, _ in sought.rows], pa.string())
    times = [math.nan if time is None else time for _, _, time in sought.rows]
    rows, _ = Interactions.from_columns(users, items, [rating for _, rating, _ in sought.rows], times)
    personal = (np.frombuffer(bytes.fromhex(content), dtype=kind) for kind, content in sought.personal)
    return Target(sought.user, sought.items, rows, tuple(personal))


def held_ids(knowledge: Knowledge, asked: Collection[str] = ()) -> Held:
    """Return the ids that a workspace holds: in its data, and of people who have asked."""
    kept = () if knowledge.kept_items is None else (Ids.of(sorted(knowledge.kept_items)),)
    users = (*(group.users for group in knowledge.groups), knowledge.held_out.users, Ids.of(sorted(asked)))
    return Held(users, (knowledge.items, *kept), settings=tuple(knowledge.config.learner.settings.model_dump()))


def _asked_for(request: Request, held: Interactions) -> Interactions:
    if request.items is None:
        return held
    others = {held.items[number] for number in held.item_index.tolist()} - {*request.items}
    return held.without(pairs=[(request.user, item) for item in others])


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
