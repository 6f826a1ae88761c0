"""The library's front door: one object that learns, recommends, forgets and verifies, in memory or in a workspace."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from erasable.errors import NotReproducible, Refused, WrongUse
from erasable.evaluation import Protocol, Utility
from erasable.operations.do_not_learn import copying
from erasable.operations.forget import Forgotten, forget
from erasable.operations.home import DiskHome, Home, MemoryHome
from erasable.operations.inspect import GroupFacts, Holding, evaluate, groups, show, status
from erasable.operations.learn import Learned, learn_into
from erasable.operations.more import LearnedMore, learn_more
from erasable.operations.planning import plan
from erasable.operations.prepare import NO_INPUTS, Inputs
from erasable.operations.recording import version_facts
from erasable.operations.serving import Serving
from erasable.operations.suppressed import suppressed_people
from erasable.operations.verify import NO_CLAIM, Claim, Verification, verify
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import add_record
from erasable.store import Workspace
from erasable.training import Config, differences
from erasable.unlearning import Plan, Request

UserId = str | int


class Recommender:
    """A recommender that can forget.

    Settings are those of `erasable learn` (docs/reference.md): `Recommender(model="nmf", groups=8, seed=0)`. It lives
    in memory until `save` puts it into a workspace; from then on, and after `load`, it works on that workspace.

    >>> import pyarrow as pa
    >>> table = pa.table({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"]})
    >>> recommender = Recommender(groups=2, epochs=1).fit(table)
    >>> recommender.forget([2]).stages_total
    2
    >>> recommender.verify().identical
    True
    """

    def __init__(self, *, threads: int | None = None, preset: str | None = None, **settings: Any) -> None:  # noqa: ANN401
        self._config = Config.of(settings, preset)
        self._work = QUIET_WORK if threads is None else Work(threads)
        self._home: Home | None = None
        self._serving: Serving | None = None
        self.learned: Learned | None = None

    def fit(self, table: Any, inputs: Inputs = NO_INPUTS) -> "Recommender":  # noqa: ANN401 - any table or path
        """Learn from a pandas, polars or Arrow table, a SciPy matrix or a path; earlier learning is dropped."""
        home = MemoryHome()
        with home.writing() as session:
            self.learned = learn_into(session, table, self._config, inputs, self._work)
        self._settle_in(home)
        return self

    def learn_more(
        self,
        table: Any,  # noqa: ANN401 - any table or path
        inputs: Inputs = NO_INPUTS,
        readmit: Iterable[UserId] = (),
    ) -> LearnedMore:
        """Learn more: new users, and new interactions of those who are known; settings and groups stay.

        Whoever was forgotten is left out and counted, unless they are to `readmit` because they really come back.
        """
        inputs = replace(inputs, readmit=(*inputs.readmit, *_texts(readmit)))
        return learn_more(self._learned_home(), table, inputs, self._work)

    def recommend(self, users: Iterable[UserId], k: int = 10, popular_fallback: bool = False) -> pa.Table:
        """Return a table of user_id, item_id, score, rank and popular: the k best items for each user.

        Nobody is offered what they have. Where the model says nothing, popular items fill up: `popular` is true, and
        the score is how many people have the item.
        """
        found = self._learned_serving().recommend(_texts(users), k, popular_fallback)
        rows = [vars(recommendation) for one_user in found for recommendation in one_user]
        return pa.Table.from_pylist(rows, schema=RECOMMENDATIONS)

    def plan(self, users: Iterable[UserId], items: Sequence[UserId] | None = None) -> Plan:
        """Say what `forget` would touch and cost; nothing is changed."""
        return plan(self._learned_home(), _requests(users, items), self._work)

    def forget(
        self,
        users: Iterable[UserId],
        items: Sequence[UserId] | None = None,
        ignore_unknown: bool = False,
        rerun: bool = False,
        yes: bool = False,
    ) -> Forgotten:
        """Forget users, or some items of one user; what comes back says what it cost and names the certificates.

        More than 1 % of the people, if that is more than 10, need `yes=True`. Other threads get no
        recommendations for them from the moment of the call.
        """
        requests = _requests(users, items)
        with self._learned_serving().withdrawing(requests):
            return forget(self._learned_home(), requests, ignore_unknown, rerun, self._work, yes=yes)

    def verify(self, claim: Claim = NO_CLAIM) -> Verification:
        """Check every file, record and signature, train again from what is left, and compare every byte."""
        return verify(self._learned_home(), claim, self._work)

    def evaluate(self, test: Path | None = None, protocol: Protocol = "whole-catalogue") -> Utility:
        """Measure recommendations on the holdout, or on interactions from a file, by one of three protocols."""
        return evaluate(self._learned_home(), test, work=self._work, protocol=protocol)

    def show(self, user: UserId) -> Holding:
        """Return everything that is held about a person."""
        return show(self._learned_home(), str(user))

    def groups(self) -> list[GroupFacts]:
        """Return the groups in the order in which they are trained: users, interactions and cohesion of each."""
        return groups(self._learned_home(), self._work)

    def status(self) -> dict[str, Any]:
        """Return what is current: sizes, settings, erasures and version."""
        return status(self._learned_home())

    def save(self, folder: str | Path) -> None:
        """Put the recommender into a new workspace, where it lives from now on, with a do-not-learn list beside it."""
        home = self._learned_home()
        with (
            home.reading() as session,
            Workspace.creating(folder, session.papers().preferences.readable_by_group) as workspace,
            copying(session, workspace.path) as preferences,
        ):
            if found := differences(session.environment):
                # The copy would say that it was learned here, and forgetting from it would be inexact.
                raise NotReproducible(
                    f"this was learned in another numeric environment ({'; '.join(found)}): copy its folder instead"
                )
            if session.papers().pending:
                raise Refused("an erasure is not finished: finish it with forget([]) before saving a copy")
            if suppressed_people(session):  # a copy would have no ledger, and serve them
                raise Refused("someone has an open request with the service: save a copy once that is carried out")
            state = session.state()
            for link in state.chain:
                workspace.checkpoints.put(session.checkpoints.get(link.fingerprint))
            papers = session.papers()
            record = add_record(papers.records(), "save", version_facts(state, session.stamp))
            papers = replace(papers, audit=record, certificates=session.issued(), preferences=preferences)
            workspace.commit(state, papers, session.stamp)
        self._settle_in(DiskHome(Path(folder)))

    @classmethod
    def load(cls, folder: str | Path, threads: int | None = None) -> "Recommender":
        """Open the recommender in a workspace; forgetting changes that workspace."""
        with Workspace.reading(folder) as workspace:
            config = workspace.state().knowledge.config
        recommender = cls(threads=threads, **config.model_dump())
        recommender._settle_in(DiskHome(Path(folder)))
        return recommender

    def _settle_in(self, home: Home) -> None:
        self._home, self._serving = home, Serving(home, self._work)

    def _learned_serving(self) -> Serving:
        if self._serving is None:
            raise WrongUse("nothing was learned yet: call fit first")
        return self._serving

    def _learned_home(self) -> Home:
        if self._home is None:
            raise WrongUse("nothing was learned yet: call fit first")
        return self._home


_FIELDS: list[Any] = [
    pa.field("user_id", pa.string()),
    pa.field("item_id", pa.string()),
    pa.field("score", pa.float64()),
    pa.field("rank", pa.int64()),
    pa.field("popular", pa.bool_()),
]
RECOMMENDATIONS = pa.schema(_FIELDS)


def _texts(ids: Iterable[UserId]) -> list[str]:
    if isinstance(ids, str | int):
        raise WrongUse(f"give a list of ids: [{ids!r}], not {ids!r}")
    return [str(identifier) for identifier in ids]


def _requests(users: Iterable[UserId], items: Sequence[UserId] | None) -> list[Request]:
    named = _texts(users)
    if items is not None and len(named) != 1:
        raise WrongUse("items need exactly one user")
    return [Request(user, None if items is None else tuple(_texts(items))) for user in named]
