"""Plan and forget: what erasing someone would touch and cost, and erasing them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from erasable import unlearning
from erasable.errors import NotReproducible, Refused
from erasable.operations.home import Home, Session
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import issue_certificates
from erasable.seeding import id_keys
from erasable.training import Knowledge, State, differences
from erasable.unlearning import Erasure, Plan, Request, known_requests, plan_change


@dataclass(frozen=True)
class Forgotten:
    """What forgetting did: one certificate for each person, and what it cost."""

    certificates: tuple[str, ...]
    stages_rerun: int
    stages_total: int
    chain_ratio: float
    cost_ratio: float
    seconds: float
    left_out: int
    """How many requests were left out because nothing is held of what they name."""
    dropped: int
    """How many others a filter that was applied anew no longer keeps (under the policy regroup)."""


def plan(home: Home, requests: Sequence[Request], work: Work = QUIET_WORK) -> Plan:
    """Say what forgetting these requests together would touch and cost; nothing is changed."""
    state = _loaded(home)
    return _planned(state, known_requests(requests, state.knowledge), work)


def plan_random(home: Home, count: int, work: Work = QUIET_WORK) -> Plan:
    """Say what forgetting some users chosen at random would touch and cost; nothing is changed."""
    state = _loaded(home)
    users = [user for group in state.knowledge.groups for user in group.users]
    if count > len(users):
        raise Refused(f"there are only {len(users)} users: give --random a smaller number")
    order = np.argsort(id_keys(state.knowledge.config.seed, "random plan", users), kind="stable")
    return _planned(state, [Request(users[place]) for place in order[:count]], work)


def forget(
    home: Home,
    requests: Sequence[Request],
    ignore_unknown: bool = False,
    rerun: bool = False,
    work: Work = QUIET_WORK,
) -> Forgotten:
    """Forget these requests together, exactly, and certify each; refused requests change nothing.

    In a numeric environment other than the one that learned, this is refused; with `rerun` everything is trained again.
    """
    began = time.perf_counter()
    with home.writing() as session:
        _check_environment(session, rerun)
        state = session.state()
        known = known_requests(requests, state.knowledge, ignore_unknown)
        left_out = len(requests) - len(known)
        if not known:
            return Forgotten((), 0, len(state.chain), 0.0, 0.0, time.perf_counter() - began, left_out, 0)
        before = State(state.knowledge, ()) if rerun else state
        after = _after(before, known, work)
        planned = plan_change(before, after)
        with work.training("forgetting", planned.samples) as effort:
            new_state = unlearning.forget(before, after, session.checkpoints, effort)
        seconds = time.perf_counter() - began
        certificates = issue_certificates(known, new_state, planned, (session.next_salt, seconds))
        session.commit(new_state, certificates)
    return Forgotten(
        certificates=tuple(home.certificate_place(name) for name in certificates),
        stages_rerun=planned.stages_rerun,
        stages_total=planned.stages_total,
        chain_ratio=planned.chain_ratio,
        cost_ratio=planned.cost_ratio,
        seconds=time.perf_counter() - began,
        left_out=left_out,
        dropped=_dropped(before.knowledge, after, known),
    )


def _dropped(before: Knowledge, after: Knowledge, requests: Sequence[Request]) -> int:
    """Count those who are gone without having asked for it."""
    left = {user for group in after.groups for user in group.users}
    gone = {user for group in before.groups for user in group.users} - left
    return len(gone - {request.user for request in requests})


def _loaded(home: Home) -> State:
    """Load everything, so that planning, which may decide groups anew, does not keep a writer waiting."""
    with home.reading() as session:
        state = session.state()
        return replace(state, knowledge=replace(state.knowledge, groups=tuple(state.knowledge.groups)))


def _planned(state: State, requests: Sequence[Request], work: Work) -> Plan:
    began = time.perf_counter()
    planned = plan_change(state, _after(state, requests, work))
    if state.knowledge.config.policy != "regroup":
        return planned
    # Deciding groups anew takes as long when it is done as when it is planned.
    return replace(planned, seconds_estimated=planned.seconds_estimated + time.perf_counter() - began)


def _after(state: State, requests: Sequence[Request], work: Work) -> Knowledge:
    return Erasure.of(requests).apply(state.knowledge, work.grouping)


def _check_environment(session: Session, rerun: bool) -> None:
    found = differences(session.environment)
    if found and not rerun:
        raise NotReproducible(
            f"this was learned in another numeric environment ({'; '.join(found)}): forget there, or give --rerun to "
            "train everything again here"
        )
