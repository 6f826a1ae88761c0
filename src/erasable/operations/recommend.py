"""Recommend: the best items for some users, or popular ones for those who are unknown."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from erasable.errors import UnknownUser, WrongUse
from erasable.models.blas import one_blas_thread
from erasable.models.ranking import top_items
from erasable.operations.home import Home, Session
from erasable.operations.work import QUIET_WORK, Work
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
    """Return the k best items for each of these users (None: for all), in their order."""
    if k < 1:
        raise WrongUse(f"{k} items make no sense: give k of 1 or more")
    with home.reading() as session:
        knowledge = session.state().knowledge
        wanted = _everyone(knowledge) if users is None else [_find(knowledge, user) for user in users]
        unknown = [] if users is None else [u for u, place in zip(users, wanted, strict=True) if place is None]
        if unknown and not popular_fallback:
            raise UnknownUser(
                f"nothing is held about the user {unknown[0]!r}: check the id, or give --fallback popular"
            )
        names = [user for group in knowledge.groups for user in group.users] if users is None else list(users)
        popular = _popular(knowledge, k) if unknown else []
        return _scored(session, names, wanted, k, popular, work)


def _scored(
    session: Session,
    names: Sequence[str],
    places: Sequence[tuple[int, int] | None],
    k: int,
    popular: Sequence[tuple[str, float]],
    work: Work,
) -> list[UserRecommendations]:
    scoring = Scoring(session.state(), session.checkpoints)
    items = session.state().knowledge.catalogue.items

    def best(place: tuple[int, int] | None) -> Sequence[tuple[str, float]]:
        if place is None:
            return popular
        numbers, scores = scoring.top(*place, k)
        return [(items[int(number)], float(score)) for number, score in zip(numbers, scores, strict=True)]

    def several(first: int) -> list[UserRecommendations]:
        part = slice(first, first + _USERS_PER_TASK)
        return [UserRecommendations(*pair) for pair in zip(names[part], map(best, places[part]), strict=True)]

    found: list[UserRecommendations] = []
    with (
        one_blas_thread(),
        ThreadPoolExecutor(work.threads) as pool,
        work.reporter.track("recommending", len(names)) as advance,
    ):
        for part in pool.map(several, range(0, len(names), _USERS_PER_TASK)):
            found += part
            advance(len(part))
    return found


def _everyone(knowledge: Knowledge) -> list[tuple[int, int] | None]:
    return [(position, row) for position, group in enumerate(knowledge.groups) for row in range(len(group.users))]


def _find(knowledge: Knowledge, user: str) -> tuple[int, int] | None:
    try:
        return knowledge.find(user)
    except UnknownUser:
        return None


def _popular(knowledge: Knowledge, k: int) -> list[tuple[str, float]]:
    """Return the items with most interactions; counted anew each time, so forgetting takes from the counts."""
    counts = np.zeros(len(knowledge.catalogue.items), dtype=np.float32)
    for group in knowledge.groups:
        counts += np.bincount(group.item_index, minlength=len(counts))
    return [
        (knowledge.catalogue.items[int(number)], float(counts[number])) for number in top_items(counts, k, _NOTHING)
    ]
