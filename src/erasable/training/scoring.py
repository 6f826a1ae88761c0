"""What scores users: the last stage's shared parameters, and the rows of each group's own stage."""

import numpy as np
from numpy.typing import NDArray

from erasable.models import Arrays, make_model
from erasable.models.blas import one_blas_thread
from erasable.models.ranking import ItemNumbers, top_items
from erasable.training.checkpoint import CheckpointStore
from erasable.training.state import State


class Scoring:
    """Scores the catalogue for a user, who is named by the position of the group and the row in it.

    May be used by several threads at once; a user's scores never depend on who else is scored.
    """

    def __init__(self, state: State, checkpoints: CheckpointStore) -> None:
        self._state = state
        self._checkpoints = checkpoints
        self._rows: dict[int, Arrays] = {}
        shared = checkpoints.get(state.chain[-1].fingerprint).parameters.shared
        with one_blas_thread():
            self._scorer = make_model(state.knowledge.config).scorer(shared)

    def scores(self, position: int, row: int) -> NDArray[np.float32]:
        """Return one score for each item of the catalogue; higher is better."""
        personal = {name: array[row] for name, array in self._rows_at(position).items()}
        with one_blas_thread():
            return self._scorer(personal, self.owned(position, row))

    def owned(self, position: int, row: int) -> NDArray[np.int32]:
        """Return the numbers of the items that the user has in training."""
        return self._state.knowledge.groups[position].items_at(row)

    def top(self, position: int, row: int, k: int) -> tuple[ItemNumbers, NDArray[np.float32]]:
        """Return the numbers and scores of the k best items that the user does not have in training."""
        scores = self.scores(position, row)
        items = top_items(scores, k, excluded=self.owned(position, row))
        return items, scores[items]

    def _rows_at(self, position: int) -> Arrays:
        if position not in self._rows:
            fingerprint = self._state.chain[position].fingerprint
            self._rows[position] = self._checkpoints.get(fingerprint).parameters.rows
        return self._rows[position]
