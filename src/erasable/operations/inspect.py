"""Look at a recommender: how good it is, what it holds about a person, its groups, its state."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from erasable.data import (
    ColumnNames,
    Interactions,
    RatingScale,
    RememberedColumns,
    TimeForm,
    column_option,
    read_interactions,
    text_of_time,
)
from erasable.errors import Refused, Said, WorkspaceError, option
from erasable.evaluation import Protocol, Utility, measure
from erasable.evaluation.rated_metrics import LIKED
from erasable.grouping import BY_VECTORS, Cohesion, cohesion_between_rows
from erasable.operations.do_not_learn import list_facts
from erasable.operations.home import Home, Session
from erasable.operations.meanwhile import not_served
from erasable.operations.near import telling_near_ids
from erasable.operations.prepare import ANY_COLUMNS
from erasable.operations.recovery import left_to_finish
from erasable.operations.suppressed import pending_people, queue_fault, suppressed_people
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import head_of, read_search, signing_public_key
from erasable.store import Stamp
from erasable.training import Knowledge


@dataclass(frozen=True)
class GroupFacts:
    """One group of the chain, in its order."""

    position: int
    """From 1: the group that is trained first."""
    users: int
    interactions: int
    cohesion: float | None
    """The paper's ρ; none if it was dropped with someone who was forgotten."""
    cohesion_error: float | None
    """Its standard error; 0 if all pairs of users were counted."""


@dataclass(frozen=True)
class HeldInteraction:
    """One interaction that is held about a person."""

    item_id: str | int
    rating: float
    time: float | str | None
    """In the form that it came in: a number, or ISO 8601."""
    held_out: bool


@dataclass(frozen=True)
class Holding:
    """Everything that is held about a person."""

    user_id: str | int
    group: int
    """The position of the person's group, from 1."""
    interactions: tuple[HeldInteraction, ...]
    personal_rows: dict[str, list[float]]
    """As a stage trained them; rows that are solved when they are needed are not held."""
    suppressed: bool | None = None
    """Whether the person has asked to be erased, and so gets no recommendations; none if that can't be read."""


def evaluate(
    home: Home,
    test: Any = None,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    columns: ColumnNames = ANY_COLUMNS,
    work: Work = QUIET_WORK,
    protocol: Protocol = "whole-catalogue",
) -> Utility:
    """Measure recommendations on the holdout, or on a table or file; docs/protocols.md says by what rule.

    A table is read by the columns that were learned from, where it has them and no others are named.
    """
    with home.reading() as session:
        state = session.state()
        if test is not None:
            columns = RememberedColumns(**columns.given(), remembered=dict(session.papers().preferences.columns))
            held_out = _test_set(test, columns, state.knowledge.scale if protocol == "held-out-only" else None)
        elif len(state.knowledge.held_out):
            held_out = state.knowledge.held_out
        else:
            test_set = Said("evaluate(TABLE)", "--test FILE")
            raise Refused("nothing was held out: learn with ", option("holdout", 0.1), ", or give ", test_set)
        with work.reporter.track("evaluating"):
            return measure(state, session.checkpoints, held_out, work.threads, protocol)


def _test_set(source: Any, columns: ColumnNames, scale: RatingScale | None) -> Interactions:  # noqa: ANN401
    """Read a test set; with a scale its ratings matter, so they must lie on it and one of them must be high."""
    found = read_interactions(source, columns, scale, fewest_users=1).interactions
    if scale is not None and np.max(found.rating) < LIKED * scale.high:
        place = source if isinstance(source, str | Path) else "the table"
        raise Refused(
            f"no rating in {place} reaches 4/5 of {scale.high:g}, so there is nothing to find: name the column of "
            "ratings with ",
            column_option("rating"),
            ", or take another ",
            option("protocol"),
        )
    return found


