"""Recommend: the best items for users or for a history; popular ones for unknown users."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from erasable.chain.buckets import Place
from erasable.chain.dataset import Dataset
from erasable.chain.scoring import Scoring
from erasable.errors import Said, Suppressed, UnknownUser, WrongUse
from erasable.models.base import Effort
from erasable.models.machine import one_blas_thread
from erasable.operations.declared_items import DeclaredItems
from erasable.operations.offers import (
    MOST_REASONS,
    Explanation,
    Offer,
    OwnItem,
    Served,
    Shortage,
    Stock,
    refuse_no_items,
)
from erasable.operations.people import NumberedIds
from erasable.operations.remote import CarryOut, Facts
from erasable.operations.selection import EVERYTHING, Barring, Selection
from erasable.operations.storage import Session, Storage, asked_people
from erasable.operations.work import QUIET_WORK, Work, on_cluster
from erasable.progress import Advance
from erasable.requests.request import Asked
from erasable.threads import pool_of
from erasable.workspace.scratch import Scratch
from erasable.workspace.workspace import Workspace

History = Sequence[str] | Mapping[str, float | None]
"""Someone's items, or their ratings by item; an item without a rating counts as rated highest."""
Unknown = Literal["raise", "skip", "popular"]
"""What to do about unknown or suppressed users: refuse all, leave them out, or give them popular items."""
_FALLBACK = Said("unknown='skip' or 'popular'", "--fallback popular or --ignore-unknown")
_USERS_PER_TASK = 100  # threads that synchronise after each user spend more time on that than on scoring


@dataclass(frozen=True)
class Recommendation:
    """One item for one user; rank 1 is best."""

    user_id: str
    item_id: str
    score: float
    rank: int
    popular: bool = False
    """Whether the model has no score for it: then the score is how many people have the item."""
    because: tuple[OwnItem, ...] = ()
    """Which of the user's items contribute most to it, if that was asked for."""


class UserRecommendations(list[Recommendation]):
    """The items for one user, best first; where there is none, `shortage` says why."""

    def __init__(
        self,
        user_id: str,
        ranked: Sequence[Offer],
        left_out: Sequence[str] = (),
        why: Sequence[tuple[OwnItem, ...]] = (),
        shortage: Shortage | None = None,
    ) -> None:
        super().__init__(
            Recommendation(user_id, offer.item_id, offer.score, rank, offer.popular, because)
            for rank, (offer, because) in enumerate(zip(ranked, why or [()] * len(ranked), strict=True), start=1)
        )
        self.user_id = user_id
        self.left_out = tuple(left_out)
        """Items of a history that are not in the catalogue."""
        self.shortage = shortage
        """Why there is no item, if there is none."""


def recommend(
    storage: Storage,
    users: Sequence[str] | None,
    k: int = 10,
    unknown: Unknown = "raise",
    work: Work = QUIET_WORK,
    why: bool = False,
    selection: Selection = EVERYTHING,
) -> list[UserRecommendations]:
    """Return the k best items for each of these users (None: for all), in their order, and why if that is wanted.

    Whoever has asked to be erased is suppressed, or served without the items they named, as soon as the request is
    accepted.
    """
    with reading_served(storage) as served:
        return best_items(served, users, k, unknown, work, why, selection)


def recommend_to_all(
    storage: Storage, k: int = 10, work: Work = QUIET_WORK, why: bool = False, selection: Selection = EVERYTHING
) -> Iterator[list[UserRecommendations]]:
    """Yield the k best items for everyone who is served, bucket by bucket, so that they are never all in memory."""
    with storage.reading() as session:
        served = _served(storage, session)
        _refuse_unfit(served, k, why)
        barring = _barring(served, selection, work)
        with work.reporter.track("recommending", served.dataset.users) as advance:
            numbers, effort = range(len(served.dataset.buckets)), Effort(work.threads, advance)
            if work.cluster is None or why:
                wanted = _Wanted(k, why, barring)
                yield from (_to_bucket(served, number, wanted, effort) for number in numbers)
                return
            with on_cluster(work.cluster, session) as executor:
                remote = RemoteBuckets(session.stamp.version, served.asked, k, selection)
                yield from (found for _, found in executor.run(remote, numbers, effort))


def _to_bucket(served: Served, number: int, wanted: "_Wanted", effort: Effort) -> list[UserRecommendations]:
    """Return the best items for everyone of a bucket who is served; it does not stay in memory."""
    everyone = _people_of(served.dataset, number)
    people = [(user, place) for user, place in everyone if user not in served.suppressed]
    names, places = [user for user, _ in people], [place for _, place in people]
    found = _scored(served, names, places, wanted, effort.threads, effort.advance)
    served.dataset.buckets.release(number)
    return found


