"""Plan: what forgetting would touch and how long it would take; nothing is changed.

Training time is estimated from the rates at which the chain was trained. Everything else that forgetting does, except
writing, is rehearsed here: reading, computing what is left, encoding it, searching the files, and measuring some users.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from erasable import fingerprint
from erasable.chain.chain import made_elsewhere
from erasable.chain.dataset import (
    Dataset,
    State,
)
from erasable.chain.plan import Apart, Erasure, Plan, known_requests, plan_change
from erasable.errors import Refused, option
from erasable.evaluation.protocols import measure, measured_people
from erasable.operations._vocabulary import vocabulary_of
from erasable.operations.people import served_meanwhile, telling_near_ids
from erasable.operations.scan import held_ids, held_of
from erasable.operations.storage import Session, Storage
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof.certificate import data_digest
from erasable.requests.queue import one_for_each
from erasable.requests.request import Request
from erasable.scan import scan_folder
from erasable.seeding import id_keys
from erasable.workspace.checkpoints import encode_checkpoint
from erasable.workspace.tables import encode_bucket

_USERS_MEASURED = 100
_MEASUREMENTS = 2  # before and after
_READINGS = 2  # data is read and prepared to erase, and again to certify
_SECONDS_OF_A_CERTIFICATE = 0.01


def plan(storage: Storage, requests: Sequence[Request], work: Work = QUIET_WORK) -> Plan:
    """Return what carrying out these requests together would touch and cost, and what it would cost one by one."""

    def choose(dataset: Dataset) -> list[Request]:
        with telling_near_ids(dataset, (request.user for request in requests)):
            return known_requests(requests, dataset)

    return _planned(storage, choose, work)


def plan_random(storage: Storage, count: int, work: Work = QUIET_WORK) -> Plan:
    """Return the same for some users chosen at random."""

    def choose(dataset: Dataset) -> list[Request]:
        users = [user for bucket in dataset.buckets for user in bucket.users]
        if count > len(users):
            raise Refused(f"there are only {len(users)} users: give ", option("random"), " a smaller number")
        order = np.argsort(id_keys(dataset.config.seed, "random plan", users), kind="stable")
        return [Request(users[place]) for place in order[:count]]

    return _planned(storage, choose, work)


def _planned(storage: Storage, choose: Callable[[Dataset], Sequence[Request]], work: Work) -> Plan:
    """Plan for the current version; if another has become current meanwhile, plan again.

    Files are kept open, so that planning, which may group users again, does not keep a writer waiting.
    """
    while True:
        began = time.perf_counter()
        with storage.reading() as session:
            stamp, loaded = session.stamp, session.state()
            state = replace(loaded, dataset=loaded.dataset.kept_open())
        before = state.untrained() if made_elsewhere(state).newer_revision else state
        requests = choose(state.dataset)
        after = Erasure.of(requests).apply(before.dataset, work.grouping)
        people = len({request.user for request in requests})
        planned = replace(
            plan_change(before, after, state.chain),
            people=people,
            people_total=state.dataset.users,
            served_meanwhile=served_meanwhile(state.dataset, requests),
        )
        preparing = time.perf_counter() - began
        with storage.reading() as session, work.reporter.track("rehearsing"):
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
    """Does what forgetting does beside training and writing, and times it."""

    session: Session
    state: State
    after: Dataset
    work: Work

    def of(self, requests: Sequence[Request], planned: Plan) -> float:
        """Return the seconds of everything that depends on the requests."""
        began = time.perf_counter()
        self._work_out(requests)
        for place in planned.rerun:
            if place < len(self.state.chain):
                checkpoint = self.session.checkpoints.get(self.state.chain[place].fingerprint)
                fingerprint.of_arrays(checkpoint.arrays())
                fingerprint.of_bytes(encode_checkpoint(checkpoint))
        return time.perf_counter() - began + _SECONDS_OF_A_CERTIFICATE * len(requests)

    def _work_out(self, requests: Sequence[Request]) -> None:
        """Compute and encode what is left, and search the files."""
        session, before = self.session, self.state.dataset
        targets = held_of(one_for_each(requests), session, self.state)
        data_digest(session.stamp.salt, before)
        data_digest(session.stamp.salt, self.after)
        for number in self.after.buckets.new_since(before.buckets):
            encode_bucket(self.after.buckets[number])
        if session.path is not None:
            held, words = held_ids(self.after), vocabulary_of(self.after)
            scan_folder(session.path, targets, words, sealed=session.sealed_files, held=held)

    def measuring(self) -> float:
        """Return the seconds of measuring utility before and after, extrapolated from some users."""
        users = measured_people(self.after).users.texts()
        if not users:
            return 0.0
        few, some = users[:1], users[:: max(1, len(users) // _USERS_MEASURED)]
        self._measured(few)  # compiles what is compiled on first use
        first, second = self._measured(few), self._measured(some)
        each = max(0.0, second - first) / max(1, len(some) - len(few))
        return _MEASUREMENTS * (first + each * len(users))

    def _measured(self, users: Sequence[str]) -> float:
        began = time.perf_counter()
        measure(self.state, self.session.checkpoints, self.after.data_held_out(users), self.work.threads)
        return time.perf_counter() - began


def _apart(state: State, requests: Sequence[Request], around: float, work: Work) -> Apart:
    """Plan one person of each kind: anchors of one group cost about the same, and so do its other users."""
    kinds: dict[tuple[int, bool], list[Request]] = {}
    shaping = set(state.dataset.lessons_of([request.user for request in requests]).users)
    for request in requests:
        kind = state.dataset.find(request.user).group, request.user in shaping
        kinds.setdefault(kind, []).append(request)
    plans = [
        (plan_change(state, Erasure.of(alike[:1]).apply(state.dataset, work.grouping)), len(alike))
        for alike in kinds.values()
    ]
    return Apart(
        requests=len(requests),
        cost_ratio=sum(planned.cost_ratio * people for planned, people in plans),
        seconds_estimated=sum((planned.seconds_estimated + around) * people for planned, people in plans),
    )
