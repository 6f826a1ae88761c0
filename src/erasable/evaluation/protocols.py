"""Protocols: which items are ranked for which users, and the mean of the metrics over them."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.data import Ids, Interactions
from erasable.errors import Refused, WrongUse
from erasable.evaluation.metrics import hit_rate, ndcg, recall
from erasable.models.blas import one_blas_thread
from erasable.models.ranking import ItemNumbers, top_items
from erasable.training import CheckpointStore, Knowledge, Scoring, State

CUTOFFS = (10, 20)
_METRICS = {"hr": hit_rate, "ndcg": ndcg, "recall": recall}
_NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Utility:
    """How good recommendations are: the mean over users of each metric, named like ndcg@10."""

    protocol: str
    users: int
    values: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class _Case:
    """One user to rank items for, with the items that should come first."""

    user: str
    position: int
    row: int
    relevant: ItemNumbers


_Ranking: TypeAlias = Callable[[_Case], ItemNumbers]


def whole_catalogue(state: State, checkpoints: CheckpointStore, test: Interactions, threads: int) -> Utility:
    """Rank, for every known user of the test set, the whole catalogue less what the user has in training.

    A test item that is not in the catalogue counts as relevant and can't be hit.
    """
    scoring = Scoring(state, checkpoints)

    def ranked(case: _Case) -> ItemNumbers:
        return scoring.top(case.position, case.row, max(CUTOFFS))[0]

    return _utility("whole catalogue", _cases(state.knowledge, test), ranked, threads)


def sampled_candidates(
    state: State,
    checkpoints: CheckpointStore,
    test: Interactions,
    candidates: Mapping[str, Sequence[str]],
    threads: int,
) -> Utility:
    """Rank, for every known user of the test set, the test items among that user's candidates only.

    With one test item and 99 candidates it is the protocol of He et al., "Neural Collaborative Filtering",
    2017. A candidate that is not in the catalogue has no score and is left out.
    """
    scoring = Scoring(state, checkpoints)
    catalogue = state.knowledge.catalogue.items

    def ranked(case: _Case) -> ItemNumbers:
        numbers = np.union1d(catalogue.positions(candidates[case.user]), case.relevant)
        numbers = numbers[(numbers >= 0) & (numbers < len(catalogue))]
        scores = scoring.scores(case.position, case.row)[numbers]
        return numbers[top_items(scores, max(CUTOFFS), excluded=_NOTHING)]

    cases = _cases(state.knowledge, test)
    missing = next((case.user for case in cases if case.user not in candidates), None)
    if missing is not None:
        raise WrongUse(f"no candidates for the user {missing!r}: give some for every user of the test set")
    return _utility("sampled candidates", cases, ranked, threads)


def _cases(knowledge: Knowledge, test: Interactions) -> list[_Case]:
    """Return the users of the test set that are known, in its order."""
    numbers = _catalogue_numbers(knowledge.catalogue.items, test.items)[test.item_index]
    relevant = np.split(numbers, test.user_starts[1:-1])
    cases: dict[int, _Case] = {}
    for position, group in enumerate(knowledge.groups):
        rows = group.users.positions_of(test.users.array)
        for place in np.flatnonzero(rows >= 0).tolist():
            cases[place] = _Case(test.users[place], position, int(rows[place]), relevant[place])
    return [cases[place] for place in sorted(cases)]


def _catalogue_numbers(catalogue: Ids, items: Ids) -> NDArray[np.int64]:
    """Return each item's number in the catalogue; what it lacks gets numbers past its end, all distinct."""
    if items == catalogue:
        return np.arange(len(items))
    numbers = catalogue.positions_of(items.array)
    return np.where(numbers >= 0, numbers, len(catalogue) + np.arange(len(items)))


def _utility(protocol: str, cases: Sequence[_Case], ranked: _Ranking, threads: int) -> Utility:
    if not cases:
        raise Refused(
            "no user of the test set is known: learn with --holdout 0.1, or test with users that were learned"
        )
    # A block of neighbours for each thread; the values lie in the users' order all the same.
    blocks = np.array_split(np.arange(len(cases)), max(1, min(threads, len(cases))))

    def measure(block: NDArray[np.int64]) -> list[list[float]]:
        return [_values(ranked(cases[number]), cases[number].relevant) for number in block]

    with one_blas_thread(), ThreadPoolExecutor(len(blocks)) as pool:
        rows = [row for block in pool.map(measure, blocks) for row in block]
    means = np.mean(rows, axis=0).tolist()
    return Utility(protocol, len(cases), dict(zip(_names(), means, strict=True)))


def _names() -> list[str]:
    return [f"{name}@{k}" for k in CUTOFFS for name in _METRICS]


def _values(ranked: ItemNumbers, relevant: ItemNumbers) -> list[float]:
    found, wanted = ranked.tolist(), frozenset(relevant.tolist())
    return [metric(found, wanted, k) for k in CUTOFFS for metric in _METRICS.values()]
