"""What scores users: shared parameters of one or several stages, and rows that a stage trained or that are solved."""

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions
from erasable.errors import Refused
from erasable.models import (
    Arrays,
    Change,
    Effort,
    Explains,
    Stage,
    Subtracts,
    TellsSimilarItems,
    calls,
    make_model,
    models_with,
    probability_by,
)
from erasable.models.blas import one_blas_thread
from erasable.training.checkpoint import CheckpointStore
from erasable.training.row_cache import RowCache
from erasable.training.state import State

Place = tuple[int, int]
"""A user, by the position of the group and the row in it."""
_TOGETHER = 256  # people whose rows are solved in one call: what a call takes beside solving is then next to nothing


class Scoring:
    """Scores the catalogue for a user, who is named by the position of the group and the row in it.

    A chain scores with the shared parameters of its last stage. Under the strategy sisa every stage has a model of its
    own: a user is scored by that of the own group, or by the mean of all that have learned from someone. Rows that no
    stage trained are solved when they are needed; `rows_kept` of them are kept in a cache.
    May be used by several threads at once; a user's scores never depend on who else is scored.
    """

    def __init__(self, state: State, checkpoints: CheckpointStore, rows_kept: int = 0) -> None:
        self._state = state
        self._checkpoints = checkpoints
        self._model = make_model(state.knowledge.config)
        self._trained_rows: dict[int, Arrays] = {}
        self._shared: dict[int, Arrays] = {}
        self._prepared: dict[int, Any] = {}
        self.cache = RowCache(rows_kept)
        if state.knowledge.config.aggregate != "own":
            for position in self._judges(0):
                self._prepared_at(position)

    def scores(self, position: int, row: int) -> NDArray[np.float32]:
        """Return one score for each item, higher is better; items that no stage knows have −∞."""
        return next(self.each([(position, row)]))

    def each(self, places: Sequence[Place]) -> Iterator[NDArray[np.float32]]:
        """Yield the scores of several users, in their order; rows that are to be solved are solved together."""
        for low in range(0, len(places), _TOGETHER):
            some = places[low : low + _TOGETHER]
            for place, personal in zip(some, self.rows(some), strict=True):
                owned, judges = self.owned(*place), self._judges(place[0])
                yield _mean_of_known([self._score(judge, personal, owned) for judge in judges])

    def of_history(self, history: Interactions) -> NDArray[np.float32]:
        """Return the scores for one person's history, which need not be known; every model that has learned judges."""
        judges = self._judges_of_history()
        rows = [_row_at(self.represent(history, judge), 0) for judge in judges]
        return _mean_of_known(
            [self._score(judge, row, history.item_index) for judge, row in zip(judges, rows, strict=True)]
        )

    def probabilities_of(self, scores: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return scores as the loss takes them, between 0 and 1; those of several models are averaged before."""
        return probability_by(self._model, scores)

    def similar(self, number: int) -> NDArray[np.float32]:
        """Return how much each item is like one, by the last stage; 0 where it does not know one of the two.

        Refused if the model can't tell.
        """
        last = len(self._state.chain) - 1
        if not isinstance(self._model, TellsSimilarItems):
            others = " and ".join(models_with(TellsSimilarItems))
            raise Refused(f"{self._model.name} can't tell which items are alike: learn with one of the models {others}")
        known = self._state.knowledge.known(last)
        found = np.zeros(known.total, np.float32)
        (own,) = known.numbers_of(np.array([number], np.int32)) if number in known.places else (-1,)
        if own >= 0:
            with one_blas_thread():
                found[known.places] = calls.similar(self._model, self._shared_at(last), int(own), len(known))
        return found

    @property
    def explains(self) -> bool:
        """Whether the model can tell which items speak for an item."""
        return isinstance(self._model, Explains)

    def refuse_without_reasons(self) -> None:
        """Refuse a model that can't tell which items speak for an item."""
        if not self.explains:
            others = " and ".join(models_with(Explains))
            raise Refused(f"{self._model.name} can't tell which items speak for an item: learn with the model {others}")

    def reasons(self, owned: NDArray[np.int32], number: int, position: int | None = None) -> NDArray[np.float32]:
        """Return what each of someone's items adds to the score of one item, which never speaks for itself.

        The person is of the group at a position, or has a history and no group. Refused if the model can't tell.
        """
        self.refuse_without_reasons()
        judges = self._judges_of_history() if position is None else self._judges(position)
        found = [self._reasons(judge, owned, number) for judge in judges]
        known = [reasons for reasons in found if reasons is not None]
        return np.mean(known, axis=0, dtype=np.float32) if known else np.zeros(len(owned), np.float32)

    def owned(self, position: int, row: int) -> NDArray[np.int32]:
        """Return the numbers of the items that the user has in training."""
        return self._state.knowledge.groups[position].items_at(row)

    def rows(self, places: Sequence[Place]) -> list[Arrays]:
        """Return the row of each user: as a stage trained it, from the cache, or solved together with the others."""
        if not self._state.knowledge.solves_rows:
            return [_row_at(self._trained_rows_at(position), row) for position, row in places]
        groups = self._state.knowledge.groups
        names = [groups[position].users[row] for position, row in places]
        found = {user: self.cache.get(user) for user in names}
        missing = {place for place, user in zip(places, names, strict=True) if found[user] is None}
        for position in sorted({position for position, _ in missing}):
            people = groups[position].at(np.array(sorted(row for place, row in missing if place == position)))
            solved = self.represent(people, len(self._state.chain) - 1)
            for number, user in enumerate(people.users):
                # A copy, so that one row that is kept does not keep the others with it.
                found[user] = own = {name: array.copy() for name, array in _row_at(solved, number).items()}
                self.cache.put(user, own)
        return [found[user] or {} for user in names]

    def represent(self, people: Interactions, judge: int) -> Arrays:
        """Return a row for each of these people under the shared parameters of a stage, from their own histories."""
        knowledge, prepared = self._state.knowledge, self._prepared_at(judge)
        config, known = knowledge.config, knowledge.known(judge).over(people.timeless)
        stage = Stage(known, knowledge.scale, config.row_epochs, config.seed, position=0)
        with one_blas_thread():
            if len(known.users) == len(people.users):
                return calls.represented(self._model, prepared, stage, Effort())
            strangers = calls.newcomers(self._model, prepared, people.users, known.items, config.seed)
            if not len(known):
                return strangers
            solved = calls.represented(self._model, prepared, stage, Effort())
        return calls.joined(self._model, strangers, people.users.positions_of(known.users.array), solved)

    def bar(self, users: Collection[str]) -> None:
        """Drop the rows of these users, who are not served, and keep none of theirs."""
        self.cache.bar(users)

    def bar_also(self, users: Collection[str]) -> None:
        """Drop the rows of these users too; what that costs does not grow with who was barred before."""
        self.cache.bar_also(users)

    def rid_of(self, change: Change) -> "Scoring":
        """Return what scores without some data of the learners, as far as that can be told at once."""
        if not isinstance(self._model, Subtracts):
            return self
        last = len(self._state.chain) - 1
        shared = self._shared_at(last)
        with one_blas_thread():
            provisional = calls.provisional(self._model, shared, change)
        if provisional is shared:
            return self
        other = copy(self)
        other._shared, other._prepared = {**self._shared, last: provisional}, {}
        other.cache = RowCache(self.cache.size)
        return other

    def _score(self, judge: int, personal: Arrays, owned: NDArray[np.int32]) -> NDArray[np.float32]:
        prepared, known = self._prepared_at(judge), self._state.knowledge.known(judge)
        with one_blas_thread():
            found = calls.scored(self._model, prepared, personal, known.numbers_of(owned), len(known))
        return known.among_all(found)

    def _reasons(self, judge: int, owned: NDArray[np.int32], number: int) -> NDArray[np.float32] | None:
        """Return what each item adds to the score of one by the model of a stage; None if that does not know it."""
        prepared, known = self._prepared_at(judge), self._state.knowledge.known(judge)
        own, speaking = known.numbers_of(np.array([number], np.int32)), known.numbers_of(owned)
        if not len(own) or not isinstance(self._model, Explains):
            return None
        found = np.zeros(known.total, np.float32)  # a stage may number items otherwise than all stages together do
        with one_blas_thread():
            found[known.places[speaking]] = calls.reasons(self._model, prepared, speaking, int(own[0]))
        found[number] = 0
        return found[owned]

    def _judges_of_history(self) -> Sequence[int]:
        """Return the positions of the stages whose shared parameters score who is in no group."""
        return self._judges(0) if self._state.knowledge.config.aggregate is None else self._learned_stages(0)

    def _judges(self, position: int) -> Sequence[int]:
        """Return the positions of the stages whose shared parameters score the users of a group."""
        match self._state.knowledge.config.aggregate:
            case "own":
                return (position,)
            case "mean":
                return self._learned_stages(position)
            case _:
                return (len(self._state.chain) - 1,)

    def _learned_stages(self, otherwise: int) -> Sequence[int]:
        return [place for place, link in enumerate(self._state.chain) if link.samples] or (otherwise,)

    def _prepared_at(self, judge: int) -> Any:  # noqa: ANN401 - the model's own
        if judge not in self._prepared:
            with one_blas_thread():
                self._prepared[judge] = calls.prepared(self._model, self._shared_at(judge))
        return self._prepared[judge]

    def _shared_at(self, position: int) -> Arrays:
        if position not in self._shared:
            fingerprint = self._state.chain[position].fingerprint
            self._shared[position] = self._checkpoints.get(fingerprint).parameters.shared
        return self._shared[position]

    def _trained_rows_at(self, position: int) -> Arrays:
        if position not in self._trained_rows:
            self._trained_rows[position] = self._state.trained_rows(self._checkpoints, position)
        return self._trained_rows[position]


def _row_at(rows: Arrays, number: int) -> Arrays:
    return {name: array[number] for name, array in rows.items()}


def _mean_of_known(found: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the mean score of each item over the models that know it, −∞ where none does."""
    if len(found) == 1:
        return found[0]
    total, judges = np.zeros_like(found[0]), np.zeros_like(found[0])
    for scores in found:
        known = np.isfinite(scores)
        total[known] += scores[known]
        judges += known
    return np.where(judges > 0, total / np.maximum(judges, 1), np.float32(-np.inf))
