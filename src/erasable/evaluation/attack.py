"""A membership attack: scores of how well a chain knows people, its AUC over several seeds, and the verdict."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from erasable.chain.buckets import Buckets, dealt
from erasable.chain.checkpoints import (
    Checkpoint,
    CheckpointStore,
    MemoryStore,
)
from erasable.chain.dataset import (
    Dataset,
    State,
    no_interactions,
)
from erasable.chain.known_items import KnownItems
from erasable.chain.scoring import Scoring
from erasable.chain.settings import Config
from erasable.data.interactions import Interactions
from erasable.evaluation.protocols import USUAL_NEGATIVES, Case, UnseenItems, cases_of, cross_entropies, for_each_case
from erasable.models import calls
from erasable.models.base import Arrays, Effort, Parameters, Stage
from erasable.models.registry import make_model

ATTACKS = ("loss", "rank")
VIEWS = ("as served", "shared parameters")
RELEARNING_STEPS = 400
"""How many gradient steps a relearned row gets: enough to converge."""


class Look(NamedTuple):
    """One way to attack: the signal that is measured, and the row that it is measured with."""

    attack: str
    view: str


LOOKS = tuple(Look(attack, view) for view in VIEWS for attack in ATTACKS)

MembershipScores: TypeAlias = NDArray[np.float64]
"""How well people are known: a row for each look, a column for each person; higher means better known."""


@dataclass(frozen=True, eq=False)
class Suspects:
    """The people the attacker asks about: their interactions, and the position of a group for each of them."""

    interactions: Interactions
    positions: NDArray[np.int64]
    """The group of a person whom a chain does not know; it matters only under sisa."""
    seed: int
    """Decides which other items are compared and how rows are relearned; the same for every chain."""


def membership_scores(state: State, checkpoints: CheckpointStore, suspects: Suspects, threads: int) -> MembershipScores:
    """Score how well a chain knows each suspect, in every look, without asking whether it learned from them."""
    seated = _seated(state, suspects)
    newcomers = [_newcomers(*place) for place in _places(seated, checkpoints)]
    served = _with_own_rows(state, checkpoints, seated, newcomers)
    learn = _solved if state.dataset.solves_rows else _trained
    relearned = [learn(*place, suspects.seed, Effort(threads)) for place in _places(seated, checkpoints)]
    views = [Scoring(seated, _with_rows(seated, checkpoints, rows)) for rows in (served, relearned)]
    return np.concatenate([_attacked(seated, scoring, suspects, threads) for scoring in views])


def _seated(state: State, suspects: Suspects) -> State:
    """Return the same stages with the suspects as their only users.

    A chain scores everyone with its last stage, so all suspects go there. Under sisa each goes to their own group.
    """
    people, last = suspects.interactions, len(state.stages) - 1
    seats = np.full(len(people.users), last)
    if state.dataset.config.strategy == "sisa":
        seats = suspects.positions.copy()
        for number, places in state.dataset.buckets.by_bucket(people.users).items():
            bucket = state.dataset.buckets[number]
            rows = bucket.users.positions_of(people.users.take(places).array)
            seats[places[rows >= 0]] = bucket.groups[rows[rows >= 0]]
    dataset = state.dataset
    parts = dealt(people, no_interactions(people.items), seats, dataset.config.seed)
    buckets = Buckets.of(parts, people.items, dataset.config.seed)
    config = dataset.config.with_rows_of_stages()
    return State(_Seats(config, dataset.catalogue, dataset.scale, buckets, last + 1, chain=dataset), state.stages)


@dataclass(frozen=True, eq=False)
class _Seats(Dataset):
    """Suspects in the groups of a chain; its stages still know the chain's items."""

    chain: Dataset | None = None

    def known(self, position: int) -> KnownItems:
        """Return the items that shared parameters know after the stage at a position."""
        return self.chain.known(position) if self.chain else super().known(position)


def _places(seated: State, checkpoints: CheckpointStore) -> Iterator[tuple[Dataset, int, Arrays]]:
    for position, link in enumerate(seated.chain):
        yield seated.dataset, position, checkpoints.get(link.fingerprint).parameters.shared


def _newcomers(seated: Dataset, position: int, shared: Arrays) -> Arrays:
    """Return the rows of users without any history."""
    model = make_model(seated.config)
    users, catalogue = seated.groups[position].users, seated.known(position).ids
    return calls.newcomers(model, calls.prepared(model, shared), users, catalogue, seated.config.seed)


def _trained(seated: Dataset, position: int, shared: Arrays, seed: int, effort: Effort) -> Arrays:
    """Return the rows that training one more stage from the shared parameters gives."""
    group = seated.learners(position)
    stage = Stage(
        group,
        seated.scale,
        relearning_epochs(len(group), seated.config),
        seed,
        position,
        seated.config.weighed,
    )
    return calls.trained(make_model(seated.config), shared, stage, effort).rows


