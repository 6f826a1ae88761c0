"""Membership attacks: on a model before and after forgetting, and on models that never saw the people."""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from erasable import chain
from erasable.chain.arrangement import regrouped
from erasable.chain.chain import links_to_run, train_chain
from erasable.chain.checkpoints import (
    Link,
    MemoryStore,
)
from erasable.chain.dataset import (
    Dataset,
    State,
    no_interactions,
)
from erasable.chain.plan import Erasure, samples_of
from erasable.chain.tasks import LOCAL, Executor, link_names
from erasable.data.catalogue import Catalogue
from erasable.data.columns import ANY_COLUMNS, ColumnNames, RememberedColumns
from erasable.data.interactions import Interactions
from erasable.data.readers import read_interactions
from erasable.data.sources import absolute_source
from erasable.documents import read_json
from erasable.errors import Refused, UnknownUser, WrongUse, option
from erasable.evaluation.attack import (
    FEWEST_SEEDS,
    AttackMeasurements,
    AttackResult,
    MembershipScores,
    Suspects,
    Verdict,
    judge,
    membership_scores,
    overall,
)
from erasable.fingerprint import canonical_json
from erasable.grouping.points import GroupingEffort
from erasable.models.base import Effort
from erasable.operations.remote import CarryOut, Facts
from erasable.operations.storage import Session, Storage
from erasable.operations.work import QUIET_WORK, Work, on_cluster
from erasable.requests.request import Request
from erasable.seeding import child_key, id_keys
from erasable.workspace.scratch import Scratch
from erasable.workspace.workspace import Workspace

USUAL_SEEDS = 5
FEWEST_USERS = 20
_FEWEST_PEOPLE, _MOST_PEOPLE = 5, 200
_PURPOSE = "membership probe"


@dataclass(frozen=True)
class Probe:
    """What the attacks found, on how many people, and the verdict."""

    verdict: Verdict
    findings: tuple[AttackResult, ...]
    people: int
    """How many were erased, or forgotten in memory."""
    others: int
    """How many people they were compared with."""
    seeds: int
    rounds: int
    """2 if the first round found a leak and was repeated with other seeds; only the last round counts."""
    pretended: bool
    """Whether the people are still there and were forgotten in memory only."""
    seconds: float


def attack(storage: Storage, users: int | None = None, seeds: int = USUAL_SEEDS, work: Work = QUIET_WORK) -> Probe:
    """Forget some people in memory, and say whether attacks can tell them from people who were never learned."""
    began = time.perf_counter()
    _check_seeds(seeds)
    with storage.reading() as session:
        trial = _trial(session.state().dataset, users)
        place = _Place(session, {"users": users})
    return _probe(trial, seeds, work, began, place)


def _trial(dataset: Dataset, users: int | None) -> "Trial":
    """Return a trial on people drawn by hash."""
    _refuse_too_few(dataset.users)
    everyone = training_rows(dataset)
    count = _how_many(everyone.users, users)
    drawn = _drawn(everyone, 2 * count)
    known = everyone.without(drawn[count:], ())
    suspects = _suspects(everyone, drawn, everyone.known_to_some)
    return Trial(known, known.without(drawn[:count], ()), frozenset(drawn[:count]), suspects)


def attack_erased(
    storage: Storage,
    source: str | Path,
    people: Sequence[str],
    seeds: int = USUAL_SEEDS,
    columns: ColumnNames = ANY_COLUMNS,
    work: Work = QUIET_WORK,
) -> Probe:
    """Attack the current model with the rows of erased people, read from a file.

    They are compared with people who are still there. The current model and the reference models all learned from
    those, and an attack looks only at differences between models, so only the erased people can make one.
    """
    began = time.perf_counter()
    _check_seeds(seeds)
    with storage.reading() as session:
        state = session.state()
        columns = RememberedColumns(**columns.given(), remembered=dict(session.documents().preferences.columns))
        data = read_interactions(source, columns, weights=state.dataset.config.weights).interactions
        trial = _trial_of_erased(state.dataset, data, people)
        forgotten = membership_scores(state, session.checkpoints, trial.suspects, work.threads)
        trial = replace(trial, forgotten=forgotten)
        given = {"people": list(people), "columns": columns.model_dump(), "source": absolute_source(source)}
        place = _Place(session, given)
    return _probe(trial, seeds, work, began, place)


