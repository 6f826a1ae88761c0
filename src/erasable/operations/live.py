"""What is current of a recommender, in memory: people are withheld at once, other versions swapped in as a whole."""

import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from erasable.errors import Refused, Suppressed, SuppressionUnknown, UnknownUser, WorkspaceBusy, WorkspaceError
from erasable.models import Change
from erasable.operations.given_ids import NumberedIds
from erasable.operations.home import Home, Session
from erasable.operations.offers import Offer, Served, Stock
from erasable.operations.recommend import refuse_no_items
from erasable.operations.suppressed import NOBODY, pending_people
from erasable.store import Stamp
from erasable.training import ROWS_SERVED, Knowledge, MemoryStore, Scoring, State


@dataclass(frozen=True)
class Recommended:
    """The best items for one user with their scores, best first, and the version of the recommender that chose them."""

    version: int
    ranked: list[Offer]


@dataclass(frozen=True)
class _Snapshot:
    """Everything that one answer comes from; never changed, so that no answer mixes two of them."""

    stamp: Stamp
    served: Served
    whole: Scoring
    """What scores with what everyone taught."""
    pending: frozenset[str]
    """Whose requests are being carried out, says the recommender itself."""
    rid: frozenset[str] = NOBODY
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
        return _Snapshot(session.stamp, served, scoring, pending)

    @property
    def is_settled(self) -> bool:
        """Whether what is served does without the lessons of exactly those who are withheld."""
        return self.rid == self.served.withheld

    def withholding(self, users: frozenset[str]) -> "_Snapshot":
        """Return the same for everyone but these users."""
        if users == self.served.withheld:
            return self
        return replace(self, served=replace(self.served, withheld=users))

    def settled(self) -> "_Snapshot":
        """Return the same without what those taught who are withheld, and with what anyone else did."""
        withheld = self.served.withheld
        # Someone has taken a request back: what is taken out can't be put in again.
        scoring, rid = (self.served.scoring, self.rid) if self.rid <= withheld else (self.whole, NOBODY)
        with suppress(Refused):  # too little memory: what they taught is served until they are forgotten
            scoring = _without_lessons(scoring, self.served.knowledge, withheld - rid)
        return replace(self, served=replace(self.served, scoring=scoring), rid=withheld)

    def without_rows_of_withheld(self) -> "_Snapshot":
        """Drop the rows that are kept of those who are withheld, and keep none of theirs."""
        for scoring in (self.whole, self.served.scoring):
            scoring.bar(self.served.withheld)
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
        self._asked = NOBODY
        self._is_blind = False
        self._is_lost = False
        self._following = threading.Lock()
        self._swapping = threading.Lock()
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

    def knows(self, user: str) -> bool:
        """Whether anything is held about a user, who may be withheld."""
        return replace(self.served, withheld=NOBODY).find(user) is not None

    def withholds(self, user: str) -> bool:
        """Whether a user of whom something is held, or was until now, has asked to be erased."""
        return user in self.served.withheld

    def recommend(self, user: str, k: int, tell: bool = False) -> Recommended:
        """Return the k best items for a user; say of whom nothing may be used that they are suppressed, if wanted."""
        (found,) = self.recommend_many([user], k)
        if found is None and tell and self.withholds(user):
            raise Suppressed(f"the user {user!r} has asked to be erased, and is not served")
        if found is None:
            raise UnknownUser(f"nothing is held about the user {user!r}: check the id, exactly as in the data")
        return found

    def recommend_many(self, users: Sequence[str], k: int) -> list[Recommended | None]:
        """Return the same for several users, all from one version, None for each of whom nothing may be used."""
        refuse_no_items(k)
        if self._is_blind or self._is_lost:
            raise SuppressionUnknown("who has asked to be erased can't be read, so nobody is served: look at the log")
        snapshot = self._snapshot
        version, served = snapshot.stamp.version, snapshot.served
        places = [served.find(user) for user in users]
        best = served.best_of_each([place for place in places if place is not None], k)
        return [None if place is None else Recommended(version, next(best)) for place in places]

    def withhold(self, users: Collection[str]) -> None:
        """Serve none of these users from now on; whoever was withheld and is not among them is served after `follow`.

        Not before: they may have been forgotten since, which only following finds out. Until then, what the users who
        are withheld taught counts as it did.
        """
        with self._swapping:
            self._is_blind = False
            self._asked = frozenset(users)
            after = self._snapshot.withholding(self.served.withheld | self._asked)
            if after is not self._snapshot:
                self._snapshot = after.without_rows_of_withheld()

    def serve_nobody(self) -> None:
        """Serve nobody, since it is not known who has asked to be erased, until `withhold` says it again."""
        self._is_blind = True

    def follow(self) -> bool:
        """Swap in what is current, without what those taught who are withheld; say whether there was anything to do.

        While what is current can't be read nobody is served: it may have been made without someone who asked.
        """
        with self._following:
            try:
                changed = self._swap_in_current()
            except WorkspaceBusy:
                raise
            except (WorkspaceError, OSError):
                self._is_lost = True
                raise
            self._is_lost = False
            return changed

    def _swap_in_current(self) -> bool:
        # In this order: whoever is not withheld any more and was forgotten before is missing in what is read next.
        asked, mark = self._asked, self._home.mark()
        before = self._snapshot
        current = before if mark == self._mark else self._reread(before)
        withheld = asked | current.pending
        if current is before and before.is_settled and before.served.withheld == withheld:
            return False
        after = current.withholding(withheld).settled().warmed_up()
        with self._swapping:
            self._snapshot = after.withholding(withheld | self._asked).without_rows_of_withheld()
        self._mark = mark
        return True

    def _reread(self, before: _Snapshot) -> _Snapshot:
        with self._home.reading() as session:
            if session.stamp == before.stamp:
                return replace(before, pending=pending_people(session))
            return _Snapshot.of(session)


def _without_lessons(scoring: Scoring, knowledge: Knowledge, users: frozenset[str]) -> Scoring:
    """Return what scores without what some users taught, as far as that can be told at once."""
    taken = knowledge.known(knowledge.stages - 1).over(knowledge.lessons_of(users))
    return scoring.rid_of(Change(taken, taken.of_users([]))) if len(taken) else scoring


def _compile_removal(loaded: _Snapshot) -> None:
    """Take someone's lessons out for once, so that nobody waits for that code when it matters."""
    someone = next((group.users[0] for group in loaded.served.knowledge.groups if len(group)), None)
    if someone is not None:
        loaded.withholding(frozenset([someone])).settled()
