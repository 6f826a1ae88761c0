"""Audit: attack a model before and after forgetting, and models that never knew the people; nothing is changed.

A workspace no longer holds those whom it has erased. So `audit` pretends: it takes people who are there, learns with
them in memory, forgets them as `forget` does, and attacks. Who has kept the rows of people that were erased can have
the workspace's own model attacked with them (`audit_erased`).
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from erasable.data import ColumnNames, Interactions, read_interactions, split_holdout
from erasable.errors import Refused, UnknownUser, WrongUse, option
from erasable.evaluation.membership import Suspects, familiarity
from erasable.evaluation.membership_verdict import FEWEST_SEEDS, Finding, Verdict, judge, overall
from erasable.operations.home import Home
from erasable.operations.membership_trial import Trial, training_rows
from erasable.operations.prepare import ANY_COLUMNS
from erasable.operations.work import QUIET_WORK, Work
from erasable.seeding import child_key, id_keys
from erasable.training import Knowledge

USUAL_SEEDS = 5
FEWEST_USERS = 20
_FEWEST_PEOPLE, _MOST_PEOPLE = 5, 200
_PURPOSE = "membership probe"


@dataclass(frozen=True)
class Probe:
    """What the attacks found, on whom, and what follows."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    people: int
    """How many were erased, or taken for erased."""
    others: int
    """How many they were to be told from."""
    seeds: int
    rounds: int
    """2 if a first round accused the model, so that all was done again with other seeds; only the last one counts."""
    pretended: bool
    """Whether the people are still there and were forgotten in memory only."""
    seconds: float


def audit(home: Home, users: int | None = None, seeds: int = USUAL_SEEDS, work: Work = QUIET_WORK) -> Probe:
    """Forget some people in memory, and say whether attacks still tell them from people who were never learned."""
    began = time.perf_counter()
    _check_seeds(seeds)
    with home.reading() as session:
        everyone = training_rows(session.state().knowledge)
    count = _how_many(everyone.users, users)
    drawn = _drawn(everyone, 2 * count)
    known = everyone.without(drawn[count:], ())
    suspects = _suspects(everyone, drawn, everyone.known_to_some)
    trial = Trial(known, known.without(drawn[:count], ()), frozenset(drawn[:count]), suspects)
    return _probe(trial, seeds, work, began)


def audit_erased(
    home: Home,
    source: Path,
    people: Sequence[str],
    seeds: int = USUAL_SEEDS,
    columns: ColumnNames = ANY_COLUMNS,
    work: Work = QUIET_WORK,
) -> Probe:
    """Attack the model as it is with the rows of people who were erased, read from a file.

    They are to be told from people who are still there. Every model knows those, so that none knows them better than
    the references do, which is all that an attack looks at; only the erased make a difference between models.
    """
    began = time.perf_counter()
    _check_seeds(seeds)
    data = read_interactions(source, columns).interactions
    with home.reading() as session:
        state = session.state()
        rows = _rows_of_erased(data, people, state.knowledge)
        left = training_rows(state.knowledge)
        others = _drawn(left, max(_how_many(left.users, None), min(len(rows.users), left.users)))
        known = _joined(left, rows)
        suspects = _suspects(known, [*people, *others], state.knowledge.known_to_some)
        forgotten = familiarity(state, session.checkpoints, suspects, work.threads)
    return _probe(Trial(known, left, frozenset(people), suspects, forgotten), seeds, work, began)


def _drawn(knowledge: Knowledge, count: int) -> list[str]:
    """Draw people by a hash of seed and id."""
    users = [user for group in knowledge.groups for user in group.users]
    order = np.argsort(id_keys(knowledge.config.seed, _PURPOSE, users), kind="stable")
    return [users[place] for place in order[:count]]


def _suspects(knowledge: Knowledge, people: Collection[str], asked: NDArray[np.bool_]) -> Suspects:
    """Return people with their rows, as far as it can be asked about their items."""
    parts = [group.of_users(people) for group in knowledge.groups]
    everything = Interactions.merge(parts)
    rows = everything.select(asked[everything.item_index])
    positions = np.zeros(len(rows.users), dtype=np.int64)
    for position, part in enumerate(parts):
        places = rows.users.positions_of(part.users.array)
        positions[places[places >= 0]] = position
    return Suspects(rows, positions, child_key(knowledge.config.seed, _PURPOSE) >> 1)


def _rows_of_erased(data: Interactions, people: Sequence[str], knowledge: Knowledge) -> Interactions:
    """Return what stages saw of people who are no longer there: items that are still known, without the holdout."""
    known = knowledge.items.take(np.flatnonzero(knowledge.known_to_some))
    inside = known.positions_of(data.items.array) >= 0
    rows = data.select(inside[data.item_index]).of_users(people)
    for user in people:
        if user not in data.users:
            raise UnknownUser(f"the data hold nothing of the user {user!r}: give the rows that were learned of them")
        if user not in rows.users:
            raise Refused(f"no item of the user {user!r} is known any more, so nothing can be asked: leave them out")
        if any(user in group.users for group in knowledge.groups):
            raise Refused(f"the user {user!r} was not erased: forget them first, or leave them out")
    knowledge.scale.check(rows.rating)
    return split_holdout(rows.with_items(knowledge.items), knowledge.config.holdout, knowledge.config.seed)[0]


def _joined(knowledge: Knowledge, rows: Interactions) -> Knowledge:
    """Add people, each to a group that a hash of seed and id names: where they were is not known any more."""
    keys = id_keys(knowledge.config.seed, f"{_PURPOSE} group", rows.users)
    positions = (keys % np.uint64(len(knowledge.groups))).astype(np.int64)[rows.user_index]
    groups = (
        Interactions.merge([group, rows.select(positions == position)])
        for position, group in enumerate(knowledge.groups)
    )
    return replace(knowledge, groups=tuple(groups))


def _how_many(users: int, wanted: int | None) -> int:
    """Return how many people to probe: a twentieth, so that most of the data stays, unless said otherwise."""
    if users < FEWEST_USERS:
        raise Refused(f"there are only {users} users, too few to tell people apart: learn from {FEWEST_USERS} or more")
    if wanted is None:
        return min(_MOST_PEOPLE, max(_FEWEST_PEOPLE, users // 20))
    if not _FEWEST_PEOPLE <= wanted <= users // 4:
        raise WrongUse(option("users", wanted), f" of {users} can't be probed: give a number from 5 to {users // 4}")
    return wanted


def _check_seeds(seeds: int) -> None:
    if seeds < FEWEST_SEEDS:
        raise WrongUse(f"{seeds} seeds show no spread: give ", option("seeds", FEWEST_SEEDS), " or more")


def _probe(trial: Trial, seeds: int, work: Work, began: float) -> Probe:
    """Attack and judge; before a model is accused all is done again, and what other seeds say counts."""
    findings, rounds = _one_round(trial, range(seeds), work), 1
    if overall(findings) == "remembers":
        work.reporter.note("an attack still succeeds after forgetting: asking again, with other seeds")
        findings, rounds = _one_round(trial, range(seeds, 2 * seeds), work), 2
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


def _one_round(trial: Trial, numbers: range, work: Work) -> tuple[Finding, ...]:
    with work.training("training and attacking", len(numbers) * trial.samples) as effort:
        return judge(trial.measured(numbers, effort, work.executor))
