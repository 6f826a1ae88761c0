"""Protocols: which items are ranked for which users, and the mean metrics over them; the loss on a test set."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from erasable.chain.buckets import Place
from erasable.chain.checkpoints import CheckpointStore
from erasable.chain.dataset import (
    Dataset,
    State,
)
from erasable.chain.scoring import Scoring
from erasable.data.catalogue import kept_rows, pair_hashes
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.data.slots import slot_keys
from erasable.errors import Refused, WrongUse, option
from erasable.evaluation.utility import USUAL_METRICS, Ranking, Utility, longest, measured, metrics_named
from erasable.models.machine import ItemNumbers, one_blas_thread, top_items
from erasable.seeding import id_keys, mix
from erasable.threads import pool_of


class UnseenItems:
    """Draws items of the catalogue that a user has not seen, independently of other users.

    Each (user, item) pair has a hash, and the items with the smallest hashes are drawn, each at most once. So one more
    item that the user has replaces at most one of those drawn.
    """

    def __init__(self, catalogue: Ids, seed: int, purpose: str) -> None:
        self._seed = seed
        self._purpose = purpose
        self._item_keys = id_keys(seed, f"{purpose} item", catalogue)

    def draw(self, user: str, count: int, seen: NDArray[np.integer[Any]]) -> ItemNumbers:
        """Return `count` unseen items, or all if there are fewer, ascending."""
        unseen = np.ones(len(self._item_keys), dtype=bool)
        unseen[seen] = False
        items = np.flatnonzero(unseen)
        if count >= len(items):
            return items
        hashes = mix(id_keys(self._seed, f"{self._purpose} user", [user]), self._item_keys[items])
        return np.sort(items[np.argpartition(hashes, count)[:count]])


PEOPLE_MEASURED = 10_000
"""The most people that the quality in a certificate is measured on."""
_Found = TypeVar("_Found")


@dataclass(frozen=True, eq=False)
class Case:
    """One known user of a test set, with the test items and their ratings.

    Items have their numbers in the catalogue; those that it lacks have numbers past its end.
    """

    user: str
    place: Place
    items: ItemNumbers
    ratings: NDArray[np.float32]
    chosen: int
    """The item with the largest hash of (seed, user, item): the one to use if there may be only one."""


def cases_of(dataset: Dataset, test: Interactions) -> list[Case]:
    """Return the known users of the test set, in its order; the others were erased, or never learned."""
    numbers = _catalogue_numbers(dataset.items, test.items)[test.item_index]
    chosen = numbers[kept_rows(test, pair_hashes(test, dataset.config.seed))]
    cases: dict[int, Case] = {}
    for number, among in dataset.buckets.by_bucket(test.users).items():
        bucket = dataset.buckets[number]
        rows = bucket.users.positions_of(test.users.take(among).array)
        for one, row in zip(among[rows >= 0].tolist(), rows[rows >= 0].tolist(), strict=True):
            own = slice(test.user_starts[one], test.user_starts[one + 1])
            place = Place(int(bucket.groups[row]), number, row)
            cases[one] = Case(test.users[one], place, numbers[own], test.rating[own], int(chosen[one]))
    if not cases:
        raise no_case()
    return [cases[one] for one in sorted(cases)]


def no_case() -> Refused:
    """Return the refusal of a test set whose users are all unknown."""
    return Refused(
        "no user of the test set is known: learn with ",
        option("holdout", 0.1),
        ", or test with users that were learned",
    )


def measured_people(dataset: Dataset) -> Interactions:
    """Return the held-out rows of at most 10,000 people: those with the smallest hash of seed and id.

    The first bits of that hash are the slot, so they lie in the first buckets, and no others are read.
    """
    if dataset.counts.held_out == 0:
        return dataset.held_out
    parts = list[Interactions]()
    for bucket in dataset.buckets:
        parts.append(bucket.held_out)
        if sum(len(part.users) for part in parts) >= PEOPLE_MEASURED:
            break
    found = Interactions.joined(parts)
    order = np.argsort(slot_keys(found.users, dataset.config.seed), kind="stable")
    return found.at(np.sort(order[:PEOPLE_MEASURED])).by_id()


def for_each_case(
    scoring: Scoring, cases: Sequence[Case], ask: Callable[[Case, NDArray[np.float32]], _Found], threads: int
) -> list[_Found]:
    """Call a function on each case and its scores, on several threads; return the results in order."""
    # One contiguous block for each thread.
    blocks = np.array_split(np.arange(len(cases)), max(1, min(threads, len(cases))))

    def ask_block(block: NDArray[np.int64]) -> list[_Found]:
        chosen = [cases[number] for number in block]
        scores = scoring.each([case.place for case in chosen])
        return [ask(case, found) for case, found in zip(chosen, scores, strict=True)]

    with one_blas_thread(), pool_of(len(blocks)) as pool:
        return [found for block in pool.map(ask_block, blocks) for found in block]


def _catalogue_numbers(catalogue: Ids, items: Ids) -> NDArray[np.int64]:
    """Return each item's number in the catalogue; what it lacks gets numbers past its end, all distinct."""
    if items == catalogue:
        return np.arange(len(items))
    numbers = catalogue.positions_of(items.array)
    return np.where(numbers >= 0, numbers, len(catalogue) + np.arange(len(items)))


