"""Scoring items for users: with the shared parameters of one or several stages, and user rows, trained or solved."""

from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.chain.buckets import Place
from erasable.chain.checkpoints import CheckpointStore
from erasable.chain.dataset import State
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.errors import Refused
from erasable.models import TorchModel, calls
from erasable.models.base import Arrays, Change, Effort, Explains, Stage, Subtracts, TellsSimilarItems, probability_by
from erasable.models.machine import one_blas_thread
from erasable.models.registry import make_model, models_with
from erasable.wording import listed

ROWS_SERVED = 20_000
"""How many rows a serving process caches: about 10 MB for rows of 64 numbers."""


class RowCache:
    """A cache of rows by user id, of limited size; safe to use from several threads."""

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self._rows: OrderedDict[str, Arrays] = OrderedDict()
        self._barred: set[str] = set()
        self._lock = Lock()

    def get(self, user: str) -> Arrays | None:
        """Return a user's row if it is cached."""
        with self._lock:
            found = self._rows.get(user)
            if found is not None:
                self._rows.move_to_end(user)
            return found

    def put(self, user: str, rows: Arrays) -> None:
        """Cache a user's row, unless the user is barred."""
        with self._lock:
            if self.size and user not in self._barred:
                self._rows[user] = rows
                self._rows.move_to_end(user)
                if len(self._rows) > self.size:
                    self._rows.popitem(last=False)

    def bar(self, users: Collection[str]) -> None:
        """Drop the rows of these users, and cache none of them until the next call replaces the list.

        A row that is being solved meanwhile is not cached either.
        """
        with self._lock:
            barred, before = set(users), self._barred
            self._barred = barred
            self._drop(barred - before)  # rows of those barred before were not cached since

    def bar_also(self, users: Collection[str]) -> None:
        """Bar these users too."""
        with self._lock:
            self._barred.update(users)
            self._drop(users)

    def _drop(self, users: Collection[str]) -> None:
        for user in users:
            self._rows.pop(user, None)

    def __contains__(self, user: str) -> bool:
        """Whether a user's row is cached."""
        return user in self._rows

    def __len__(self) -> int:
        return len(self._rows)


_TOGETHER = 256  # people whose rows are solved in one call: enough to make the overhead of a call negligible


