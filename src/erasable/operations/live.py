"""The current version of a recommender in memory: people are suppressed at once, new versions swapped in whole."""

import math
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from erasable.chain.buckets import Place
from erasable.chain.checkpoints import MemoryStore
from erasable.chain.dataset import (
    Dataset,
    State,
)
from erasable.chain.scoring import ROWS_SERVED, Scoring
from erasable.data.interactions import Interactions
from erasable.errors import (
    ErasableError,
    Refused,
    Said,
    Suppressed,
    SuppressionUnknown,
    UnknownUser,
    WorkspaceBusy,
    WorkspaceError,
)
from erasable.models.base import Change
from erasable.operations.declared_items import DeclaredItems
from erasable.operations.offers import MOST_REASONS, Offer, OwnItem, Served, Stock, refuse_no_items
from erasable.operations.people import NumberedIds
from erasable.operations.recommend import History, UserRecommendations, best_for_history, similar_to_each
from erasable.operations.scores import UserScores, scores_of, scores_of_history
from erasable.operations.selection import EVERYTHING, Selection
from erasable.operations.storage import Session, Storage, pending_people, places_found
from erasable.requests.request import NOBODY_ASKED, Asked
from erasable.workspace.manifest import Stamp

_PEOPLE_OF_A_TRIAL = 100
_MOST_ROWS_READ = 20_000_000  # about 1 GB; a server would stand still for longer than the erasure takes


@dataclass(frozen=True)
class Recommended:
    """The best items for one user with their scores, best first, and the version of the recommender that chose them."""

    version: int
    ranked: list[Offer]
    why: list[tuple[OwnItem, ...]] | None = None
    """Which of the user's items contribute most to each, if that was asked for."""

    @staticmethod
    def of(version: int, found: UserRecommendations, why: bool) -> "Recommended":
        """Return the same of recommendations that were made by a version."""
        ranked = [Offer(one.item_id, one.score, one.popular) for one in found]
        return Recommended(version, ranked, [one.because for one in found] if why else None)


@dataclass(frozen=True)
class _Snapshot:
    """Everything that one answer comes from; immutable, so that no answer mixes two versions."""

    stamp: Stamp
    served: Served
    whole: Scoring
    """Scores with everyone's training data."""
    pending: Asked
    """Whose requests the workspace itself holds: they are being carried out."""
    places: Mapping[str, tuple[str, ...]]
    """Where something is still found of those who are erased and can't be certified, by request; it names nobody."""
    erasures: int
    """How many erasures were certified before it was loaded."""
    subtracted: Asked = NOBODY_ASKED
    """Whose training data is subtracted from the scores, as far as the model can do that at once."""

    @staticmethod
    def of(session: Session) -> "_Snapshot":
        """Load what scoring needs."""
        state, checkpoints = session.state(), MemoryStore()
        dataset = state.dataset.kept_open()
        for link in state.scoring_links:
            checkpoints.put(session.checkpoints.get(link.fingerprint))
        scoring, pending = Scoring(State(dataset, state.chain), checkpoints, ROWS_SERVED), pending_people(session)
        numbered, declared = NumberedIds.of(session.documents().preferences), DeclaredItems(session.declared_items())
        served = Served(dataset, scoring, pending, Stock(dataset), numbered, declared)
        return _Snapshot(session.stamp, served, scoring, pending, places_found(session), session.erasures)

    @property
    def is_subtracted(self) -> bool:
        """Whether exactly the training data that was asked to be erased is subtracted."""
        return self.subtracted == self.served.asked

    def suppressing(self, asked: Asked) -> "_Snapshot":
        """Return the same for other people who have asked."""
        if asked == self.served.asked:
            return self
        return replace(self, served=self.served.suppressing(asked))

    def suppressing_also(self, users: frozenset[str]) -> "_Snapshot":
        """Return the same without these users, who had not asked before; none of their rows is kept."""
        for scoring in (self.whole, self.served.scoring):
            scoring.bar_also(users)
        return replace(self, served=self.served.suppressing_also(users))

    def subtracting(self) -> "_Snapshot":
        """Return the same with the training data that was asked to be erased subtracted."""
        asked, scoring = self.served.asked, self.served.scoring
        new = asked.since(self.subtracted)
        if new is None:  # a request was withdrawn or extended: what is subtracted can't be added again
            new, scoring = asked, self.whole
        with suppress(Refused):  # too little memory: their data still counts in scores until they are forgotten
            scoring = _without_lessons(scoring, self.served, new.people)
        return replace(self, served=self.served.scored_by(scoring), subtracted=asked)

    def scored_as(self, other: "_Snapshot") -> "_Snapshot":
        """Return the same with the scores of another snapshot of the same version."""
        return replace(self, served=self.served.scored_by(other.served.scoring), subtracted=other.subtracted)

    def without_rows_of_suppressed(self) -> "_Snapshot":
        """Drop the cached rows of those who have asked, and cache none of theirs."""
        for scoring in (self.whole, self.served.scoring):
            scoring.bar(self.served.asked.people)
        return self

    def warmed_up(self) -> "_Snapshot":
        """Score one user of each group, so that the first request need not wait for preparation."""
        self.served.warm_up()
        return self


