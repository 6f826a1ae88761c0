"""Plan: what forgetting would touch and how long it would take; nothing is changed.

Training is estimated from the rates that the chain was made at. Everything else that forgetting does is rehearsed here
and now, all but writing: reading, working out what is left, encoding it, searching the files, and a part of measuring.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from erasable import fingerprint
from erasable.errors import Refused
from erasable.evaluation import measure
from erasable.operations.home import Home, Session
from erasable.operations.traces import target_of, traces_of
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import NOTHING_PENDING, certificate_page, data_digest, newest_certificate
from erasable.proof.residue import scan_folder
from erasable.seeding import id_keys
from erasable.store.checkpoints import encode_checkpoint
from erasable.store.tables import encode_interactions
from erasable.training import Knowledge, State
from erasable.unlearning import Apart, Erasure, Plan, Request, known_requests, plan_change

_USERS_MEASURED = 100
_MEASUREMENTS = 2  # before and after
_SECONDS_OF_A_CERTIFICATE = 0.01  # where none was issued yet


def plan(home: Home, requests: Sequence[Request], work: Work = QUIET_WORK) -> Plan:
    """Say what forgetting these requests together would touch and cost, and what it would cost one by one."""
    began = time.perf_counter()
    state = _loaded(home)
    return _planned(home, state, known_requests(requests, state.knowledge), began, work)


def plan_random(home: Home, count: int, work: Work = QUIET_WORK) -> Plan:
    """Say the same of some users chosen at random."""
    began = time.perf_counter()
    state = _loaded(home)
    users = [user for group in state.knowledge.groups for user in group.users]
    if count > len(users):
        raise Refused(f"there are only {len(users)} users: give --random a smaller number")
    order = np.argsort(id_keys(state.knowledge.config.seed, "random plan", users), kind="stable")
    return _planned(home, state, [Request(users[place]) for place in order[:count]], began, work)


def _loaded(home: Home) -> State:
    """Load everything, so that planning, which may decide groups anew, does not keep a writer waiting."""
    with home.reading() as session:
        state = session.state()
        return replace(state, knowledge=replace(state.knowledge, groups=tuple(state.knowledge.groups)))


def _planned(home: Home, state: State, requests: Sequence[Request], began: float, work: Work) -> Plan:
    after = Erasure.of(requests).apply(state.knowledge, work.grouping)
    planned = plan_change(state, after)
    with home.reading() as session, work.reporter.track("rehearsing"):
        _rehearse(session, state, requests, after, planned)
        around = time.perf_counter() - began
        around += _seconds_of_measuring(session, state, after, work) + _seconds_of_certifying(session, len(requests))
    together = replace(planned, seconds_estimated=planned.seconds_estimated + around)
    apart = _apart(state, requests, around, work) if len(requests) > 1 else None
    return replace(together, apart=apart)


def _rehearse(session: Session, state: State, requests: Sequence[Request], after: Knowledge, planned: Plan) -> None:
    """Do what forgetting does beside training, measuring, certifying and writing."""
    traces = traces_of(NOTHING_PENDING.joined_with(requests), session, state)
    data_digest(session.stamp.salt, state.knowledge)
    data_digest(session.stamp.salt, after)
    for before, group in zip(state.knowledge.groups, after.groups, strict=False):
        if before is not group:
            encode_interactions(group)
    if session.path is not None:
        scan_folder(session.path, [target_of(trace) for trace in traces])
    for place in planned.rerun:
        if place < len(state.chain):
            checkpoint = session.checkpoints.get(state.chain[place].fingerprint)
            fingerprint.of_arrays(checkpoint.arrays())
            fingerprint.of_bytes(encode_checkpoint(checkpoint))


def _seconds_of_measuring(session: Session, state: State, after: Knowledge, work: Work) -> float:
    """Return how long utility takes before and after, from a part of the users."""
    users = after.held_out.users
    if not len(users):
        return 0.0
    some = after.held_out.of_users(users.texts()[:: max(1, len(users) // _USERS_MEASURED)])
    began = time.perf_counter()
    measure(state, session.checkpoints, some, work.threads)
    return _MEASUREMENTS * (time.perf_counter() - began) * len(users) / len(some.users)


def _seconds_of_certifying(session: Session, people: int) -> float:
    """Return how long certificates take, from the last one that was issued."""
    last = newest_certificate(session.issued())
    if last is None or not session.papers().key:
        return _SECONDS_OF_A_CERTIFICATE * people
    began = time.perf_counter()
    certificate_page(last.signed(session.papers().key))
    last.encoded()
    last.digest()
    return people * (time.perf_counter() - began)


def _apart(state: State, requests: Sequence[Request], around: float, work: Work) -> Apart:
    """Plan one person of each kind, since those of one group who shape the same cost about the same."""
    kinds: dict[tuple[int, bool], list[Request]] = {}
    for request in requests:
        kinds.setdefault(_kind(state.knowledge, request.user), []).append(request)
    plans = [
        (plan_change(state, Erasure.of(alike[:1]).apply(state.knowledge, work.grouping)), len(alike))
        for alike in kinds.values()
    ]
    return Apart(
        requests=len(requests),
        cost_ratio=sum(planned.cost_ratio * people for planned, people in plans),
        seconds_estimated=sum((planned.seconds_estimated + around) * people for planned, people in plans),
    )


def _kind(knowledge: Knowledge, user: str) -> tuple[int, bool]:
    """Return the position of a user's group, and whether the user shapes anything shared."""
    return knowledge.find(user)[0], bool(len(knowledge.lessons_of([user])))