def _trial_of_erased(dataset: Dataset, data: Interactions, people: Sequence[str]) -> "Trial":
    """Return a trial on people who were erased, with their rows."""
    _refuse_too_few(dataset.users)
    rows = _rows_of_erased(data, people, dataset)
    left = training_rows(dataset)
    others = _drawn(left, max(_how_many(left.users, None), min(len(rows.users), left.users)))
    known = _joined(left, rows)
    suspects = _suspects(known, [*people, *others], dataset.known_to_some)
    return Trial(known, left, frozenset(people), suspects)


@dataclass(frozen=True)
class _Place:
    """Where a trial was made, and from what, so that workers can make the same one."""

    session: Session
    given: Facts


@dataclass(frozen=True)
class _Attack:
    """One chain to train and attack: whether it learns from the people, and the number of its seed."""

    known: bool
    number: int


def attacks_with(numbers: Iterable[int]) -> list[_Attack]:
    """Return the chains of the seeds of these numbers."""
    return [_Attack(known, number) for number in numbers for known in (True, False)]


@dataclass(frozen=True, eq=False)
class Trial:
    """The datasets with and without the people, and whom the attacker asks about."""

    known: Dataset
    unknown: Dataset
    erased: frozenset[str]
    suspects: Suspects
    forgotten: MembershipScores | None = None
    """How familiar the suspects are to a model that has forgotten them; without one, chains forget them here."""

    @property
    def samples(self) -> int:
        """How many samples the chains of one seed visit."""
        forgetting = 0 if self.forgotten is not None else _samples_of_forgetting(self.known, self.unknown)
        return samples_of(self.known) + forgetting + samples_of(self.unknown)

    def measured(self, numbers: Iterable[int], effort: Effort, executor: Executor = LOCAL) -> AttackMeasurements:
        """Learn, forget and attack with the seeds of these numbers."""
        return self.gathered(executor.map(self.attacked, attacks_with(numbers), effort))

    def gathered(self, outcomes: Iterable[tuple["_Attack", "_Scored"]]) -> AttackMeasurements:
        """Return what the attacks on each chain measured."""
        before, never = list[MembershipScores](), list[MembershipScores]()
        forgotten = [] if self.forgotten is None else [self.forgotten]
        for task, (learned, left) in outcomes:
            (before if task.known else never).append(learned)
            forgotten += [] if left is None else [left]
        marked = np.array([user in self.erased for user in self.suspects.interactions.users])
        return AttackMeasurements(before, forgotten, never, marked)

    def attacked(self, task: "_Attack", effort: Effort) -> tuple[MembershipScores, MembershipScores | None]:
        """Return how familiar the suspects are to a chain, and how familiar after it has forgotten them."""
        dataset, kind = (self.known, "known") if task.known else (self.unknown, "unknown")
        state, store = _learned(dataset, child_key(self.suspects.seed, kind, task.number), effort)
        learned = membership_scores(state, store, self.suspects, effort.threads)
        if not task.known or self.forgotten is not None:
            return learned, None
        state = self._forgot(state, store, effort)
        return learned, membership_scores(state, store, self.suspects, effort.threads)

    def _forgot(self, state: State, store: MemoryStore, effort: Effort) -> State:
        """Forget the people as a workspace does."""
        erasure = Erasure.of([Request(user) for user in sorted(self.erased)])
        after = erasure.apply(state.dataset, GroupingEffort(effort.threads))
        return chain.forget(state, after, store, effort)


