"""Recommend: the best items for some users, or popular ones for those who are unknown."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from erasable.errors import UnknownUser, WrongUse
from erasable.models.blas import one_blas_thread
from erasable.models.ranking import top_items
from erasable.operations.home import Home
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import read_pending
from erasable.store.ledger import people_in_ledger
from erasable.threads import pool_of
from erasable.training import Knowledge, Scoring

_NOTHING = np.empty(0, dtype=np.int64)
_USERS_PER_TASK = 100  # threads that meet after each user spend more time on meeting than on scoring


@dataclass(frozen=True)
class Recommendation:
    """One item for one user; rank 1 is best."""

    user_id: str
    item_id: str
    score: float
    rank: int


class UserRecommendations(list[Recommendation]):
    """The items for one user, best first; empty if the user has every item already."""

    def __init__(self, user_id: str, ranked: Iterable[tuple[str, float]]) -> None:
        super().__init__(
            Recommendation(user_id, item, score, rank) for rank, (item, score) in enumerate(ranked, start=1)
        )
        self.user_id = user_id


def recommend(
    home: Home,
    users: Sequence[str] | None,
    k: int = 10,
    popular_fallback: bool = False,
    work: Work = QUIET_WORK,
) -> list[UserRecommendations]:
    """Return the k best items for each of these users (None: for all), in their order.

    Whoever has asked to be erased is unknown from the moment that the request is accepted.
    """
    with home.reading() as session:
        filed = people_in_ledger(session.path) if session.path else frozenset[str]()
        withheld = read_pending(session.papers().pending).users | filed
        scoring = Scoring(session.state(), session.checkpoints)
        return best_items(Served(session.state().knowledge, scoring, withheld), users, k, popular_fallback, work)


@dataclass(frozen=True)
class Served:
    """What recommendations come from, and who gets none because the own erasure is being carried out."""

    knowledge: Knowledge
    scoring: Scoring
    withheld: frozenset[str]

    def find(self, user: str) -> tuple[int, int] | None:
        """Return the position and row of a user, None if nothing is held that may be used."""
        try:
            return None if user in self.withheld else self.knowledge.find(user)
        except UnknownUser:
            return None

    def best(self, place: tuple[int, int], k: int) -> list[tuple[str, float]]:
        """Return the k best items for whoever is at a place, with their scores."""
        items = self.knowledge.catalogue.items
        numbers, scores = self.scoring.top(*place, k)
        return [(items[number], score) for number, score in zip(numbers.tolist(), scores.tolist(), strict=True)]


def refuse_no_items(k: int) -> None:
    """Refuse to recommend fewer than one item."""
    if k < 1:
        raise WrongUse(f"{k} items make no sense: give k of 1 or more")


def best_items(
    served: Served, users: Sequence[str] | None, k: int, popular_fallback: bool, work: Work
) -> list[UserRecommendations]:
    """Return the k best items for each of these users (None: for all), in their order."""
    refuse_no_items(k)
    if users is None:
        everyone = [pair for pair in _everyone(served.knowledge) if pair[0] not in served.withheld]
        names = [user for user, _ in everyone]
        places: list[tuple[int, int] | None] = [place for _, place in everyone]
    else:
        names, places = list(users), [served.find(user) for user in users]
    unknown = [user for user, place in zip(names, places, strict=True) if place is None]
    if unknown and not popular_fallback:
        raise UnknownUser(f"nothing is held about the user {unknown[0]!r}: check the id, or give --fallback popular")
    return _scored(served, names, places, (k, _popular(served, k) if unknown else []), work)


def _scored(
    served: Served,
    names: Sequence[str],
    places: Sequence[tuple[int, int] | None],
    wanted: tuple[int, Sequence[tuple[str, float]]],
    work: Work,
) -> list[UserRecommendations]:
    k, popular = wanted

    def best(place: tuple[int, int] | None) -> Sequence[tuple[str, float]]:
        return popular if place is None else served.best(place, k)

    def several(first: int) -> list[UserRecommendations]:
        part = slice(first, first + _USERS_PER_TASK)
        return [UserRecommendations(*pair) for pair in zip(names[part], map(best, places[part]), strict=True)]

    found: list[UserRecommendations] = []
    with (
        one_blas_thread(),
        pool_of(work.threads) as pool,
        work.reporter.track("recommending", len(names)) as advance,
    ):
        for part in pool.map(several, range(0, len(names), _USERS_PER_TASK)):
            found += part
            advance(len(part))
    return found


def _everyone(knowledge: Knowledge) -> Iterator[tuple[str, tuple[int, int]]]:
    for position, group in enumerate(knowledge.groups):
        yield from ((user, (position, row)) for row, user in enumerate(group.users))


def _popular(served: Served, k: int) -> list[tuple[str, float]]:
    """Return the items with most interactions; counted anew each time, without those of people who are withheld."""
    knowledge = served.knowledge
    counts = np.zeros(len(knowledge.catalogue.items), dtype=np.float32)
    for group in knowledge.groups:
        counts += np.bincount(group.item_index, minlength=len(counts))
        counts -= np.bincount(group.of_users(served.withheld).item_index, minlength=len(counts))
    return [
        (knowledge.catalogue.items[int(number)], float(counts[number])) for number in top_items(counts, k, _NOTHING)
    ]
