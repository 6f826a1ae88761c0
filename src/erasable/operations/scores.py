"""Score: what the model says about named items, for known users or for a history."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from erasable.errors import WrongUse
from erasable.models.machine import one_blas_thread
from erasable.operations.offers import Served
from erasable.operations.recommend import History, nothing_for, reading_served
from erasable.operations.storage import Storage


class UserScores(NamedTuple):
    """The scores of some items for one user, in the order in which they were asked for."""

    user_id: str
    scores: tuple[tuple[str, float | None], ...]
    """Each item with its score; None if the model has none: the item is unknown or hidden, or says nothing here."""
    left_out: tuple[str, ...] = ()
    """Items of a history that are not in the catalogue."""


def score(
    storage: Storage, users: Sequence[str], items: Sequence[str], ignore_unknown: bool = False
) -> list[UserScores]:
    """Return the scores of these items for each of these users; unknown and suppressed ones are refused or left out."""
    with reading_served(storage) as served:
        known = [user for user in users if served.find(user) is not None] if ignore_unknown else users
        return scores_of(served, known, items)


def score_for_history(storage: Storage, history: History, items: Sequence[str]) -> UserScores:
    """Return the scores of these items for someone with this history and no id; nothing of it is stored."""
    with reading_served(storage) as served:
        return scores_of_history(served, history, items)


def scores_of(served: Served, users: Sequence[str], items: Sequence[str]) -> list[UserScores]:
    """Return the scores of these items for each of these users."""
    refuse_nothing_to_score(items)
    found = list[UserScores]()
    with one_blas_thread():
        for user in users:
            place = served.find(user)
            if place is None:
                raise nothing_for(user, served)
            found.append(UserScores(user, tuple(zip(items, served.scores_at(place, items), strict=True))))
    return found


def scores_of_history(served: Served, history: History, items: Sequence[str]) -> UserScores:
    """Return the scores of these items for someone with this history."""
    refuse_nothing_to_score(items)
    ratings = history if isinstance(history, Mapping) else dict.fromkeys(history)
    known, unknown = served.history(ratings)
    with one_blas_thread():
        scores = served.scores_for_history(known, items)
    return UserScores("", tuple(zip(items, scores, strict=True)), tuple(unknown))


def refuse_nothing_to_score(items: Sequence[str]) -> None:
    """Refuse to score no item."""
    if not items:
        raise WrongUse("there is nothing to score: name at least one item")