class Live:
    """Answers from memory, for any number of threads, without waiting for the disk or for a version being loaded.

    A thread of its own calls `follow` again and again to keep up with the current version. Answering is quickest if the
    caller limits BLAS to one thread (`one_blas_thread`); else each answer does.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._asked = NOBODY_ASKED
        self._is_blind = False
        self._fault: type[SuppressionUnknown] = SuppressionUnknown
        self._is_lost = False
        self._told_at, self._longest_silence = time.monotonic(), math.inf
        self._following = threading.Lock()
        self._swapping = threading.Lock()
        self._subtracting = threading.Lock()
        self._mark = storage.mark()
        with storage.reading() as session:
            loaded = _Snapshot.of(session)
        _compile_removal(loaded)
        self._snapshot = loaded.subtracting().warmed_up().without_rows_of_suppressed()

    @property
    def served(self) -> Served:
        """What recommendations come from now."""
        return self._snapshot.served

    @property
    def dataset(self) -> Dataset:
        """The dataset that is served now."""
        return self._snapshot.served.dataset

    @property
    def version(self) -> int:
        """The number of the version that is served now."""
        return self._snapshot.stamp.version

    @property
    def erasures(self) -> int:
        """How many erasures were certified when the served version was loaded."""
        return self._snapshot.erasures

    @property
    def current(self) -> tuple[Stamp, Dataset]:
        """The stamp and dataset of the version that is served now."""
        snapshot = self._snapshot
        return snapshot.stamp, snapshot.served.dataset

    @property
    def is_serving(self) -> bool:
        """Whether anybody is served: only while it is known who has asked to be erased."""
        is_silent = time.monotonic() - self._told_at > self._longest_silence
        return not (self._is_blind or self._is_lost or is_silent)

    @property
    def places(self) -> Mapping[str, tuple[str, ...]]:
        """Where something is still found of those who are erased and can't be certified, by request."""
        return self._snapshot.places

    def knows(self, user: str) -> bool:
        """Whether anything is held about a user, who may be suppressed."""
        return replace(self.served, asked=NOBODY_ASKED).find(user) is not None

    def may_wait_for(self, user: str) -> bool:
        """Whether recommending to a user may wait for another process, as an event loop should not."""
        return self.served.scoring.asks_another_process(user)

    def suppresses(self, user: str) -> bool:
        """Whether a user has asked to be erased and is not served."""
        return user in self.served.suppressed

    def not_served(self, asked: Asked) -> frozenset[str]:
        """Return who of those who have asked is not served from the version that is served now."""
        return self.served.suppressing(asked | self._snapshot.pending).suppressed

    def recommend(self, user: str, k: int, tell: bool = False, why: bool = False) -> Recommended:
        """Return the k best items for a user; with `tell`, the error for a suppressed user says so."""
        (found,) = self.recommend_many([user], k, why)
        if found is None:
            raise self._nothing_for(user, tell)
        return found

    def recommend_many(
        self, users: Sequence[str], k: int, why: bool = False, selection: Selection = EVERYTHING
    ) -> list[Recommended | None]:
        """Return the same for several users, all from one version; None for those who are unknown or suppressed."""
        refuse_no_items(k)
        version, served = self._answering()
        if why:
            served.scoring.refuse_without_reasons()
        places = [served.find(user) for user in users]
        barring = served.everything if selection is EVERYTHING else served.barring(selection)
        best = served.best_of_each([place for place in places if place is not None], k, barring)

        def recommended(place: Place) -> Recommended:
            ranked = next(best)
            return Recommended(version, ranked, served.why(place, ranked, MOST_REASONS) if why else None)

        return [None if place is None else recommended(place) for place in places]

    def recommend_for_history(
        self, history: History, k: int, why: bool = False, selection: Selection = EVERYTHING
    ) -> tuple[int, UserRecommendations]:
        """Return the version, and the k best items for someone with this history; nothing of it is kept."""
        version, served = self._answering()
        return version, best_for_history(served, history, k, why, selection)

    def score(self, user: str, items: Sequence[str], tell: bool = False) -> tuple[int, UserScores]:
        """Return the version, and the scores of these items for a user."""
        version, served = self._answering()
        if served.find(user) is None:
            raise self._nothing_for(user, tell)
        (found,) = scores_of(served, [user], items)
        return version, found

    def score_for_history(self, history: History, items: Sequence[str]) -> tuple[int, UserScores]:
        """Return the same for someone with this history."""
        version, served = self._answering()
        return version, scores_of_history(served, history, items)

    def similar(self, item: str, k: int, selection: Selection = EVERYTHING) -> tuple[int, list[Offer]]:
        """Return the version, and the k items most similar to one."""
        version, served = self._answering()
        return version, similar_to_each(served, [item], k, selection)[0]

    def _answering(self) -> tuple[int, Served]:
        """Return the version that answers, and what it answers from; refused while nobody is served."""
        if not self.is_serving:
            raise self.fault
        snapshot = self._snapshot
        return snapshot.stamp.version, snapshot.served

    def _nothing_for(self, user: str, tell: bool) -> UnknownUser:
        if tell and self.suppresses(user):
            return Suppressed(f"the user {user!r} has asked to be erased, and is not served")
        return UnknownUser(f"nothing is held about the user {user!r}: check the id, exactly as in the data")

    def suppress(self, users: Collection[str]) -> None:
        """Serve none of these users from now on; users who are no longer suppressed are served after `follow`.

        Not before: they may have been forgotten since, which only `follow` finds out. Until then the scores still count
        the suppressed users' training data.
        """
        self.suppress_asked(Asked(frozenset(users)))

    def suppress_asked(self, asked: Asked) -> None:
        """Do the same for users who asked for everything, and serve the others without the items they named."""
        with self._swapping:
            self._is_blind = False
            self._told_at = time.monotonic()
            self._asked = asked
            self._suppress(asked)

    def suppress_also(self, asked: Asked) -> None:
        """Suppress these users, or the items they named, in addition to those before."""
        with self._swapping:
            self._asked |= asked
            before = self.served.asked
            if asked.some or not asked.wholly.isdisjoint(before.some):
                self._suppress(asked)
            elif not asked.wholly <= before.wholly:
                self._snapshot = self._snapshot.suppressing_also(asked.wholly - before.wholly)

    def _suppress(self, asked: Asked) -> None:
        after = self._snapshot.suppressing(self.served.asked | asked)
        if after is not self._snapshot:
            self._snapshot = after.without_rows_of_suppressed()

    def serve_nobody(self, fault: Exception | None = None) -> None:
        """Serve nobody until `suppress` is called again, since it is not known who has asked to be erased."""
        self._is_blind, self._fault = True, type(fault) if isinstance(fault, SuppressionUnknown) else SuppressionUnknown

    @property
    def fault(self) -> SuppressionUnknown:
        """The error to raise while nobody is served."""
        kind = self._fault if self._is_blind else SuppressionUnknown
        return kind("nobody is served: run ", Said("status()", "erasable status"), ", which says why")

    @property
    def is_behind(self) -> bool:
        """Whether a newer version is current than the one that is served."""
        return self._storage.mark() != self._mark

    def catch_up(self) -> None:
        """Swap in the current version if it is another; else subtracting data is left to `follow`.

        So the cost for whoever submits does not grow with the data, or with how many have asked.
        """
        if self.is_behind:
            self.follow()

    def serve_only_if_told(self, seconds: float) -> None:
        """Serve nobody whenever `suppress` was not called for so many seconds: its caller may be stuck."""
        self._told_at, self._longest_silence = time.monotonic(), seconds

    def follow(self, subtract: bool = True) -> bool:
        """Swap in the current version without suppressed users' data; return whether anything changed.

        While the current version can't be read nobody is served: it may have been made without someone who asked. For a
        version that is served already, subtracting their data may be left to `subtract`, for which nobody waits.
        """
        with self._following:
            try:
                changed = self._swap_in_current(subtract)
            except WorkspaceBusy:
                raise
            except (WorkspaceError, OSError):
                self._is_lost = True
                raise
            self._is_lost = False
            return changed

    def subtract(self) -> None:
        """Subtract the suppressed users' training data from the scores, as soon as that is computed."""
        with self._subtracting:
            before = self._snapshot
            if before.is_subtracted:
                return
            after = before.subtracting().warmed_up()
            with self._swapping:
                if self._snapshot.stamp == before.stamp:
                    self._snapshot = self._snapshot.scored_as(after).without_rows_of_suppressed()

    def _swap_in_current(self, subtract: bool) -> bool:
        # In this order: a user who left the queue because they were forgotten is missing in what is read next.
        asked, mark = self._asked, self._storage.mark()
        before = self._snapshot
        # A user who is no longer suppressed may be forgotten, and a shared disk may show the mark late: read again.
        is_current = mark == self._mark and before.served.asked | asked | before.pending == asked | before.pending
        current = before if is_current else self._reread(before)
        asked |= current.pending
        subtract |= current.stamp != before.stamp
        if current is before and (before.is_subtracted or not subtract) and before.served.asked == asked:
            return False
        after = current.suppressing(asked)
        after = (after.subtracting() if subtract else after).warmed_up()
        with self._swapping:
            if not subtract and after.stamp == self._snapshot.stamp:
                after = after.scored_as(self._snapshot)  # which may have been subtracted meanwhile
            self._snapshot = after.suppressing(asked | self._asked).without_rows_of_suppressed()
        self._mark = mark
        return True

    def _reread(self, before: _Snapshot) -> _Snapshot:
        with self._storage.reading() as session:
            if session.stamp == before.stamp:
                pending, places = pending_people(session), places_found(session)
                served = replace(before.served, declared=DeclaredItems(session.declared_items()))
                return replace(before, served=served, pending=pending, places=places, erasures=session.erasures)
            return _Snapshot.of(session)