_Scored = tuple[MembershipScores, MembershipScores | None]


@dataclass(frozen=True)
class RemoteAttacks:
    """One chain to train and attack, elsewhere: the worker makes the same trial from the workspace."""

    version: int
    given: Facts
    forgets: bool
    """Whether chains forget the people."""

    @property
    def carry_out(self) -> CarryOut:
        """Trains and attacks a chain."""
        return attack_elsewhere

    def order(self, task: _Attack, scratch: Scratch) -> Facts:
        """Write down the chain, and what the trial is made of."""
        return {**asdict(task), "version": self.version, "given": dict(self.given), "forgets": self.forgets}

    def outcome(self, task: _Attack, facts: Facts, scratch: Scratch) -> _Scored:
        """Read the scores."""
        left = facts["left"]
        return np.array(facts["learned"]), None if left is None else np.array(left)


def attack_elsewhere(scratch: Scratch, facts: Facts, effort: Effort) -> Facts:
    """Train and attack one chain, in a worker."""
    trial = _trial_of_version(scratch.root, facts["version"], canonical_json(facts["given"]))
    trial = trial if facts["forgets"] else replace(trial, forgotten=np.empty(0))
    learned, left = trial.attacked(_Attack(facts["known"], facts["number"]), effort)
    return {"learned": learned.tolist(), "left": None if left is None else left.tolist()}


@lru_cache(maxsize=1)
def _trial_of_version(root: Path, version: int, given: bytes) -> Trial:
    dataset, facts = Workspace.of_a_task(root, version).state().dataset, read_json(given)
    if "source" not in facts:
        return _trial(dataset, facts["users"])
    columns = RememberedColumns(**facts["columns"])
    data = read_interactions(facts["source"], columns, weights=dataset.config.weights).interactions
    return _trial_of_erased(dataset, data, facts["people"])


def training_rows(dataset: Dataset) -> Dataset:
    """Return the training data, loaded, without holdout and filter: both were applied before.

    All items are declared, so every chain can be asked about the same ones.
    """
    config = dataset.config.changed(holdout=0.0, min_interactions=0)
    catalogue = dataset.catalogue or Catalogue.from_items(dataset.items)
    made = Dataset.of_groups(config, catalogue, dataset.scale, dataset.groups, no_interactions(dataset.items))
    return replace(made, features=dataset.features)


def _learned(dataset: Dataset, key: int, effort: Effort) -> tuple[State, MemoryStore]:
    """Train with another seed, in the same groups, or in new groups if the policy is to regroup."""
    seeded = replace(dataset, config=dataset.config.changed(seed=key >> 1))
    if seeded.config.policy == "regroup":
        seeded = regrouped(seeded, GroupingEffort(effort.threads))
    store = MemoryStore()
    return train_chain(seeded, store, effort), store


def _samples_of_forgetting(known: Dataset, unknown: Dataset) -> int:
    """Return how many samples forgetting visits; all of them if the policy is to regroup."""
    if known.config.policy == "regroup":
        return samples_of(unknown)
    chain = [Link(name, "", 0, 0.0) for name in link_names(known)]
    return samples_of(unknown, links_to_run(link_names(unknown), chain))


def _drawn(dataset: Dataset, count: int) -> list[str]:
    """Draw people by a hash of seed and id."""
    users = [user for group in dataset.groups for user in group.users]
    order = np.argsort(id_keys(dataset.config.seed, _PURPOSE, users), kind="stable")
    return [users[place] for place in order[:count]]


def _suspects(dataset: Dataset, people: Collection[str], asked: NDArray[np.bool_]) -> Suspects:
    """Return people with those of their rows whose items can be asked about."""
    parts = [group.of_users(people) for group in dataset.groups]
    everything = Interactions.merge(parts)
    rows = everything.select(asked[everything.item_index])
    positions = np.zeros(len(rows.users), dtype=np.int64)
    for position, part in enumerate(parts):
        places = rows.users.positions_of(part.users.array)
        positions[places[places >= 0]] = position
    return Suspects(rows, positions, child_key(dataset.config.seed, _PURPOSE) >> 1)


