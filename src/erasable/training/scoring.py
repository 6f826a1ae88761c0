"""What scores users: shared parameters of one or several stages, and the rows of each group's own stage."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from erasable.models import Arrays, Scorer, make_model
from erasable.models.blas import one_blas_thread
from erasable.models.ranking import ItemNumbers, top_items
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
        self._scorers: dict[int, Scorer] = {}
        if state.knowledge.config.aggregate != "own":
            for position in self._judges(0):
                self._scorer(position)

    def scores(self, position: int, row: int) -> NDArray[np.float32]:
        """Return one score for each item of the catalogue; higher is better."""
        personal = {name: array[row] for name, array in self._rows_at(position).items()}
        judges = self._judges(position)
        with one_blas_thread():
            total = self._scorer(judges[0])(personal, self.owned(position, row))
            for judge in judges[1:]:
                total = total + self._scorer(judge)(personal, self.owned(position, row))
        return total if len(judges) == 1 else total / np.float32(len(judges))

    def probabilities(self, position: int, row: int) -> NDArray[np.float64]:
        """Return the scores as the loss takes them, between 0 and 1; scores of several models are averaged before."""
        return make_model(self._state.knowledge.config).probability(self.scores(position, row))

    def owned(self, position: int, row: int) -> NDArray[np.int32]:
        """Return the numbers of the items that the user has in training."""
        return self._state.knowledge.groups[position].items_at(row)

    def top(self, position: int, row: int, k: int) -> tuple[ItemNumbers, NDArray[np.float32]]:
        """Return the numbers and scores of the k best items that the user does not have in training."""
        scores = self.scores(position, row)
        items = top_items(scores, k, excluded=self.owned(position, row))
        return items, scores[items]

    def _judges(self, position: int) -> Sequence[int]:
        """Return the positions of the stages whose shared parameters score the users of a group."""
        match self._state.knowledge.config.aggregate:
            case "own":
                return (position,)
            case "mean":
                samples = [link.samples for link in self._state.chain]
                return [place for place, learned in enumerate(samples) if learned] or (position,)
            case _:
                return (len(self._state.chain) - 1,)

    def _scorer(self, position: int) -> Scorer:
        if position not in self._scorers:
            shared = self._checkpoints.get(self._state.chain[position].fingerprint).parameters.shared
            with one_blas_thread():
                self._scorers[position] = make_model(self._state.knowledge.config).scorer(shared)
        return self._scorers[position]

    def _rows_at(self, position: int) -> Arrays:
        if position not in self._rows:
            fingerprint = self._state.chain[position].fingerprint
            self._rows[position] = self._checkpoints.get(fingerprint).parameters.rows
        return self._rows[position]