USUAL_NEGATIVES = 4
"""The number of negatives for each test interaction, if the model samples none."""
_SMALLEST = 1e-12


def cross_entropies(probabilities: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return −(t log p + (1 − t) log(1 − p)) for each pair, p clipped away from 0 and 1.

    >>> cross_entropies(np.array([0.5, 0.25]), np.array([1.0, 0.0])).round(4)
    array([0.6931, 0.2877])
    """
    p = np.clip(probabilities, _SMALLEST, 1 - _SMALLEST)
    return -(targets * np.log(p) + (1 - targets) * np.log1p(-p))


def group_losses(state: State, checkpoints: CheckpointStore, test: Interactions, threads: int) -> list[float | None]:
    """Return, for each position of the chain, the normalised binary cross entropy on its users' test interactions.

    It is the mean over the test interactions, whose target is the rating over the scale's highest, and their negatives,
    as many for each as in training (`negatives`). Negatives are drawn by seed and user id alone, each at most once,
    from the items that the user has neither in training nor in the test set. A user is scored as usual: with sisa and
    `own` by the model of the user's own group. Items that it does not know and unknown users are left out; a group
    without test interactions has no loss (None).
    """
    dataset = state.dataset
    dataset.scale.check(test.rating)
    scoring = Scoring(state, checkpoints)
    unseen = UnseenItems(dataset.items, dataset.config.seed, "test negatives")
    cases = cases_of(dataset, test)

    def losses(case: Case, scores: NDArray[np.float32]) -> NDArray[np.float64]:
        known, probabilities = np.isfinite(scores), scoring.probabilities_of(scores)
        inside = np.isin(case.items, np.flatnonzero(known))
        items, targets = case.items[inside], dataset.shares_of(case.ratings[inside])
        seen = np.union1d(scoring.owned(case.place), np.concatenate([items, np.flatnonzero(~known)]))
        negatives = unseen.draw(case.user, dataset.config.setting("negatives", USUAL_NEGATIVES) * len(items), seen)
        return cross_entropies(
            probabilities[np.concatenate([items, negatives])], np.concatenate([targets, np.zeros(len(negatives))])
        )

    found = for_each_case(scoring, cases, losses, threads)
    by_group: list[list[float]] = [[] for _ in range(dataset.group_count)]
    for case, values in zip(cases, found, strict=True):
        by_group[case.place.group].extend(values.tolist())
    return [math.fsum(values) / len(values) if values else None for values in by_group]


Protocol = Literal["whole-catalogue", "one-of-100", "held-out-only"]
"""The name of a protocol; `measure_all` says what each ranks."""
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
"""The names of all protocols."""
CANDIDATES = 99
_NOTHING = np.empty(0, dtype=np.int64)

_Scores: TypeAlias = NDArray[np.float32]
_Owned: TypeAlias = NDArray[np.integer[Any]]
_Rule: TypeAlias = Callable[[Case, _Scores, _Owned], Ranking]


def measure(
    state: State,
    checkpoints: CheckpointStore,
    test: Interactions,
    threads: int,
    protocol: Protocol = "whole-catalogue",
    metrics: Sequence[str] | None = None,
) -> Utility:
    """Measure recommendations by one protocol; `measure_all` says what each ranks.

    Parameters
    ----------
    state : State
        A learned recommender, as a workspace holds it.
    checkpoints : CheckpointStore
        Its checkpoints.
    test : Interactions
        The interactions to find; users who are not known are left out.
    threads : int
        How many threads to use at most.
    protocol : str, default "whole-catalogue"
        One of `PROTOCOLS`.
    metrics : sequence of str, optional
        Metrics with cutoffs, such as `ndcg@10` or `map@5` (docs/reference/protocols.md); by default HR, NDCG and
        recall at 10 and 20.

    Returns
    -------
    Utility
        The mean of each metric.

    Raises
    ------
    erasable.errors.Refused
        If no user of the test set is known.

    Examples
    --------
    >>> import pyarrow as pa, tempfile
    >>> from erasable import Recommender
    >>> from erasable.workspace import Workspace
    >>> table = pa.table({"user": [1, 1, 1, 2, 2, 2, 3, 3, 3], "item": list("abcabdacd")})
    >>> with tempfile.TemporaryDirectory() as place:
    ...     Recommender("ease", holdout=0.4).fit(table).save(f"{place}/shop")
    ...     with Workspace.reading(f"{place}/shop") as workspace:
    ...         state = workspace.state()
    ...         measure(state, workspace.checkpoints, state.dataset.held_out, threads=1).users
    2
    """
    chosen = USUAL_METRICS if metrics is None else metrics_named(metrics, protocol)
    rankings = rank_people(state, checkpoints, test, threads, (protocol,), longest(chosen))[protocol]
    return Utility(protocol, len(rankings), measured(state.dataset, rankings, chosen).means())


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
      does (`liked_share`, `liked_ndcg`). It never sees an item that the user has not rated, so it can't tell whether
      good items would be found among all the others. Its recall, the share of liked test items, is not from that code.

    Parameters
    ----------
    state : State
        A learned recommender, as a workspace holds it.
    checkpoints : CheckpointStore
        Its checkpoints.
    test : Interactions
        The interactions to find; users who are not known are left out.
    threads : int
        How many threads to use at most.
    protocols : sequence of str, optional
        Some of `PROTOCOLS`; all if not given.

    Returns
    -------
    dict of str to Utility
        The mean of each metric, by protocol.

    Raises
    ------
    erasable.errors.Refused
        If no user of the test set is known.

    Examples
    --------
    >>> import pyarrow as pa, tempfile
    >>> from erasable import Recommender
    >>> from erasable.workspace import Workspace
    >>> table = pa.table({"user": [1, 1, 1, 2, 2, 2, 3, 3, 3], "item": list("abcabdacd")})
    >>> with tempfile.TemporaryDirectory() as place:
    ...     Recommender("ease", holdout=0.4).fit(table).save(f"{place}/shop")
    ...     with Workspace.reading(f"{place}/shop") as workspace:
    ...         state = workspace.state()
    ...         found = measure_all(state, workspace.checkpoints, state.dataset.held_out, threads=1)
    >>> list(found)
    ['whole-catalogue', 'one-of-100', 'held-out-only']
    """
    found = rank_people(state, checkpoints, test, threads, protocols, longest(USUAL_METRICS))
    return {
        protocol: Utility(protocol, len(rankings), measured(state.dataset, rankings, USUAL_METRICS).means())
        for protocol, rankings in found.items()
    }


def rank_people(
    state: State,
    checkpoints: CheckpointStore,
    test: Interactions,
    threads: int,
    protocols: Sequence[Protocol],
    most: int,
) -> dict[Protocol, list[Ranking]]:
    """Rank items for every known user of the test set, in its order, by each protocol: the best `most`."""
    scoring = Scoring(state, checkpoints)
    rules = [_rule(protocol, state.dataset, test, most) for protocol in protocols]

    def ranked(case: Case, scores: _Scores) -> list[Ranking]:
        owned = scoring.owned(case.place)
        return [rule(case, scores, owned) for rule in rules]

    found = for_each_case(scoring, cases_of(state.dataset, test), ranked, threads)
    return {protocol: list(rankings) for protocol, rankings in zip(protocols, zip(*found, strict=True), strict=True)}


def sampled_candidates(
    state: State,
    checkpoints: CheckpointStore,
    test: Interactions,
    candidates: Mapping[str, Sequence[str]],
    threads: int,
) -> Utility:
    """Rank, for every known user of the test set, the test items among that user's candidates only.

    With one test item and 99 candidates it is one-of-100 with given candidates. A candidate that is not in the
    catalogue has no score and is left out.

    Parameters
    ----------
    state : State
        A learned recommender, as a workspace holds it.
    checkpoints : CheckpointStore
        Its checkpoints.
    test : Interactions
        The interactions to find; users who are not known are left out.
    candidates : mapping of str to sequence of str
        The items to rank for each user of the test set, beside the test items.
    threads : int
        How many threads to use at most.

    Returns
    -------
    Utility
        The mean of each metric.

    Raises
    ------
    erasable.errors.WrongUse
        If a known user has no candidates.
    erasable.errors.Refused
        If no user of the test set is known.

    Examples
    --------
    >>> import pyarrow as pa, tempfile
    >>> from erasable import Recommender
    >>> from erasable.workspace import Workspace
    >>> table = pa.table({"user": [1, 1, 1, 2, 2, 2, 3, 3, 3], "item": list("abcabdacd")})
    >>> with tempfile.TemporaryDirectory() as place:
    ...     Recommender("ease", holdout=0.4).fit(table).save(f"{place}/shop")
    ...     with Workspace.reading(f"{place}/shop") as workspace:
    ...         state = workspace.state()
    ...         test = state.dataset.held_out
    ...         candidates = {user: ["a", "b", "c", "d"] for user in test.users}
    ...         sampled_candidates(state, workspace.checkpoints, test, candidates, threads=1).values["hr@10"]
    1.0
    """
    scoring, most = Scoring(state, checkpoints), longest(USUAL_METRICS)
    catalogue = state.dataset.items

    def ranked(case: Case, scores: _Scores) -> Ranking:
        numbers = np.union1d(catalogue.positions(candidates[case.user]), case.items)
        return _ranking(_ranked(scores, numbers[numbers >= 0], most), case.items, scoring.owned(case.place))

    cases = cases_of(state.dataset, test)
    missing = next((case.user for case in cases if case.user not in candidates), None)
    if missing is not None:
        raise WrongUse(f"no candidates for the user {missing!r}: give some for every user of the test set")
    rankings = for_each_case(scoring, cases, ranked, threads)
    return Utility("sampled candidates", len(rankings), measured(state.dataset, rankings, USUAL_METRICS).means())


def _rule(protocol: Protocol, dataset: Dataset, test: Interactions, most: int) -> _Rule:
    match protocol:
        case "whole-catalogue":
            return _whole_catalogue(most)
        case "one-of-100":
            return _one_of_100(UnseenItems(dataset.items, dataset.config.seed, "candidates"), most)
        case "held-out-only":
            dataset.scale.check(test.rating)
            return _held_out_only(dataset, most)
        case _:
            raise WrongUse(f"there is no protocol {protocol!r}: choose one of {', '.join(PROTOCOLS)}")


def _whole_catalogue(most: int) -> _Rule:
    def rule(case: Case, scores: _Scores, owned: _Owned) -> Ranking:
        return _ranking(top_items(scores, most, excluded=owned), case.items, owned)

    return rule


def _one_of_100(unseen: UnseenItems, most: int) -> _Rule:
    def rule(case: Case, scores: _Scores, owned: _Owned) -> Ranking:
        seen = np.union1d(owned, case.items[case.items < len(scores)])
        wanted = np.array([case.chosen])
        among = np.union1d(unseen.draw(case.user, CANDIDATES, seen), wanted)
        return _ranking(_ranked(scores, among, most), wanted, owned)

    return rule


def _held_out_only(dataset: Dataset, most: int) -> _Rule:
    def rule(case: Case, scores: _Scores, owned: _Owned) -> Ranking:
        ranking = _ranking(_ranked(scores, np.sort(case.items), most), case.items, owned)
        return ranking._replace(shares=dataset.shares_of(case.ratings).tolist())

    return rule


def _ranked(scores: _Scores, items: ItemNumbers, most: int) -> ItemNumbers:
    """Rank these items, which ascend, best first; those past the catalogue's end have no score."""
    inside = items[items < len(scores)]
    return inside[top_items(scores[inside], most, excluded=_NOTHING)]


def _ranking(ranked: ItemNumbers, items: ItemNumbers, owned: _Owned) -> Ranking:
    return Ranking(ranked.tolist(), items.tolist(), (), len(owned))
