"""Recommend: the best items for some users, or popular ones for those who are unknown."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from erasable.errors import Suppressed, UnknownUser, WrongUse
from erasable.models.blas import one_blas_thread
from erasable.operations.home import Home
from erasable.operations.offers import Offer, Place, Served, Stock
from erasable.operations.suppressed import suppressed_people
from erasable.operations.work import QUIET_WORK, Work
from erasable.threads import pool_of
from erasable.training import Knowledge, Scoring

_USERS_PER_TASK = 100  # threads that meet after each user spend more time on meeting than on scoring


@dataclass(frozen=True)
class Recommendation:
    """One item for one user; rank 1 is best."""

    user_id: str
    item_id: str
    score: float
    rank: int
    popular: bool = False
    """Whether it fills up, where the model says nothing: then the score is how many people have the item."""


class UserRecommendations(list[Recommendation]):
    """The items for one user, best first; empty if the user has every item already."""

    def __init__(self, user_id: str, ranked: Iterable[Offer]) -> None:
        super().__init__(
            Recommendation(user_id, offer.item_id, offer.score, rank, offer.popular)
            for rank, offer in enumerate(ranked, start=1)
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

    Whoever has asked to be erased is suppressed from the moment that the request is accepted.
    """
    with home.reading() as session:
        withheld = suppressed_people(session)
        knowledge, scoring = session.state().knowledge, Scoring(session.state(), session.checkpoints)
        return best_items(Served(knowledge, scoring, withheld, Stock(knowledge)), users, k, popular_fallback, work)


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
        places: list[Place | None] = [place for _, place in everyone]
    else:
        names, places = list(users), [served.find(user) for user in users]
    unknown = [user for user, place in zip(names, places, strict=True) if place is None]
    if unknown and not popular_fallback:
        raise _no_recommendations_for(unknown[0], served)
    return _scored(served, names, places, (k, served.popular(k) if unknown else []), work)


def _no_recommendations_for(user: str, served: Served) -> UnknownUser:
    if user in served.withheld:
        return Suppressed(
            f"the user {user!r} has asked to be erased and is suppressed: leave them out, or give --fallback popular"
        )
    return UnknownUser(f"nothing is held about the user {user!r}: check the id, or give --fallback popular")


def _scored(
    served: Served,
    names: Sequence[str],
    places: Sequence[Place | None],
    wanted: tuple[int, Sequence[Offer]],
    work: Work,
) -> list[UserRecommendations]:
    k, popular = wanted

    def best(place: Place | None) -> Sequence[Offer]:
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


def _everyone(knowledge: Knowledge) -> Iterator[tuple[str, Place]]:
    for position, group in enumerate(knowledge.groups):
        yield from ((user, (position, row)) for row, user in enumerate(group.users))
