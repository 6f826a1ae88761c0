"""What an attacker can measure: how well a chain knows people; what follows from it is in `membership_verdict`.

The attacker has a person's interactions and may ask for scores. Two attacks: the loss on what the person has and on as
many items that the person has not, and the rank of what the person has in the whole catalogue. Each looks in two ways:

- *as served*: with the person's own row, or the row that a newcomer starts from if there is none;
- *shared parameters*: with a row that is learned anew for everyone from the shared parameters, which are left as they
  are. Someone whose data shaped them is learned again more easily; a row that has learned nothing hardly shows it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions
from erasable.evaluation.cases import Case, cases_of, for_each_case
from erasable.evaluation.losses import USUAL_NEGATIVES, cross_entropies
from erasable.evaluation.unseen import UnseenItems
from erasable.models import Arrays, Effort, Parameters, Stage, calls, make_model
from erasable.training import (
    Checkpoint,
    CheckpointStore,
    Config,
    Knowledge,
    KnownItems,
    MemoryStore,
    Scoring,
    State,
)

ATTACKS = ("loss", "rank")
VIEWS = ("as served", "shared parameters")
RELEARNING_STEPS = 400
"""How many gradient steps a row that is learned anew gets: enough to find its place."""


class Look(NamedTuple):
    """One way to look for someone: what is measured, and with which row."""

    attack: str
    view: str


LOOKS = tuple(Look(attack, view) for view in VIEWS for attack in ATTACKS)

Familiarity: TypeAlias = NDArray[np.float64]
"""How well people are known: a row for each look, a column for each person; higher is better."""


@dataclass(frozen=True, eq=False)
class Suspects:
    """People whom the attacker asks about: their interactions, and the position of a group for each of them."""

    interactions: Interactions
    positions: NDArray[np.int64]
    """Where someone sits whom a chain does not know; it matters only under sisa."""
    seed: int
    """Decides which other items are compared and how rows are learned anew, for every chain alike."""


def familiarity(state: State, checkpoints: CheckpointStore, suspects: Suspects, threads: int) -> Familiarity:
    """Measure how well a chain knows each suspect, in every look; whether it does is not asked."""
    seated = _seated(state, suspects)
    newcomers = [_newcomers(*place) for place in _places(seated, checkpoints)]
    served = _with_own_rows(state, checkpoints, seated, newcomers)
    learn = _solved if state.knowledge.solves_rows else _trained
    relearned = [learn(*place, suspects.seed, Effort(threads)) for place in _places(seated, checkpoints)]
    dressed = [Scoring(seated, _dressed(seated, checkpoints, rows)) for rows in (served, relearned)]
    return np.concatenate([_measured(seated, scoring, suspects, threads) for scoring in dressed])


def _seated(state: State, suspects: Suspects) -> State:
    """Return the stages with the suspects in their groups and nobody else.

    A chain scores everyone with its last stage, so all sit there. Under sisa everyone sits with the own group's model.
    """
    people, last = suspects.interactions, len(state.stages) - 1
    seats = np.full(len(people.users), last)
    if state.knowledge.config.strategy == "sisa":
        seats = suspects.positions.copy()
        for position, group in enumerate(state.knowledge.groups):
            seats[group.users.positions_of(people.users.array) >= 0] = position
    of_row = seats[people.user_index]
    groups = tuple(people.select(of_row == position) for position in range(last + 1))
    config = state.knowledge.config.with_rows_of_stages()
    held = {field.name: getattr(state.knowledge, field.name) for field in fields(Knowledge)}
    return State(_Seats(**{**held, "config": config, "groups": groups}, chain=state.knowledge), state.stages)


@dataclass(frozen=True, eq=False)
class _Seats(Knowledge):
    """People in the groups of a chain; its stages know what they knew, whoever sits there."""

    chain: Knowledge | None = None

    def known(self, position: int) -> KnownItems:
        """Return the items that shared parameters know after the stage at a position."""
        return self.chain.known(position) if self.chain else super().known(position)


def _places(seated: State, checkpoints: CheckpointStore) -> Iterator[tuple[Knowledge, int, Arrays]]:
    for position, link in enumerate(seated.chain):
        yield seated.knowledge, position, checkpoints.get(link.fingerprint).parameters.shared


def _newcomers(seated: Knowledge, position: int, shared: Arrays) -> Arrays:
    """Return the rows from which newcomers start."""
    model = make_model(seated.config)
    users, catalogue = seated.groups[position].users, seated.known(position).ids
    return calls.newcomers(model, calls.prepared(model, shared), users, catalogue, seated.config.seed)


def _trained(seated: Knowledge, position: int, shared: Arrays, seed: int, effort: Effort) -> Arrays:
    """Return the rows that a stage on from the shared parameters gives."""
    group = seated.learners(position)
    stage = Stage(group, seated.scale, relearning_epochs(len(group), seated.config), seed, position)
    return calls.trained(make_model(seated.config), shared, stage, effort).rows


def _solved(seated: Knowledge, position: int, shared: Arrays, seed: int, effort: Effort) -> Arrays:
    """Return the rows that are solved under the shared parameters."""
    model = make_model(seated.config)
    stage = Stage(seated.learners(position), seated.scale, seated.config.row_epochs, seed, position)
    return calls.represented(model, calls.prepared(model, shared), stage, effort)


def relearning_epochs(interactions: int, config: Config) -> int:
    """Return how many epochs over so many interactions make the steps that a row gets.

    >>> relearning_epochs(33_000, Config(model="nmf", batch=2048)), relearning_epochs(100, Config(model="nmf"))
    (5, 400)
    """
    batch, negatives = config.setting("batch", 2048), config.setting("negatives", USUAL_NEGATIVES)
    steps = math.ceil(interactions / max(1, batch // (1 + negatives)))
    return math.ceil(RELEARNING_STEPS / max(1, steps))


def _with_own_rows(
    state: State, checkpoints: CheckpointStore, seated: State, rows: Sequence[Arrays]
) -> list[dict[str, NDArray[np.float32]]]:
    """Return the rows with those of the people whom the chain knows in their places."""
    served, scoring = (
        [{name: array.copy() for name, array in arrays.items()} for arrays in rows],
        Scoring(state, checkpoints),
    )
    for position, group in enumerate(state.knowledge.groups):
        for arrays, sitting in zip(served, seated.knowledge.groups, strict=True):
            places = group.users.positions_of(sitting.users.array)
            known = np.flatnonzero(places >= 0)
            own = scoring.rows([(position, row) for row in places[known].tolist()])
            for seat, row in zip(known.tolist(), own, strict=True):
                for name, array in arrays.items():
                    array[seat] = row[name]
    return served


def _dressed(seated: State, checkpoints: CheckpointStore, rows: Sequence[Arrays]) -> MemoryStore:
    """Return the checkpoints with these rows instead of their own."""
    store = MemoryStore()
    for link, arrays in zip(seated.chain, rows, strict=True):
        shared = checkpoints.get(link.fingerprint).parameters.shared
        store.put(Checkpoint(link.fingerprint, link.parent, Parameters(shared, arrays)))
    return store


def _measured(seated: State, scoring: Scoring, suspects: Suspects, threads: int) -> Familiarity:
    """Return both attacks on each suspect; a low loss and a low rank mean that someone is known."""
    knowledge = seated.knowledge
    unseen = UnseenItems(knowledge.items, suspects.seed, "membership probe")

    def attack(case: Case, scores: NDArray[np.float32]) -> tuple[float, float]:
        others = unseen.draw(case.user, len(case.items), case.items)
        targets = case.ratings.astype(np.float64) / knowledge.scale.high
        loss = balanced_loss(scoring.probabilities_of(scores), case.items, targets, others)
        return -loss, -mean_rank(scores, case.items)

    return np.array(for_each_case(scoring, cases_of(knowledge, suspects.interactions), attack, threads)).T


def balanced_loss(
    probabilities: NDArray[np.float64],
    items: NDArray[np.int64],
    targets: NDArray[np.float64],
    others: NDArray[np.int64],
) -> float:
    """Return the mean cross entropy on someone's items plus that on others, whose target is 0.

    >>> round(balanced_loss(np.array([0.5, 0.25]), np.array([0]), np.array([1.0]), np.array([1])), 4)
    0.9808
    """
    own = float(np.mean(cross_entropies(probabilities[items], targets)))
    return own + (float(np.mean(cross_entropies(probabilities[others], np.zeros(len(others))))) if len(others) else 0.0)


def mean_rank(scores: NDArray[np.float32], items: NDArray[np.int64]) -> float:
    """Return the mean rank of some items in the whole catalogue, from 0 (best) to 1; equal scores share their ranks.

    >>> mean_rank(np.array([0.5, 0.9, 0.1], dtype=np.float32), np.array([1, 0]))
    0.25
    """
    ranks = mid_ranks(-scores) - 1
    return float(np.mean(ranks[items])) / max(1, len(scores) - 1)


def mid_ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the rank of each value from 1; equal ones share the mean of theirs (SciPy's is slow to import).

    >>> mid_ranks(np.array([3.0, 1.0, 3.0]))
    array([2.5, 1. , 2.5])
    """
    ascending = np.sort(values)
    below, up_to = np.searchsorted(ascending, values, "left"), np.searchsorted(ascending, values, "right")
    return (below + up_to + 1) / 2
