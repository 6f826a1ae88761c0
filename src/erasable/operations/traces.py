"""Traces: what is held of a person now, to look for once they are erased."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from numpy.typing import NDArray

from erasable.data import Interactions
from erasable.models import Arrays
from erasable.operations.home import Session
from erasable.proof import Accepted, Pending
from erasable.proof.residue import Target
from erasable.training import Knowledge, State


def traces_of(pending: Pending, session: Session, state: State) -> tuple[Target, ...]:
    """Return what is held now of what will be erased."""
    rows_at = _personal_rows(session, state)
    return tuple(
        Target(accepted.user, accepted.items, _asked_for(accepted, state.knowledge), rows_at(accepted.user))
        for accepted in pending.accepted
    )


def _asked_for(accepted: Accepted, knowledge: Knowledge) -> Interactions:
    held = knowledge.data_of(accepted.user)
    if accepted.items is None:
        return held
    others = knowledge.items_of(accepted.user) - {*accepted.items}
    return held.without(pairs=[(accepted.user, item) for item in others])


def _personal_rows(session: Session, state: State) -> Callable[[str], tuple[NDArray[Any], ...]]:
    """Return what finds the personal rows of a user; each checkpoint is read once."""

    @cache
    def rows_of(position: int) -> Arrays:
        return session.checkpoints.get(state.chain[position].fingerprint).parameters.rows

    def find(user: str) -> tuple[NDArray[Any], ...]:
        position, row = state.knowledge.find(user)
        return tuple(array[row].copy() for array in rows_of(position).values())

    return find


def that_must_be_gone(targets: Sequence[Target], session: Session, texts: tuple[str, ...]) -> tuple[Target, ...]:
    """Add texts to look for, and leave out the row of someone who stays, where what was erased did not change it."""
    rows_at, state = _personal_rows(session, session.state()), session.state()
    left = frozenset(user for group in state.knowledge.groups for user in group.users)
    kept = [
        replace(target, personal=()) if target.user in left and _same(rows_at(target.user), target.personal) else target
        for target in targets
    ]
    return (replace(kept[0], texts=texts), *kept[1:]) if kept else ()


def _same(rows: Sequence[NDArray[Any]], others: Sequence[NDArray[Any]]) -> bool:
    return all(one.tobytes() == other.tobytes() for one, other in zip(rows, others, strict=True))


def targets_by_id(pending: Pending) -> list[Target]:
    """Return what can be looked for when nothing but who asked is known any more."""
    return [Target(accepted.user, accepted.items) for accepted in pending.accepted]
