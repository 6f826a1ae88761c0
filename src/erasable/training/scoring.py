"""What scores users: shared parameters of one or several stages, and the rows of each group's own stage."""

from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from erasable.models import Arrays, Change, Scorer, make_model
from erasable.models.blas import one_blas_thread
from erasable.training.checkpoint import CheckpointStore
from erasable.training.state import State


class Scoring:
    """Scores the catalogue for a user, who is named by the position of the group and the row in it.

    A chain scores with the shared parameters of its last stage. Under the strategy sisa every stage has a model of its
    own: a user is scored by that of the own group, or by the mean of all that have learned from someone.
    May be used by several threads at once; a user's scores never depend on who else is scored.
    """

    def __init__(self, state: State, checkpoints: CheckpointStore) -> None:
        self._state = state
        self._checkpoints = checkpoints
        self._rows: dict[int, Arrays] = {}
        self._shared: dict[int, Arrays] = {}
        self._scorers: dict[int, Scorer] = {}
        if state.knowledge.config.aggregate != "own":
            for position in self._judges(0):
                self._scorer(position)

    def scores(self, position: int, row: int) -> NDArray[np.float32]:
        """Return one score for each item of the catalogue, higher is better; items that no stage knows have −∞."""
        personal = {name: array[row] for name, array in self._rows_at(position).items()}
        owned = self.owned(position, row)
        with one_blas_thread():
            found = [self._scorer(judge)(personal, owned) for judge in self._judges(position)]
        known = max(map(len, found))
        if known == len(self._state.knowledge.catalogue.items) and len(found) == 1:
            return found[0]
        return _mean_of_known(found, len(self._state.knowledge.catalogue.items))

    def probabilities(self, position: int, row: int) -> NDArray[np.float64]:
        """Return the scores as the loss takes them, between 0 and 1; scores of several models are averaged before."""
        return make_model(self._state.knowledge.config).probability(self.scores(position, row))

    def owned(self, position: int, row: int) -> NDArray[np.int32]:
        """Return the numbers of the items that the user has in training."""
        return self._state.knowledge.groups[position].items_at(row)

    def rid_of(self, change: Change) -> "Scoring":
        """Return what scores without some data of the learners, as far as that can be told at once."""
        last = len(self._state.stages) - 1
        shared = self._shared_at(last)
        with one_blas_thread():
            provisional = make_model(self._state.knowledge.config).provisional(shared, change)
        if provisional is shared:
            return self
        other = copy(self)
        other._shared, other._scorers = {**self._shared, last: provisional}, {}
        return other

    def _judges(self, position: int) -> Sequence[int]:
        """Return the positions of the stages whose shared parameters score the users of a group."""
        match self._state.knowledge.config.aggregate:
            case "own":
                return (position,)
            case "mean":
                samples = [link.samples for link in self._state.stages]
                return [place for place, learned in enumerate(samples) if learned] or (position,)
            case _:
                return (len(self._state.stages) - 1,)

    def _scorer(self, position: int) -> Scorer:
        if position not in self._scorers:
            items = self._state.knowledge.items_known(position)
            with one_blas_thread():
                score = make_model(self._state.knowledge.config).scorer(self._shared_at(position))
            self._scorers[position] = lambda rows, owned: score(rows, owned[owned < items])
        return self._scorers[position]

    def _shared_at(self, position: int) -> Arrays:
        if position not in self._shared:
            fingerprint = self._state.chain[position].fingerprint
            self._shared[position] = self._checkpoints.get(fingerprint).parameters.shared
        return self._shared[position]

    def _rows_at(self, position: int) -> Arrays:
        if position not in self._rows:
            fingerprint = self._state.rows_link(position).fingerprint
            self._rows[position] = self._checkpoints.get(fingerprint).parameters.rows
        return self._rows[position]


def _mean_of_known(found: Sequence[NDArray[np.float32]], items: int) -> NDArray[np.float32]:
    """Return the mean score of each item over the models that know it, −∞ where none does."""
    total = np.zeros(items, np.float32)
    judges = np.zeros(items, np.float32)
    for scores in found:
        total[: len(scores)] += scores
        judges[: len(scores)] += 1
    return np.where(judges > 0, total / np.maximum(judges, 1), np.float32(-np.inf))