def _without_lessons(scoring: Scoring, served: Served, users: frozenset[str]) -> Scoring:
    """Return scores without some users' training data, as far as the model can subtract it at once.

    Items of theirs that they did not name still count. So does everything where a server would have to read too many
    rows of others: until they are forgotten.
    """
    dataset = served.dataset
    if not scoring.can_subtract or len(dataset.counts.size_of_training()) > _MOST_ROWS_READ:
        return scoring
    known = dataset.known(dataset.stages - 1)
    taken = known.over(dataset.lessons_of(users))
    if not len(taken):
        return scoring
    after = known.over(_lessons_left(dataset, served))
    return scoring.subtracting(Change(taken, after.of_users(users), after))


def _lessons_left(dataset: Dataset, served: Served) -> Interactions:
    """Return everyone's training data except what was asked to be erased."""
    asked = served.asked.people
    others, learners = dataset.lessons_without(asked), dataset.lessons_of(asked).users
    left = [served.partly_served[user].training for user in learners if user in served.partly_served]
    return Interactions.merge([others, *map(dataset.as_learned, left)]) if left else others


def _compile_removal(loaded: _Snapshot) -> None:
    """Subtract one user's data as a trial, so that nobody waits for the compilation later.

    A few people stand for everyone, whose data need not be read.
    """
    dataset = loaded.served.dataset
    if not dataset.users:
        return
    few = dataset.buckets[0].users.texts()[:_PEOPLE_OF_A_TRIAL]
    lessons = dataset.known(dataset.stages - 1).over(dataset.lessons_of(few))
    someone = lessons.users.texts()[:1]
    after = lessons.without(someone)
    with suppress(ErasableError):  # a model of others may refuse rows that are not those it was trained on
        loaded.whole.subtracting(Change(lessons.of_users(someone), after.of_users(()), after))