class Scoring:
    """Scores the catalogue for users, each given by the place of their data.

    A chain scores with the shared parameters of its last stage. Under the strategy sisa every stage has its own model:
    a user is scored by the model of their own group, or by the mean of all models that learned from anyone. Rows that
    no stage trained are solved when needed; `rows_kept` of them are cached. Safe to use from several threads; a user's
    scores never depend on who else is scored.
    """

    def __init__(self, state: State, checkpoints: CheckpointStore, rows_kept: int = 0) -> None:
        self._state = state
        self._checkpoints = checkpoints
        self._model = make_model(state.dataset.config)
        self._trained_rows: dict[int, tuple[Ids, Arrays]] = {}
        self._shared: dict[int, Arrays] = {}
        self._prepared: dict[int, Any] = {}
        self.cache = RowCache(rows_kept)
        if state.dataset.config.aggregate != "own":
            for position in self._scorers(0):
                self._prepared_at(position)

    def scores(self, place: Place) -> NDArray[np.float32]:
        """Return one score for each item, higher is better; −∞ for items that no stage knows."""
        return next(self.each([place]))

    def each(self, places: Sequence[Place]) -> Iterator[NDArray[np.float32]]:
        """Yield the scores of several users, in order; missing rows are solved together."""
        for low in range(0, len(places), _TOGETHER):
            some = places[low : low + _TOGETHER]
            for place, personal in zip(some, self.rows(some), strict=True):
                owned, scorers = self.owned(place), self._scorers(place.group)
                yield _mean_of_known([self._score(scorer, personal, owned) for scorer in scorers])

    def of_history(self, history: Interactions) -> NDArray[np.float32]:
        """Return the scores for a history, which need not be a known user's; every trained model scores it."""
        scorers = self._scorers_of_history()
        rows = [_row_at(self.represent(history, scorer), 0) for scorer in scorers]
        return _mean_of_known(
            [self._score(scorer, row, history.item_index) for scorer, row in zip(scorers, rows, strict=True)]
        )

    def probabilities_of(self, scores: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return scores as probabilities; scores of several models were averaged before."""
        return probability_by(self._model, scores)

    def similar(self, number: int) -> NDArray[np.float32]:
        """Return each item's similarity to one item, as the mean over the stages that know it; 0 for unknown items.

        A model that can't tell which items are similar scores them for someone who has this one item and no other.
        """
        dataset = self._state.dataset
        if not isinstance(self._model, TellsSimilarItems) and dataset.known_to_some[number]:
            own, rating = np.array([number], np.int32), np.array([dataset.scale.high], np.float32)
            scores = self.of_history(Interactions(Ids.of([""]), dataset.items, np.zeros_like(own), own, rating))
            return np.where(np.isfinite(scores), scores, np.float32(0))
        found = [self._similar(scorer, number) for scorer in self._scorers_of_history()]
        known = [one for one in found if one is not None]
        return np.mean(known, axis=0, dtype=np.float32) if known else np.zeros(len(dataset.items), np.float32)

    @property
    def explains(self) -> bool:
        """Whether the model can explain its scores."""
        return isinstance(self._model, Explains)

    def refuse_without_reasons(self) -> None:
        """Refuse a model that can't explain its scores."""
        if not self.explains:
            others = listed(models_with(Explains), "or")
            raise Refused(
                f"{self._model.name} can't explain a score by the person's items: learn with the model {others}"
            )

    def reasons(self, owned: NDArray[np.int32], number: int, position: int | None = None) -> NDArray[np.float32]:
        """Return what each of a user's items adds to the score of one item; the item itself adds nothing.

        The user belongs to the group at a position, or to none (a history). Refused if the model can't explain.
        """
        self.refuse_without_reasons()
        scorers = self._scorers_of_history() if position is None else self._scorers(position)
        found = [self._reasons(scorer, owned, number) for scorer in scorers]
        known = [reasons for reasons in found if reasons is not None]
        return np.mean(known, axis=0, dtype=np.float32) if known else np.zeros(len(owned), np.float32)

    def owned(self, place: Place) -> NDArray[np.int32]:
        """Return the numbers of the items that the user has in training."""
        return self._state.dataset.buckets[place.bucket].training.items_at(place.row)

    def rows(self, places: Sequence[Place]) -> list[Arrays]:
        """Return the row of each user: trained in a stage, from the cache, or solved together with the others."""
        dataset = self._state.dataset
        if not dataset.solves_rows:
            return [self._trained_row(place) for place in places]
        names = [dataset.user_at(place) for place in places]
        found = {user: self.cache.get(user) for user in names}
        missing = {place for place, user in zip(places, names, strict=True) if found[user] is None}
        for number in sorted({place.bucket for place in missing}):
            rows = np.array(sorted(place.row for place in missing if place.bucket == number))
            people = dataset.buckets[number].training.at(rows)
            solved = self.represent(people, len(self._state.chain) - 1)
            for number, user in enumerate(people.users):
                # A copy, so that one cached row does not keep all the others in memory.
                found[user] = own = {name: array.copy() for name, array in _row_at(solved, number).items()}
                self.cache.put(user, own)
        return [found[user] or {} for user in names]

    def represent(self, people: Interactions, scorer: int) -> Arrays:
        """Return a row for each of these people, from their own histories and the shared parameters of a stage."""
        dataset, prepared = self._state.dataset, self._prepared_at(scorer)
        config, known = dataset.config, dataset.known(scorer).over(dataset.as_learned(people))
        weights = config.weighed
        stage = Stage(known, dataset.scale, config.row_epochs, config.seed, position=0, weights=weights)
        with one_blas_thread():
            if len(known.users) == len(people.users):
                return calls.represented(self._model, prepared, stage, Effort())
            starting = calls.newcomers(self._model, prepared, people.users, known.items, config.seed)
            if not len(known):
                return starting
            solved = calls.represented(self._model, prepared, stage, Effort())
        return calls.joined(self._model, starting, people.users.positions_of(known.users.array), solved)

    def bar(self, users: Collection[str]) -> None:
        """Drop the rows of these users, who are not served, and cache none of them."""
        self.cache.bar(users)

    def bar_also(self, users: Collection[str]) -> None:
        """Bar these users too; the cost does not depend on how many were barred before."""
        self.cache.bar_also(users)

    def asks_another_process(self, user: str) -> bool:
        """Whether a user's scores come from the process of a torch model, which answers one question at a time."""
        if not isinstance(self._model, TorchModel):
            return False
        prepared = self._prepared.get(len(self._state.chain) - 1)
        return prepared is None or prepared.vectors is None or user not in self.cache

    @property
    def can_subtract(self) -> bool:
        """Whether the model can subtract training data at once."""
        return isinstance(self._model, Subtracts)

    def subtracting(self, change: Change) -> "Scoring":
        """Return scores without some training data, as far as the model can subtract it at once."""
        if not isinstance(self._model, Subtracts):
            return self
        last = len(self._state.chain) - 1
        shared = self._shared_at(last)
        with one_blas_thread():
            dataset = self._state.dataset
            whole = replace(change, weights=dataset.config.weighed, features=dataset.features_at(last))
            provisional = calls.provisional(self._model, shared, whole)
        if provisional is shared:
            return self
        other = copy(self)
        other._shared, other._prepared = {**self._shared, last: provisional}, {}
        other.cache = RowCache(self.cache.size)
        return other

    def _score(self, scorer: int, personal: Arrays, owned: NDArray[np.int32]) -> NDArray[np.float32]:
        prepared, known = self._prepared_at(scorer), self._state.dataset.known(scorer)
        with one_blas_thread():
            found = calls.scored(self._model, prepared, personal, known.numbers_of(owned), len(known))
        return known.among_all(found)

    def _similar(self, scorer: int, number: int) -> NDArray[np.float32] | None:
        """Return each item's similarity to one item under a stage's model; None if that is unknown there."""
        known = self._state.dataset.known(scorer)
        own = known.numbers_of(np.array([number], np.int32))
        if not len(own) or not isinstance(self._model, TellsSimilarItems):
            return None
        found = np.zeros(known.total, np.float32)
        with one_blas_thread():
            found[known.places] = calls.similar(self._model, self._shared_at(scorer), int(own[0]), len(known))
        return found

    def _reasons(self, scorer: int, owned: NDArray[np.int32], number: int) -> NDArray[np.float32] | None:
        """Return what each item adds to the score of one item under a stage's model; None if it is unknown there."""
        prepared, known = self._prepared_at(scorer), self._state.dataset.known(scorer)
        own, speaking = known.numbers_of(np.array([number], np.int32)), known.numbers_of(owned)
        if not len(own) or not isinstance(self._model, Explains):
            return None
        found = np.zeros(known.total, np.float32)  # a stage has its own numbering of items
        with one_blas_thread():
            found[known.places[speaking]] = calls.reasons(self._model, prepared, speaking, int(own[0]))
        found[number] = 0
        return found[owned]

    def _scorers_of_history(self) -> Sequence[int]:
        """Return the positions of the stages that score a history without a group."""
        return self._scorers(0) if self._state.dataset.config.aggregate is None else self._learned_stages(0)

    def _scorers(self, position: int) -> Sequence[int]:
        """Return the positions of the stages that score the users of a group."""
        match self._state.dataset.config.aggregate:
            case "own":
                return (position,)
            case "mean":
                return self._learned_stages(position)
            case _:
                return (len(self._state.chain) - 1,)

    def _learned_stages(self, otherwise: int) -> Sequence[int]:
        return [place for place, link in enumerate(self._state.chain) if link.samples] or (otherwise,)

    def _prepared_at(self, scorer: int) -> Any:  # noqa: ANN401 - the model's own
        if scorer not in self._prepared:
            with one_blas_thread():
                self._prepared[scorer] = calls.prepared(self._model, self._shared_at(scorer))
        return self._prepared[scorer]

    def _shared_at(self, position: int) -> Arrays:
        if position not in self._shared:
            fingerprint = self._state.chain[position].fingerprint
            self._shared[position] = self._checkpoints.get(fingerprint).parameters.shared
        return self._shared[position]

    def _trained_row(self, place: Place) -> Arrays:
        if not self._state.trains_rows:
            return {}
        if place.group not in self._trained_rows:
            rows = self._state.trained_rows(self._checkpoints, place.group)
            self._trained_rows[place.group] = self._state.dataset.groups[place.group].users, rows
        users, rows = self._trained_rows[place.group]
        return _row_at(rows, int(users.positions([self._state.dataset.user_at(place)])[0]))


def _row_at(rows: Arrays, number: int) -> Arrays:
    return {name: array[number] for name, array in rows.items()}


def _mean_of_known(found: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the mean score of each item over the models that know it, −∞ if none does."""
    if len(found) == 1:
        return found[0]
    total, scorers = np.zeros_like(found[0]), np.zeros_like(found[0])
    for scores in found:
        known = np.isfinite(scores)
        total[known] += scores[known]
        scorers += known
    return np.where(scorers > 0, total / np.maximum(scorers, 1), np.float32(-np.inf))