class RemoteBuckets:
    """Recommending to the people of one bucket, elsewhere; who has asked to be erased is written down once."""

    def __init__(self, version: int, asked: Asked, k: int, selection: Selection = EVERYTHING) -> None:
        self._facts = {"version": version, "k": k}
        some = {user: sorted(items) for user, items in asked.some.items()}
        self._asked = {"wholly": sorted(asked.wholly), "some": some, "selection": selection.as_facts()}
        self._file: str | None = None

    @property
    def carry_out(self) -> CarryOut:
        """Recommends to the people of a bucket."""
        return recommend_to_bucket

    def order(self, task: int, scratch: Scratch) -> Facts:
        """Write down which bucket."""
        self._file = self._file or scratch.put_facts("asked.json", self._asked)
        return {**self._facts, "bucket": task, "asked": self._file}

    def outcome(self, task: int, facts: Facts, scratch: Scratch) -> list[UserRecommendations]:
        """Read the recommendations."""
        content = scratch.get(facts["file"])
        with pq.ParquetFile(pa.BufferReader(content)) as file:
            table = file.read(use_threads=False)
        rows = zip(*(table[name].to_pylist() for name in ("user_id", *_OF_AN_OFFER)), strict=True)
        return [UserRecommendations(user, [Offer(*one) for one in zip(*offers, strict=True)]) for user, *offers in rows]


RECOMMENDATIONS = pa.schema(
    [
        ("user_id", pa.string()),
        ("item_id", pa.string()),
        ("score", pa.float64()),
        ("rank", pa.int64()),
        ("popular", pa.bool_()),
    ]
)
"""The columns of recommendations, one a row."""
_OF_AN_OFFER = ("item_id", "score", "popular")
_LISTS = pa.schema(
    [
        ("user_id", pa.string()),
        ("item_id", pa.list_(pa.string())),
        ("score", pa.list_(pa.float64())),
        ("popular", pa.list_(pa.bool_())),
    ]
)


def recommend_to_bucket(scratch: Scratch, facts: Facts, effort: Effort) -> Facts:
    """Recommend to the people of a bucket, in a worker."""
    asked = scratch.facts(facts["asked"])
    some = {user: frozenset(items) for user, items in asked["some"].items()}
    served = _served_by_a_task(scratch.root, facts["version"], Asked(frozenset(asked["wholly"]), some))
    wanted = _Wanted(facts["k"], False, served.barring(Selection.of_facts(asked["selection"])))
    found = _to_bucket(served, facts["bucket"], wanted, effort)
    columns = {name: [[getattr(one, name) for one in of_user] for of_user in found] for name in _OF_AN_OFFER}
    table, sink = pa.table({"user_id": [one.user_id for one in found], **columns}, _LISTS), pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return {"file": scratch.put("recommendations.parquet", sink.getvalue().to_pybytes())}


def _served_by_a_task(root: Path, version: int, asked: Asked) -> Served:
    workspace = Workspace.of_a_task(root, version)
    state = workspace.state()
    declared = DeclaredItems(workspace.declared_items())
    return Served(state.dataset, Scoring(state, workspace.checkpoints), asked, Stock(state.dataset), declared=declared)


def recommend_for_history(
    storage: Storage,
    history: History,
    k: int = 10,
    why: bool = False,
    selection: Selection = EVERYTHING,
    work: Work = QUIET_WORK,
) -> UserRecommendations:
    """Return the k best items for someone with this history and no id; nothing of it is stored.

    Items that are not in the catalogue are left out; if none is in it, popular items are returned.
    """
    with reading_served(storage) as served:
        return best_for_history(served, history, k, why, selection, work)


@contextmanager
def reading_served(storage: Storage) -> Iterator[Served]:
    """Open what recommendations come from, without those who have asked to be erased."""
    with storage.reading() as session:
        yield _served(storage, session)


def _served(storage: Storage, session: Session) -> Served:
    asked = asked_people(storage, session)
    dataset, scoring = session.state().dataset, Scoring(session.state(), session.checkpoints)
    numbered, declared = NumberedIds.of(session.documents().preferences), DeclaredItems(session.declared_items())
    return Served(dataset, scoring, asked, Stock(dataset), numbered, declared)


def best_for_history(
    served: Served,
    history: History,
    k: int,
    why: bool = False,
    selection: Selection = EVERYTHING,
    work: Work = QUIET_WORK,
) -> UserRecommendations:
    """Return the k best items for someone with this history, and what of it is not in the catalogue."""
    _refuse_unfit(served, k, why)
    ratings = history if isinstance(history, Mapping) else dict.fromkeys(history)
    known, unknown = served.history(ratings)
    barring = _barring(served, selection, work)
    with one_blas_thread():
        best = served.best_for_history(known, k, barring)
        reasons = served.why_for_history(known, best, MOST_REASONS) if why else ()
    return UserRecommendations(
        "", best, unknown, reasons, None if best else served.shortage_for_history(known, barring)
    )


def similar(
    storage: Storage, items: Sequence[str], k: int = 10, selection: Selection = EVERYTHING, work: Work = QUIET_WORK
) -> list[list[Offer]]:
    """Return the k items most similar to each of these; items that only suppressed people have are unknown."""
    refuse_no_items(k)
    with reading_served(storage) as served:
        return similar_to_each(served, items, k, selection, work)