def show(home: Home, user: str) -> Holding:
    """Return everything that is held about a person (GDPR Art. 15)."""
    with home.reading() as session:
        state = session.state()
        with telling_near_ids(state.knowledge, [user]):
            position, row = state.knowledge.find(user)
        rows = state.trained_rows(session.checkpoints, position)
        held = state.knowledge.data_of([user])
        test_items = set(state.knowledge.held_out.of_users([user]).item_index.tolist())
        times = _shown_times(held, session.papers().preferences.time_kind)
        interactions = tuple(
            HeldInteraction(held.items[int(item)], float(rating), time, int(item) in test_items)
            for item, rating, time in zip(held.item_index, held.rating, times, strict=True)
        )
        personal = {name: array[row].tolist() for name, array in rows.items()}
        suppressed = _suppressed(home, session)
    return Holding(user, position + 1, interactions, personal, None if suppressed is None else user in suppressed)


def _shown_times(held: Interactions, kind: TimeForm | None) -> list[float | str | None]:
    """Return times in the form that they came in."""
    if held.time is None:
        return [None] * len(held)
    return [None if math.isnan(time) else text_of_time(float(time), kind) for time in held.time]


def groups(home: Home, work: Work = QUIET_WORK) -> list[GroupFacts]:
    """Return the groups of the chain in their order.

    Cohesion is what decided the order, if it did; else that of the present groups between rating rows, computed now.
    Of groups by vectors it is not known any more after someone was forgotten, since vectors are not kept.
    """
    with home.reading() as session:
        knowledge = session.state().knowledge
        known: Sequence[Cohesion | None] = knowledge.cohesion
        if not any(known) and knowledge.config.grouping not in BY_VECTORS:
            with work.reporter.track("cohesion"):
                known = cohesion_between_rows(knowledge.groups, knowledge.scale, knowledge.config.seed, work.threads)
        known = known or (None,) * len(knowledge.groups)
        return [
            GroupFacts(position, len(group.users), len(group), *(cohesion[:2] if cohesion else (None, None)))
            for position, (group, cohesion) in enumerate(zip(knowledge.groups, known, strict=True), start=1)
        ]


class InMemory(NamedTuple):
    """What a process that serves has in memory already: of which version, and who is not served."""

    stamp: Stamp
    knowledge: Knowledge
    suppressed: frozenset[str]


def status(home: Home, known: InMemory | None = None) -> dict[str, Any]:
    """Return what is current: sizes, settings, erasures and version; what is in memory is not read again."""
    with home.reading() as session:
        is_current, papers = known is not None and known.stamp == session.stamp, session.papers()
        knowledge = known.knowledge if known and is_current else session.state().knowledge
        config = knowledge.config
        waiting = _suppressed(home, session) if known is None else known.suppressed
        suppressed = None if waiting is None else waiting | not_served(knowledge, pending_people(session))
        return {
            "users": knowledge.users,
            "items": len(knowledge.items),
            "interactions": knowledge.interactions,
            "held_out": len(knowledge.held_out),
            "model": config.model,
            "strategy": config.strategy,
            "rows": config.rows,
            "anchors": config.anchors,
            "grouping": config.grouping,
            "policy": config.policy,
            "groups": len(knowledge.groups),
            "rating_scale": str(knowledge.scale),
            "erasures": session.erasures,
            "version": session.stamp.version,
            "pending": len(read_search(papers.pending).users if known else _left_to_finish(home, session)),
            "suppressed": None if suppressed is None else len(suppressed),
            "queue_fault": None if known else queue_fault(home),
            "records": head_of(papers.audit).number,
            "public_key": signing_public_key(papers),
            "do_not_learn": list_facts(session),
            "leftovers": list(session.leftovers),
        }


def _left_to_finish(home: Home, session: Session) -> frozenset[str]:
    """Return whose erasure is not certified, and who asked by command and is not erased; as far as that can be read."""
    try:
        return left_to_finish(home, session)
    except WorkspaceError:
        return frozenset()


def _suppressed(home: Home, session: Session) -> frozenset[str] | None:
    """Return who has asked to be erased; None if that can't be read: who only looks is not kept from the rest."""
    try:
        return suppressed_people(home, session)
    except WorkspaceError:
        return None
