"""Protocols: which items are ranked for which users, and the mean of the metrics over them.

Every protocol leaves out users that are not known, such as erased ones. A test item that is not in the catalogue counts
like any other and can't be hit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions, RatingScale
from erasable.errors import WrongUse
from erasable.evaluation.cases import Case, cases_of, for_each_case
from erasable.evaluation.metrics import hit_rate, ndcg, recall
from erasable.evaluation.rated_metrics import LIKED, liked_ndcg, liked_share
from erasable.evaluation.unseen import UnseenItems
from erasable.models.ranking import ItemNumbers, top_items
from erasable.training import CheckpointStore, Knowledge, Scoring, State

Protocol = Literal["whole-catalogue", "one-of-100", "held-out-only"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
CUTOFFS = (10, 20)
CANDIDATES = 99
_METRICS = {"hr": hit_rate, "ndcg": ndcg, "recall": recall}
_NAMES = [f"{name}@{k}" for k in CUTOFFS for name in _METRICS]
_NOTHING = np.empty(0, dtype=np.int64)

_Scores: TypeAlias = NDArray[np.float32]
_Owned: TypeAlias = NDArray[np.integer[Any]]
_Rule: TypeAlias = Callable[[Case, _Scores, _Owned], list[float]]


@dataclass(frozen=True)
class Utility:
    """How good recommendations are: the mean over users of each metric, named like ndcg@10."""

    protocol: str
    users: int
    values: Mapping[str, float]


def measure(
    state: State,
    checkpoints: CheckpointStore,
    test: Interactions,
    threads: int,
    protocol: Protocol = "whole-catalogue",
) -> Utility:
    """Measure recommendations by one protocol; see `measure_all`."""
    return measure_all(state, checkpoints, test, threads, (protocol,))[protocol]


def measure_all(
    state: State,
    checkpoints: CheckpointStore,
    test: Interactions,
    threads: int,
    protocols: Sequence[Protocol] = PROTOCOLS,
) -> dict[Protocol, Utility]:
    """Measure recommendations by several protocols, scoring each known user of the test set once.

    - whole-catalogue ranks everything but what the user has in training.
    - one-of-100 ranks one test item among 99 others, drawn by seed and user id alone, that the user has neither in
      training nor in the test set (He et al., "Neural Collaborative Filtering", 2017). Of several test items the one
      with the largest hash of (seed, user, item) is taken. A user with fewer than 99 other items gets those there are.
    - held-out-only ranks the user's test items among themselves and looks at their ratings, as the LASER authors' code
      does (`rated_metrics`). It never sees an item that the user has not rated, so it can't tell whether good items
      would be found among all the others. Its recall, the share of liked test items found, is not from that code.
    """
    scoring = Scoring(state, checkpoints)
    rules = [_rule(protocol, state.knowledge, test) for protocol in protocols]

    def values(case: Case, scores: _Scores) -> list[list[float]]:
        owned = scoring.owned(case.position, case.row)
        return [rule(case, scores, owned) for rule in rules]

    found = for_each_case(scoring, cases_of(state.knowledge, test), values, threads)
    by_protocol = zip(protocols, zip(*found, strict=True), strict=True)
    return {protocol: _utility(protocol, rows) for protocol, rows in by_protocol}


def sampled_candidates(
    state: State,
    checkpoints: CheckpointStore,
    test: Interactions,
    candidates: Mapping[str, Sequence[str]],
    threads: int,
) -> Utility:
    """Rank, for every known user of the test set, the test items among that user's candidates only.

    With one test item and 99 candidates it is one-of-100 with candidates from elsewhere. A candidate that is not in the
    catalogue has no score and is left out.
    """
    scoring = Scoring(state, checkpoints)
    catalogue = state.knowledge.items

    def values(case: Case, scores: _Scores) -> list[float]:
        numbers = np.union1d(catalogue.positions(candidates[case.user]), case.items)
        ranked = _ranked(scores, numbers[numbers >= 0])
        return _values(ranked, case.items)

    cases = cases_of(state.knowledge, test)
    missing = next((case.user for case in cases if case.user not in candidates), None)
    if missing is not None:
        raise WrongUse(f"no candidates for the user {missing!r}: give some for every user of the test set")
    return _utility("sampled candidates", for_each_case(scoring, cases, values, threads))


def _rule(protocol: Protocol, knowledge: Knowledge, test: Interactions) -> _Rule:
    match protocol:
        case "whole-catalogue":
            return _whole_catalogue
        case "one-of-100":
            return _one_of_100(UnseenItems(knowledge.items, knowledge.config.seed, "candidates"))
        case "held-out-only":
            knowledge.scale.check(test.rating)
            return _held_out_only(knowledge.scale)
        case _:
            raise WrongUse(f"there is no protocol {protocol!r}: choose one of {', '.join(PROTOCOLS)}")


def _whole_catalogue(case: Case, scores: _Scores, owned: _Owned) -> list[float]:
    return _values(top_items(scores, max(CUTOFFS), excluded=owned), case.items)


def _one_of_100(unseen: UnseenItems) -> _Rule:
    def rule(case: Case, scores: _Scores, owned: _Owned) -> list[float]:
        seen = np.union1d(owned, case.items[case.items < len(scores)])
        wanted = np.array([case.chosen])
        among = np.union1d(unseen.draw(case.user, CANDIDATES, seen), wanted)
        return _values(_ranked(scores, among), wanted)

    return rule


def _held_out_only(scale: RatingScale) -> _Rule:
    def rule(case: Case, scores: _Scores, owned: _Owned) -> list[float]:
        shares = case.ratings.astype(np.float64) / scale.high
        ratings = dict(zip(case.items.tolist(), shares.tolist(), strict=True))
        liked = frozenset(item for item, rating in ratings.items() if rating >= LIKED)
        ranked = _ranked(scores, np.sort(case.items)).tolist()
        each = (
            (liked_share(ranked, ratings, k), liked_ndcg(ranked, ratings, k), recall(ranked, liked, k)) for k in CUTOFFS
        )
        return [value for values in each for value in values]

    return rule


def _ranked(scores: _Scores, items: ItemNumbers) -> ItemNumbers:
    """Return the best of these items, given ascending; those past the catalogue's end have no score."""
    inside = items[items < len(scores)]
    return inside[top_items(scores[inside], max(CUTOFFS), excluded=_NOTHING)]


def _values(ranked: ItemNumbers, relevant: ItemNumbers) -> list[float]:
    found, wanted = ranked.tolist(), frozenset(relevant.tolist())
    return [metric(found, wanted, k) for k in CUTOFFS for metric in _METRICS.values()]


def _utility(protocol: str, rows: Sequence[Sequence[float]]) -> Utility:
    means = np.mean(rows, axis=0).tolist()
    return Utility(protocol, len(rows), dict(zip(_NAMES, means, strict=True)))