def _solved(seated: Dataset, position: int, shared: Arrays, seed: int, effort: Effort) -> Arrays:
    """Return the rows solved from the shared parameters."""
    model = make_model(seated.config)
    stage = Stage(
        seated.learners(position),
        seated.scale,
        seated.config.row_epochs,
        seed,
        position,
        seated.config.weighed,
    )
    return calls.represented(model, calls.prepared(model, shared), stage, effort)


def relearning_epochs(interactions: int, config: Config) -> int:
    """Return how many epochs over so many interactions make `RELEARNING_STEPS` steps.

    >>> relearning_epochs(33_000, Config(model="nmf", batch=2048)), relearning_epochs(100, Config(model="nmf"))
    (5, 400)
    """
    batch, negatives = config.setting("batch", 2048), config.setting("negatives", USUAL_NEGATIVES)
    steps = math.ceil(interactions / max(1, batch // (1 + negatives)))
    return math.ceil(RELEARNING_STEPS / max(1, steps))


def _with_own_rows(
    state: State, checkpoints: CheckpointStore, seated: State, rows: Sequence[Arrays]
) -> list[dict[str, NDArray[np.float32]]]:
    """Return the rows, with the chain's own rows for the people it knows."""
    served, scoring = (
        [{name: array.copy() for name, array in arrays.items()} for arrays in rows],
        Scoring(state, checkpoints),
    )
    for arrays, sitting in zip(served, seated.dataset.groups, strict=True):
        found = [(seat, state.dataset.buckets.find(user)) for seat, user in enumerate(sitting.users)]
        known = [(seat, place) for seat, place in found if place is not None]
        own = scoring.rows([place for _, place in known])
        for (seat, _), row in zip(known, own, strict=True):
            for name, array in arrays.items():
                array[seat] = row[name]
    return served


def _with_rows(seated: State, checkpoints: CheckpointStore, rows: Sequence[Arrays]) -> MemoryStore:
    """Return the checkpoints with these rows in place of their own."""
    store = MemoryStore()
    for link, arrays in zip(seated.chain, rows, strict=True):
        shared = checkpoints.get(link.fingerprint).parameters.shared
        store.put(Checkpoint(link.fingerprint, link.parent, Parameters(shared, arrays)))
    return store


def _attacked(seated: State, scoring: Scoring, suspects: Suspects, threads: int) -> MembershipScores:
    """Return the scores of both attacks on each suspect; a low loss or a low rank means a known person."""
    dataset = seated.dataset
    unseen = UnseenItems(dataset.items, suspects.seed, "membership probe")

    def attack(case: Case, scores: NDArray[np.float32]) -> tuple[float, float]:
        others = unseen.draw(case.user, len(case.items), case.items)
        targets = dataset.shares_of(case.ratings)
        loss = balanced_loss(scoring.probabilities_of(scores), case.items, targets, others)
        return -loss, -mean_rank(scores, case.items)

    return np.array(for_each_case(scoring, cases_of(dataset, suspects.interactions), attack, threads)).T


def balanced_loss(
    probabilities: NDArray[np.float64],
    items: NDArray[np.int64],
    targets: NDArray[np.float64],
    others: NDArray[np.int64],
) -> float:
    """Return the mean cross entropy on a person's items plus that on others, whose target is 0.

    >>> round(balanced_loss(np.array([0.5, 0.25]), np.array([0]), np.array([1.0]), np.array([1])), 4)
    0.9808
    """
    own = float(np.mean(cross_entropies(probabilities[items], targets)))
    return own + (float(np.mean(cross_entropies(probabilities[others], np.zeros(len(others))))) if len(others) else 0.0)


def mean_rank(scores: NDArray[np.float32], items: NDArray[np.int64]) -> float:
    """Return the mean rank of some items in the whole catalogue, from 0 (best) to 1; equal scores share a rank.

    >>> mean_rank(np.array([0.5, 0.9, 0.1], dtype=np.float32), np.array([1, 0]))
    0.25
    """
    ranks = mid_ranks(-scores) - 1
    return float(np.mean(ranks[items])) / max(1, len(scores) - 1)


def mid_ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the rank of each value from 1; equal values share their mean rank (SciPy's is slow to import).

    >>> mid_ranks(np.array([3.0, 1.0, 3.0]))
    array([2.5, 1. , 2.5])
    """
    ascending = np.sort(values)
    below, up_to = np.searchsorted(ascending, values, "left"), np.searchsorted(ascending, values, "right")
    return (below + up_to + 1) / 2


Verdict = Literal["forgotten", "remembers", "worthless here"]
FEWEST_SEEDS = 3
CONFIDENCE = 0.95
"""The confidence of all looks together: Bonferroni widens each interval, so that a clean model is not accused."""


@dataclass(frozen=True)
class Interval:
    """A mean and the interval around it."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class AttackResult:
    """The AUC of one attack that tells the erased people from others, on the three kinds of chains.

    The intervals of before and forgotten are those of their differences from never, shifted by the mean of never.
    """

    attack: str
    view: str
    before: Interval
    forgotten: Interval
    never: Interval
    difference: Interval
    """Forgotten minus never: the advantage that the attack keeps after forgetting."""
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class AttackMeasurements:
    """The scores of the suspects for each seed: before forgetting, after it, and on chains that never knew them."""

    before: Sequence[MembershipScores]
    forgotten: Sequence[MembershipScores]
    """For each seed, or of a single chain."""
    never: Sequence[MembershipScores]
    erased: NDArray[np.bool_]
    """Which of the suspects were erased: known to before, and not to never."""

    @property
    def kinds(self) -> tuple[Sequence[MembershipScores], ...]:
        """The three kinds of chains in their order."""
        return self.before, self.forgotten, self.never


def judge(measured: AttackMeasurements) -> tuple[AttackResult, ...]:
    """Return the result and the verdict of the attack in each look."""
    return tuple(_result(look, place, measured) for place, look in enumerate(LOOKS))


def overall(results: Sequence[AttackResult]) -> Verdict:
    """Return `remembers` if any attack says so, else `forgotten` if any does, else `worthless here`."""
    verdicts: tuple[Verdict, ...] = ("remembers", "forgotten")
    return next((verdict for verdict in verdicts if any(one.verdict == verdict for one in results)), "worthless here")


def area_under_curve(values: NDArray[np.float64], erased: NDArray[np.bool_]) -> float:
    """Return the probability that an erased person has a larger value than another one; ties count half.

    >>> area_under_curve(np.array([3.0, 1.0, 2.0, 0.0]), np.array([True, True, False, False]))
    0.75
    """
    ours, others = int(erased.sum()), int((~erased).sum())
    return float((mid_ranks(values)[erased].sum() - ours * (ours + 1) / 2) / (ours * others))


def interval(values: NDArray[np.float64], spread: float) -> Interval:
    """Return the t-interval of a mean whose standard error is `spread` times the values' standard deviation."""
    quantile = float(stdtrit(len(values) - 1, 1 - (1 - CONFIDENCE) / 2 / len(LOOKS)))
    mean, half = float(values.mean()), quantile * spread * float(values.std(ddof=1))
    return Interval(mean, mean - half, mean + half)


def verdict_of(gained_before: Interval, gained: Interval) -> Verdict:
    """Judge an attack by its advantage over never, before and after forgetting.

    It must succeed before forgetting. If its interval after forgetting still includes the advantage before, it is too
    imprecise, and so worthless too.
    """
    if gained_before.low <= 0:
        return "worthless here"
    if gained.low > 0:
        return "remembers"
    return "forgotten" if gained.high < gained_before.mean else "worthless here"


def _result(look: Look, place: int, measured: AttackMeasurements) -> AttackResult:
    before, forgotten, never = (_success(chains, place, measured) for chains in measured.kinds)
    seeds, middle = len(never), float(never.mean())
    mean_of_seeds = 1 / math.sqrt(seeds)
    # A single chain is compared with a prediction interval for one more chain, not the interval of the mean.
    one_more = math.sqrt(1 + 1 / seeds)
    gained_before = interval(before - never, mean_of_seeds)
    gained = interval(forgotten - never, one_more if len(measured.forgotten) == 1 else mean_of_seeds)
    return AttackResult(
        *look,
        before=_as_area(gained_before, middle),
        forgotten=_as_area(gained, middle),
        never=_as_area(interval(never, mean_of_seeds)),
        difference=gained,
        verdict=verdict_of(gained_before, gained),
    )


def _success(chains: Sequence[MembershipScores], place: int, measured: AttackMeasurements) -> NDArray[np.float64]:
    """Return the AUC for each seed, of scores minus each person's mean score on the never chains of the other seeds."""
    total = np.sum([never[place] for never in measured.never], axis=0)
    references = [(total - never[place]) / (len(measured.never) - 1) for never in measured.never]
    return np.array(
        [
            area_under_curve(chains[seed % len(chains)][place] - reference, measured.erased)
            for seed, reference in enumerate(references)
        ]
    )


def _as_area(found: Interval, middle: float = 0.0) -> Interval:
    """Shift an interval by the middle, and clip it to 0 … 1."""
    return Interval(*(min(1.0, max(0.0, middle + value)) for value in (found.mean, found.low, found.high)))
