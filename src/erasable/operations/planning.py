"""Plan: what forgetting would touch and how long it would take; nothing is changed.

Training is estimated from the rates that the chain was made at. Everything else that forgetting does is rehearsed here
and now, all but writing: reading, working out what is left, encoding it, searching the files, and a part of measuring.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from erasable import fingerprint
from erasable.errors import Refused, option
from erasable.evaluation import measure, measured_people
from erasable.operations.home import Home, Session
from erasable.operations.meanwhile import served_meanwhile
from erasable.operations.near import telling_near_ids
from erasable.operations.traces import held_ids, held_of
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import data_digest
from erasable.proof.residue import scan_folder
from erasable.requests import Request
from erasable.requests.queue import one_for_each
from erasable.seeding import id_keys
from erasable.store.checkpoints import encode_checkpoint
from erasable.store.tables import encode_interactions
from erasable.training import Knowledge, State
from erasable.unlearning import Apart, Erasure, Plan, known_requests, plan_change

_USERS_MEASURED = 100
_MEASUREMENTS = 2  # before and after
_READINGS = 2  # everything is read and worked out to erase, and again to certify
_SECONDS_OF_A_CERTIFICATE = 0.01


def plan(home: Home, requests: Sequence[Request], work: Work = QUIET_WORK) -> Plan:
    """Say what forgetting these requests together would touch and cost, and what it would cost one by one."""

    def choose(knowledge: Knowledge) -> list[Request]:
        with telling_near_ids(knowledge, (request.user for request in requests)):
            return known_requests(requests, knowledge)

    return _planned(home, choose, work)


def plan_random(home: Home, count: int, work: Work = QUIET_WORK) -> Plan:
    """Say the same of some users chosen at random."""

    def choose(knowledge: Knowledge) -> list[Request]:
        users = [user for group in knowledge.groups for user in group.users]
        if count > len(users):
            raise Refused(f"there are only {len(users)} users: give ", option("random"), " a smaller number")
        order = np.argsort(id_keys(knowledge.config.seed, "random plan", users), kind="stable")
        return [Request(users[place]) for place in order[:count]]

    return _planned(home, choose, work)


def _planned(home: Home, choose: Callable[[Knowledge], Sequence[Request]], work: Work) -> Plan:
    """Plan what is there; if another version has become current meanwhile, plan that one.

    Everything is loaded first, so that planning, which may decide groups anew, does not keep a writer waiting.
    """
    while True:
        began = time.perf_counter()
        with home.reading() as session:
            stamp, loaded = session.stamp, session.state()
            state = replace(loaded, knowledge=replace(loaded.knowledge, groups=tuple(loaded.knowledge.groups)))
        requests = choose(state.knowledge)
        after = Erasure.of(requests).apply(state.knowledge, work.grouping)
        people = len({request.user for request in requests})
        planned = replace(
            plan_change(state, after),
            people=people,
            people_total=state.knowledge.users,
            served_meanwhile=served_meanwhile(state.knowledge, requests),
        )
        preparing = time.perf_counter() - began
        with home.reading() as session, work.reporter.track("rehearsing"):
            if session.stamp == stamp:
                return _with_seconds(planned, _Rehearsal(session, state, after, work), requests, preparing)


def _with_seconds(planned: Plan, rehearsal: "_Rehearsal", requests: Sequence[Request], preparing: float) -> Plan:
    measuring = rehearsal.measuring()
    preparing *= _READINGS
    around = preparing + rehearsal.of(requests, planned) + measuring
    together = replace(planned, seconds_estimated=planned.seconds_estimated + around)
    if len(requests) < 2:
        return together
    alone = preparing + rehearsal.of(requests[:1], planned) + measuring
    return replace(together, apart=_apart(rehearsal.state, requests, alone, rehearsal.work))


@dataclass(frozen=True)
class _Rehearsal:
    """Does what forgetting does beside training and writing, and says how long it took."""

    session: Session
    state: State
    after: Knowledge
    work: Work

    def of(self, requests: Sequence[Request], planned: Plan) -> float:
        """Return the seconds of everything that depends on who asks."""
        began = time.perf_counter()
        self._work_out(requests)
        for place in planned.rerun:
            if place < len(self.state.chain):
                checkpoint = self.session.checkpoints.get(self.state.chain[place].fingerprint)
                fingerprint.of_arrays(checkpoint.arrays())
                fingerprint.of_bytes(encode_checkpoint(checkpoint))
        return time.perf_counter() - began + _SECONDS_OF_A_CERTIFICATE * len(requests)

    def _work_out(self, requests: Sequence[Request]) -> None:
        """Encode what is left, and search the files."""
        session, before = self.session, self.state.knowledge
        targets = held_of(one_for_each(requests), session, self.state)
        data_digest(session.stamp.salt, before)
        data_digest(session.stamp.salt, self.after)
        for old, new in zip(before.groups, self.after.groups, strict=False):
            if old is not new:
                encode_interactions(new)
        encode_interactions(self.after.held_out)
        if session.path is not None:
            scan_folder(session.path, targets, sealed=session.sealed_files, held=held_ids(self.after))

    def measuring(self) -> float:
        """Return the seconds of measuring utility before and after, from what a few users and some more take."""
        users = measured_people(self.after.held_out, self.after.config.seed).users.texts()
        if not users:
            return 0.0
        few, some = users[:1], users[:: max(1, len(users) // _USERS_MEASURED)]
        self._measured(few)  # whatever is compiled on first use
        first, second = self._measured(few), self._measured(some)
        each = max(0.0, second - first) / max(1, len(some) - len(few))
        return _MEASUREMENTS * (first + each * len(users))

    def _measured(self, users: Sequence[str]) -> float:
        began = time.perf_counter()
        measure(self.state, self.session.checkpoints, self.after.held_out.of_users(users), self.work.threads)
        return time.perf_counter() - began


def _apart(state: State, requests: Sequence[Request], around: float, work: Work) -> Apart:
    """Plan one person of each kind, since those of one group who shape the same cost about the same."""
    kinds: dict[tuple[int, bool], list[Request]] = {}
    shaping = set(state.knowledge.lessons_of([request.user for request in requests]).users)
    for request in requests:
        kind = state.knowledge.find(request.user)[0], request.user in shaping
        kinds.setdefault(kind, []).append(request)
    plans = [
        (plan_change(state, Erasure.of(alike[:1]).apply(state.knowledge, work.grouping)), len(alike))
        for alike in kinds.values()
    ]
    return Apart(
        requests=len(requests),
        cost_ratio=sum(planned.cost_ratio * people for planned, people in plans),
        seconds_estimated=sum((planned.seconds_estimated + around) * people for planned, people in plans),
    )