def similar_to_each(
    served: Served, items: Sequence[str], k: int, selection: Selection = EVERYTHING, work: Work = QUIET_WORK
) -> list[list[Offer]]:
    """Return the k items most similar to each of these, of those that may be offered to everyone."""
    refuse_no_items(k)
    if selection.names_users:
        raise WrongUse("similar items are the same for everyone: give a list of items that names no users")
    barring = _barring(served, selection, work)
    return [served.similar(item, k, barring) for item in items]


def explain(served: Served, user: str, item: str, k: int) -> Explanation:
    """Return the k items of a user that add most to the score of an item; unknown and suppressed users are refused."""
    refuse_no_items(k)
    served.scoring.refuse_without_reasons()
    place = served.find(user)
    if place is None:
        raise nothing_for(user, served)
    with one_blas_thread():
        return served.explained(place, item, k)


def best_items(
    served: Served,
    users: Sequence[str] | None,
    k: int,
    unknown: Unknown,
    work: Work,
    why: bool = False,
    selection: Selection = EVERYTHING,
) -> list[UserRecommendations]:
    """Return the k best items for each of these users (None: for all), in their order, and why if that is wanted."""
    _refuse_unfit(served, k, why)
    if users is None:
        everyone = [pair for pair in _everyone(served.dataset) if pair[0] not in served.suppressed]
        names = [user for user, _ in everyone]
        places: list[Place | None] = [place for _, place in everyone]
    else:
        names, places = list(users), [served.find(user) for user in users]
    if None in places:
        if unknown == "raise":
            raise nothing_for(names[places.index(None)], served, ", or give ", _FALLBACK)
        if unknown == "skip":
            names = [user for user, place in zip(names, places, strict=True) if place is not None]
            places = [place for place in places if place is not None]
    wanted = _Wanted(k, why, _barring(served, selection, work))
    with work.reporter.track("recommending", len(names)) as advance:
        return _scored(served, names, places, wanted, work.threads, advance)


def _barring(served: Served, selection: Selection, work: Work) -> Barring:
    """Return what may not be offered, and tell which lists name unknown items."""
    if selection == EVERYTHING:
        return served.everything
    barring = served.barring(selection)
    barring.tell_unknown(selection, work.reporter)
    return barring


def _refuse_unfit(served: Served, k: int, why: bool) -> None:
    """Refuse to recommend no items, and to explain where the model can't."""
    refuse_no_items(k)
    if why:
        served.scoring.refuse_without_reasons()


def nothing_for(user: str, served: Served, *else_: str) -> UnknownUser:
    """Return the error for somebody about whom nothing is held, or nothing may be used."""
    if user in served.suppressed:
        return Suppressed(f"the user {user!r} has asked to be erased and is suppressed: leave them out", *else_)
    return UnknownUser(f"nothing is held about the user {user!r}: check the id", *else_)


class _Wanted(NamedTuple):
    k: int
    why: bool
    barring: Barring


def _scored(
    served: Served,
    names: Sequence[str],
    places: Sequence[Place | None],
    wanted: _Wanted,
    threads: int,
    advance: Advance,
) -> list[UserRecommendations]:
    popular, own_lists = cache(partial(served.popular, wanted.k, wanted.barring)), wanted.barring.selection.names_users

    def several(first: int) -> list[UserRecommendations]:
        part, found = slice(first, first + _USERS_PER_TASK), list[UserRecommendations]()
        known = [place for place in places[part] if place is not None]
        best = served.best_of_each(known, wanted.k, wanted.barring)
        for name, place in zip(names[part], places[part], strict=True):
            offers = popular(name if own_lists else "") if place is None else next(best)
            why = served.why(place, offers, MOST_REASONS) if wanted.why and place is not None else ()
            shortage = None if offers else served.shortage(place, name if own_lists else "", wanted.barring)
            found.append(UserRecommendations(name, offers, why=why, shortage=shortage))
        return found

    found: list[UserRecommendations] = []
    with one_blas_thread(), pool_of(threads) as pool:
        for part in pool.map(several, range(0, len(names), _USERS_PER_TASK)):
            found += part
            advance(len(part))
    return found


def _everyone(dataset: Dataset) -> Iterator[tuple[str, Place]]:
    """Yield everyone in the order of groups, and of ids within one."""
    found = [pair for number in range(len(dataset.buckets)) for pair in _people_of(dataset, number)]
    yield from sorted(found, key=_in_order)


def _in_order(person: tuple[str, Place]) -> tuple[int, bytes]:
    user, place = person
    return place.group, user.encode()


def _people_of(dataset: Dataset, number: int) -> list[tuple[str, Place]]:
    """Return the people of a bucket with their places, in the order of groups, and of ids within one."""
    bucket = dataset.buckets[number]
    pairs = enumerate(zip(bucket.users, bucket.groups.tolist(), strict=True))
    return sorted(((user, Place(group, number, row)) for row, (user, group) in pairs), key=_in_order)
