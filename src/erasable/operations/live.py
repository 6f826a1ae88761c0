"""What is current of a recommender, in memory: people are withheld at once, other versions swapped in as a whole."""

import math
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from erasable.data import Interactions
from erasable.errors import (
    Refused,
    Said,
    Suppressed,
    SuppressionUnknown,
    UnknownUser,
    WorkspaceBusy,
    WorkspaceError,
)
from erasable.models import Change
from erasable.operations.given_ids import NumberedIds
from erasable.operations.home import Home, Session
from erasable.operations.offers import Offer, OwnItem, Served, Stock
from erasable.operations.recommend import MOST_REASONS, refuse_no_items
from erasable.operations.suppressed import pending_people, places_found
from erasable.requests.asked import NOBODY_ASKED, Asked
from erasable.store import Stamp
from erasable.training import ROWS_SERVED, Knowledge, MemoryStore, Place, Scoring, State


@dataclass(frozen=True)
class Recommended:
    """The best items for one user with their scores, best first, and the version of the recommender that chose them."""

    version: int
    ranked: list[Offer]
    why: list[tuple[OwnItem, ...]] | None = None
    """Which items of the user speak most for each, if that was asked for."""


@dataclass(frozen=True)
class _Snapshot:
    """Everything that one answer comes from; never changed, so that no answer mixes two of them."""

    stamp: Stamp
    served: Served
    whole: Scoring
    """What scores with what everyone taught."""
    pending: Asked
    """Whose requests are being carried out, says the recommender itself."""
    places: Mapping[str, tuple[str, ...]]
    """Where something is still found of those who are erased and can't be certified, by request; it names nobody."""
    erasures: int
    """How many erasures were certified before it was loaded."""
    rid: Asked = NOBODY_ASKED
    """Whose lessons what is served does without, as far as that can be told at once."""

    @staticmethod
    def of(session: Session) -> "_Snapshot":
        """Load what is needed to score."""
        state, checkpoints = session.state(), MemoryStore()
        knowledge = replace(state.knowledge, groups=tuple(state.knowledge.groups))
        for link in state.scoring_links:
            checkpoints.put(session.checkpoints.get(link.fingerprint))
        scoring, pending = Scoring(State(knowledge, state.chain), checkpoints, ROWS_SERVED), pending_people(session)
        served = Served(knowledge, scoring, pending, Stock(knowledge), NumberedIds.of(session))
        return _Snapshot(session.stamp, served, scoring, pending, places_found(session), session.erasures)

    @property
    def is_settled(self) -> bool:
        """Whether what is served does without exactly the lessons that were asked to be erased."""
        return self.rid == self.served.asked

    def withholding(self, asked: Asked) -> "_Snapshot":
        """Return the same for other people who have asked."""
        if asked == self.served.asked:
            return self
        return replace(self, served=self.served.withholding(asked))

    def withholding_also(self, users: frozenset[str]) -> "_Snapshot":
        """Return the same without these users, who had not asked for anything; none of their rows is kept."""
        for scoring in (self.whole, self.served.scoring):
            scoring.bar_also(users)
        return replace(self, served=self.served.withholding_also(users))

    def settled(self) -> "_Snapshot":
        """Return the same without the lessons that were asked to be erased, and with all others."""
        asked, scoring = self.served.asked, self.served.scoring
        new = asked.since(self.rid)
        if new is None:  # a request was taken back, or asks for more: what is taken out can't be put in again
            new, scoring = asked, self.whole
        with suppress(Refused):  # too little memory: what they taught is served until they are forgotten
            scoring = _without_lessons(scoring, self.served, new.people)
        return replace(self, served=self.served.scored_by(scoring), rid=asked)

    def scored_as(self, other: "_Snapshot") -> "_Snapshot":
        """Return the same with the scores of another one of the same version."""
        return replace(self, served=self.served.scored_by(other.served.scoring), rid=other.rid)

    def without_rows_of_withheld(self) -> "_Snapshot":
        """Drop the rows that are kept of those who have asked, and keep none of theirs."""
        for scoring in (self.whole, self.served.scoring):
            scoring.bar(self.served.asked.people)
        return self

    def warmed_up(self) -> "_Snapshot":
        """Score someone of each group, so that whoever asks first need not wait for what is prepared once."""
        self.served.warm_up()
        return self