def _rows_of_erased(data: Interactions, people: Sequence[str], dataset: Dataset) -> Interactions:
    """Return the training rows of people who were erased: items that are still known, without the holdout."""
    known = dataset.items.take(np.flatnonzero(dataset.known_to_some))
    inside = known.positions_of(data.items.array) >= 0
    learned, _ = dataset.config.splitting.of(data.of_users(people))
    rows = learned.select(inside[learned.item_index])
    for user in people:
        if user not in data.users:
            raise UnknownUser(f"the data has no rows of the user {user!r}: give the rows that were learned from")
        if user not in rows.users:
            raise Refused(f"no item of the user {user!r} is known any more, so no attack is possible: leave them out")
        if dataset.buckets.find(user) is not None:
            raise Refused(f"the user {user!r} was not erased: forget them first, or leave them out")
    dataset.scale.check(rows.rating)
    return rows.with_items(dataset.items)


def _joined(dataset: Dataset, rows: Interactions) -> Dataset:
    """Add people, each to a group chosen by a hash of seed and id: their former group is not known any more."""
    keys = id_keys(dataset.config.seed, f"{_PURPOSE} group", rows.users)
    positions = (keys % np.uint64(dataset.group_count)).astype(np.int64)[rows.user_index]
    groups = (
        Interactions.merge([group, rows.select(positions == position)]) for position, group in enumerate(dataset.groups)
    )
    return dataset.with_groups(tuple(groups))


def _refuse_too_few(users: int) -> None:
    if users < FEWEST_USERS:
        raise Refused(f"there are only {users} users, too few to tell people apart: learn from {FEWEST_USERS} or more")


def _how_many(users: int, wanted: int | None) -> int:
    """Return how many people to attack: a twentieth, so that most of the data stays, unless a number is given."""
    if wanted is None:
        return min(_MOST_PEOPLE, max(_FEWEST_PEOPLE, users // 20))
    if not _FEWEST_PEOPLE <= wanted <= users // 4:
        raise WrongUse(option("users", wanted), f" of {users} can't be probed: give a number from 5 to {users // 4}")
    return wanted


def _check_seeds(seeds: int) -> None:
    if seeds < FEWEST_SEEDS:
        raise WrongUse(f"{seeds} seeds show no spread: give ", option("seeds", FEWEST_SEEDS), " or more")


def _probe(trial: Trial, seeds: int, work: Work, began: float, place: _Place) -> Probe:
    """Attack and judge; if a leak is found, repeat with other seeds, and the second round counts."""
    findings, rounds = _one_round(trial, range(seeds), work, place), 1
    if overall(findings) == "remembers":
        work.reporter.note("an attack still succeeds after forgetting: repeating with other seeds")
        findings, rounds = _one_round(trial, range(seeds, 2 * seeds), work, place), 2
    people, suspects = len(trial.erased), len(trial.suspects.interactions.users)
    return Probe(
        verdict=overall(findings),
        findings=findings,
        people=people,
        others=suspects - people,
        seeds=seeds,
        rounds=rounds,
        pretended=trial.forgotten is None,
        seconds=time.perf_counter() - began,
    )


def _one_round(trial: Trial, numbers: range, work: Work, place: _Place) -> tuple[AttackResult, ...]:
    with work.training("training and attacking", len(numbers) * trial.samples) as effort:
        if work.cluster is None:
            return judge(trial.measured(numbers, effort, work.executor))
        remote = RemoteAttacks(place.session.stamp.version, place.given, forgets=trial.forgotten is None)
        with on_cluster(work.cluster, place.session) as executor:
            return judge(trial.gathered(executor.run(remote, attacks_with(numbers), effort)))
