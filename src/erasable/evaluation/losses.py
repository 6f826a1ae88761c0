"""The loss on a test set, group by group; what training minimises is in the models' kernels."""

import math

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions
from erasable.evaluation.cases import Case, cases_of, for_each_case
from erasable.evaluation.unseen import UnseenItems
from erasable.training import CheckpointStore, Scoring, State

USUAL_NEGATIVES = 4
"""How many items of target 0 stand beside a test interaction where the model samples none."""
_SMALLEST = 1e-12


def cross_entropies(probabilities: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return −(t log p + (1 − t) log(1 − p)) for each pair, p being kept away from 0 and 1.

    >>> cross_entropies(np.array([0.5, 0.25]), np.array([1.0, 0.0])).round(4)
    array([0.6931, 0.2877])
    """
    p = np.clip(probabilities, _SMALLEST, 1 - _SMALLEST)
    return -(targets * np.log(p) + (1 - targets) * np.log1p(-p))


def group_losses(state: State, checkpoints: CheckpointStore, test: Interactions, threads: int) -> list[float | None]:
    """Return, for each position of the chain, the normalised binary cross entropy on its users' test interactions.

    It is the mean over the test interactions, whose target is the rating over the scale's highest, and, for each of
    them, as many items of target 0 as training takes (`negatives`). Those are drawn by seed and user id alone, each at
    most once, from what the user has neither in training nor in the test set. What scores a user judges here too: with
    sisa and `own` that is the model of the own group, trained alone. An item that it does not know is left out, and so
    are users that are not known; a group without test interactions has no loss (None).
    """
    knowledge = state.knowledge
    knowledge.scale.check(test.rating)
    scoring = Scoring(state, checkpoints)
    unseen = UnseenItems(knowledge.items, knowledge.config.seed, "test negatives")
    cases = cases_of(knowledge, test)

    def losses(case: Case, scores: NDArray[np.float32]) -> NDArray[np.float64]:
        known, probabilities = np.isfinite(scores), scoring.probabilities_of(scores)
        inside = np.isin(case.items, np.flatnonzero(known))
        items, targets = case.items[inside], case.ratings[inside].astype(np.float64) / knowledge.scale.high
        seen = np.union1d(scoring.owned(case.position, case.row), np.concatenate([items, np.flatnonzero(~known)]))
        negatives = unseen.draw(case.user, knowledge.config.setting("negatives", USUAL_NEGATIVES) * len(items), seen)
        return cross_entropies(
            probabilities[np.concatenate([items, negatives])], np.concatenate([targets, np.zeros(len(negatives))])
        )

    found = for_each_case(scoring, cases, losses, threads)
    by_group: list[list[float]] = [[] for _ in knowledge.groups]
    for case, values in zip(cases, found, strict=True):
        by_group[case.position].extend(values.tolist())
    return [math.fsum(values) / len(values) if values else None for values in by_group]