class Live:
    """Answers from memory, for any number of threads, without ever waiting for the disk or for what is being loaded.

    `follow`, called again and again by a thread of its own, keeps up with what is current. Answering is quickest for
    whoever holds BLAS to one thread meanwhile (`one_blas_thread`): else each answer has to.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._asked = NOBODY_ASKED
        self._is_blind = False
        self._fault: type[SuppressionUnknown] = SuppressionUnknown
        self._is_lost = False
        self._told_at, self._longest_silence = time.monotonic(), math.inf
        self._following = threading.Lock()
        self._swapping = threading.Lock()
        self._settling = threading.Lock()
        self._mark = home.mark()
        with home.reading() as session:
            loaded = _Snapshot.of(session)
        _compile_removal(loaded)
        self._snapshot = loaded.settled().warmed_up().without_rows_of_withheld()

    @property
    def served(self) -> Served:
        """What recommendations come from now."""
        return self._snapshot.served

    @property
    def knowledge(self) -> Knowledge:
        """What is known now."""
        return self._snapshot.served.knowledge

    @property
    def version(self) -> int:
        """The number of the version that is served now."""
        return self._snapshot.stamp.version

    @property
    def erasures(self) -> int:
        """How many erasures what is served now knows to be certified."""
        return self._snapshot.erasures

    @property
    def current(self) -> tuple[Stamp, Knowledge]:
        """What is known now, and of which version that is."""
        snapshot = self._snapshot
        return snapshot.stamp, snapshot.served.knowledge

    @property
    def is_serving(self) -> bool:
        """Whether anybody is served: it is known who has asked to be erased, and was known a moment ago."""
        is_silent = time.monotonic() - self._told_at > self._longest_silence
        return not (self._is_blind or self._is_lost or is_silent)

    @property
    def places(self) -> Mapping[str, tuple[str, ...]]:
        """Where something is still found of those who are erased and can't be certified, by request."""
        return self._snapshot.places

    def knows(self, user: str) -> bool:
        """Whether anything is held about a user, who may be withheld."""
        return replace(self.served, asked=NOBODY_ASKED).find(user) is not None

    def withholds(self, user: str) -> bool:
        """Whether a user of whom something is held, or was until now, has asked to be erased and is not served."""
        return user in self.served.withheld

    def not_served(self, asked: Asked) -> frozenset[str]:
        """Return who of those who have asked is not served from the version that is served now."""
        return self.served.withholding(asked | self._snapshot.pending).withheld

    def recommend(self, user: str, k: int, tell: bool = False, why: bool = False) -> Recommended:
        """Return the k best items for a user; say of whom nothing may be used that they are suppressed, if wanted."""
        (found,) = self.recommend_many([user], k, why)
        if found is None and tell and self.withholds(user):
            raise Suppressed(f"the user {user!r} has asked to be erased, and is not served")
        if found is None:
            raise UnknownUser(f"nothing is held about the user {user!r}: check the id, exactly as in the data")
        return found

    def recommend_many(self, users: Sequence[str], k: int, why: bool = False) -> list[Recommended | None]:
        """Return the same for several users, all from one version, None for each of whom nothing may be used."""
        refuse_no_items(k)
        if not self.is_serving:
            raise self.fault
        snapshot = self._snapshot
        version, served = snapshot.stamp.version, snapshot.served
        if why:
            served.scoring.refuse_without_reasons()
        places = [served.find(user) for user in users]
        best = served.best_of_each([place for place in places if place is not None], k)

        def recommended(place: Place) -> Recommended:
            ranked = next(best)
            return Recommended(version, ranked, served.why(place, ranked, MOST_REASONS) if why else None)

        return [None if place is None else recommended(place) for place in places]

    def withhold(self, users: Collection[str]) -> None:
        """Serve none of these users from now on; whoever was withheld and is not among them is served after `follow`.

        Not before: they may have been forgotten since, which only following finds out. Until then, what the users who
        are withheld taught counts as it did.
        """
        self.withhold_asked(Asked(frozenset(users)))

    def withhold_asked(self, asked: Asked) -> None:
        """Do the same for users who have asked for everything, and serve others without the items they asked for."""
        with self._swapping:
            self._is_blind = False
            self._told_at = time.monotonic()
            self._asked = asked
            self._withhold(asked)

    def withhold_also(self, asked: Asked) -> None:
        """Serve none of these users, or not with the items they asked for, from now on, either."""
        with self._swapping:
            self._asked |= asked
            before = self.served.asked
            if asked.some or not asked.wholly.isdisjoint(before.some):
                self._withhold(asked)
            elif not asked.wholly <= before.wholly:
                self._snapshot = self._snapshot.withholding_also(asked.wholly - before.wholly)

    def _withhold(self, asked: Asked) -> None:
        after = self._snapshot.withholding(self.served.asked | asked)
        if after is not self._snapshot:
            self._snapshot = after.without_rows_of_withheld()

    def serve_nobody(self, fault: Exception | None = None) -> None:
        """Serve nobody, since it is not known who has asked to be erased, until `withhold` says it again."""
        self._is_blind, self._fault = True, type(fault) if isinstance(fault, SuppressionUnknown) else SuppressionUnknown

    @property
    def fault(self) -> SuppressionUnknown:
        """Why nobody is served, while nobody is."""
        kind = self._fault if self._is_blind else SuppressionUnknown
        return kind("nobody is served: run ", Said("status()", "erasable status"), ", which says why")

    @property
    def is_behind(self) -> bool:
        """Whether something has become current that is not served yet."""
        return self._home.mark() != self._mark

    def catch_up(self) -> None:
        """Swap in what is current, if it is another; what those taught who are withheld is left to `follow`.

        So it costs whoever submits nothing that grows with what is known, or with how many have asked.
        """
        if self.is_behind:
            self.follow()

    def serve_only_if_told(self, seconds: float) -> None:
        """Serve nobody from now on whenever `withhold` was not called for so long: whoever calls it may be stuck."""
        self._told_at, self._longest_silence = time.monotonic(), seconds

    def follow(self, settle: bool = True) -> bool:
        """Swap in what is current, without what those taught who are withheld; say whether there was anything to do.

        While what is current can't be read nobody is served: it may have been made without someone who asked. What they
        taught to a version that is served already may be left to `settle`, for which nobody waits.
        """
        with self._following:
            try:
                changed = self._swap_in_current(settle)
            except WorkspaceBusy:
                raise
            except (WorkspaceError, OSError):
                self._is_lost = True
                raise
            self._is_lost = False
            return changed

    def settle(self) -> None:
        """Do without what those taught who are withheld, as soon as that is worked out."""
        with self._settling:
            before = self._snapshot
            if before.is_settled:
                return
            after = before.settled().warmed_up()
            with self._swapping:
                if self._snapshot.stamp == before.stamp:
                    self._snapshot = self._snapshot.scored_as(after).without_rows_of_withheld()

    def _swap_in_current(self, settle: bool) -> bool:
        # In this order: whoever is not withheld any more and was forgotten before is missing in what is read next.
        asked, mark = self._asked, self._home.mark()
        before = self._snapshot
        # Whoever is not withheld any more may be forgotten, and a shared disk may tell the mark late: that is read.
        is_current = mark == self._mark and before.served.asked | asked | before.pending == asked | before.pending
        current = before if is_current else self._reread(before)
        asked |= current.pending
        settle |= current.stamp != before.stamp
        if current is before and (before.is_settled or not settle) and before.served.asked == asked:
            return False
        after = current.withholding(asked)
        after = (after.settled() if settle else after).warmed_up()
        with self._swapping:
            if not settle and after.stamp == self._snapshot.stamp:
                after = after.scored_as(self._snapshot)  # which may have been settled meanwhile
            self._snapshot = after.withholding(asked | self._asked).without_rows_of_withheld()
        self._mark = mark
        return True

    def _reread(self, before: _Snapshot) -> _Snapshot:
        with self._home.reading() as session:
            if session.stamp == before.stamp:
                pending, places = pending_people(session), places_found(session)
                return replace(before, pending=pending, places=places, erasures=session.erasures)
            return _Snapshot.of(session)


def _without_lessons(scoring: Scoring, served: Served, users: frozenset[str]) -> Scoring:
    """Return what scores without what some users taught, as far as that can be told at once.

    What somebody has beside the items that they asked for goes on teaching.
    """
    knowledge = served.knowledge
    known = knowledge.known(knowledge.stages - 1)
    taken = known.over(knowledge.lessons_of(users))
    if not len(taken):
        return scoring
    after = known.over(_lessons_left(knowledge, served))
    return scoring.rid_of(Change(taken, after.of_users(users), after))


def _lessons_left(knowledge: Knowledge, served: Served) -> Interactions:
    """Return what everyone teaches but for what was asked to be erased."""
    asked = served.asked.people
    others, learners = knowledge.lessons_without(asked), knowledge.lessons_of(asked).users
    left = [served.lessened[user].training.timeless for user in learners if user in served.lessened]
    return Interactions.merge([others, *left]) if left else others


def _compile_removal(loaded: _Snapshot) -> None:
    """Take someone's lessons out for once, so that nobody waits for that code when it matters."""
    someone = next((group.users[0] for group in loaded.served.knowledge.groups if len(group)), None)
    if someone is not None:
        loaded.withholding(Asked(frozenset([someone]))).settled()
