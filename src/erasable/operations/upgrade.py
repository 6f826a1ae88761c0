"""Upgrade: bring a recommender to the numeric environment of this process, and its files to the newest format.

Each checkpoint that was made elsewhere is made again here, in the order of the chain, each from its parent as it was
made here. Where the bytes agree the checkpoint is adopted: it gets the stamp of this environment. Where they don't, the
new bytes take its place. All of it becomes current at once, with a record in the log.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from erasable.errors import Refused, WorkspaceDamaged, said
from erasable.evaluation.replay import NOT_TRAINED, same_bytes
from erasable.operations.home import Home, Session, resuming
from erasable.operations.learn import samples_of
from erasable.operations.recording import version_facts
from erasable.operations.suppressed import queue_fault
from erasable.operations.verify import integrity_fault
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import add_record, read_search, version_fault
from erasable.proof.issuing import numeric_part
from erasable.store import FORMAT, Stamp
from erasable.training import (
    Checkpoint,
    CheckpointStore,
    Earlier,
    Elsewhere,
    Knowledge,
    State,
    environment_for,
    link_names,
    links_to_run,
    made_elsewhere,
    regrouped,
    train_chain,
)


@dataclass(frozen=True)
class UpgradePlan:
    """What an upgrade would find and do; nothing was made again to say this."""

    needed: bool
    """Whether there is anything to do."""
    format: int
    """The format of the files."""
    newest_format: int
    """The format that they would have."""
    differences: tuple[str, ...]
    """How the numeric environment here differs from the one that made checkpoints."""
    steps_elsewhere: int
    """How many checkpoints were made in another numeric environment."""
    steps_replayed: int
    """How many would be made again: those, and whatever follows from them."""
    steps_total: int
    seconds: float
    """About how long that takes, by the times that were measured when they were made."""
    refused: str | None
    """What is damaged, or has to be done first, if anything."""


@dataclass(frozen=True)
class Upgraded:
    """What an upgrade did."""

    changed: bool
    """Whether there was anything to do."""
    adopted: int
    """How many checkpoints that were made elsewhere have the same bytes here."""
    trained: int
    """How many have other bytes here, which are current now."""
    kept: int
    """How many were of here already."""
    format_before: int
    format: int
    differences: tuple[str, ...]
    """How the numeric environment here differs from the one that made checkpoints before."""
    version: int
    seconds: float


def plan_upgrade(home: Home) -> UpgradePlan:
    """Say what `upgrade` would find, and about how long it would take; nothing is changed or made again."""
    with home.reading() as session:
        state = session.state()
        elsewhere = made_elsewhere(state)
        replayed = _to_replay(state, _following_people(state.knowledge), elsewhere)
        needed = _is_needed(session, elsewhere)
        return UpgradePlan(
            needed=needed,
            format=session.format,
            newest_format=FORMAT,
            differences=elsewhere.differences,
            steps_elsewhere=len(elsewhere.places),
            steps_replayed=len(replayed),
            steps_total=len(state.chain),
            seconds=sum(state.chain[place].seconds for place in replayed),
            refused=integrity_fault(session) or queue_fault(home) or (_unready(session) if needed else None),
        )


def upgrade(home: Home, work: Work = QUIET_WORK) -> Upgraded:
    """Bring a recommender to this numeric environment and its files to the newest format; if it fails nothing changes.

    People who wait to be erased stay suppressed, and are erased as before afterwards.
    """
    began = time.perf_counter()
    with home.writing() as session:
        before, format_before = session.state(), session.format
        elsewhere = made_elsewhere(before)
        changed = _is_needed(session, elsewhere)
        store = _Compared(session.checkpoints)
        if changed:
            _refuse_unready(home, session)
        after = _upgraded(session, elsewhere, store, work) if changed else before
        made = [link.fingerprint for link in after.chain if link.fingerprint in store.made]
        adopted = sum(name in store.same for name in made)
        done = Upgraded(
            changed=changed,
            adopted=adopted,
            trained=len(made) - adopted,
            kept=len(after.chain) - len(made),
            format_before=format_before,
            format=FORMAT,
            differences=elsewhere.differences,
            version=session.stamp.version + changed,
            seconds=time.perf_counter() - began,
        )
        if changed:
            _commit(session, before, after, done, work)
    return done


class _Compared:
    """Keeps checkpoints that are made again in place of those of the same name, and remembers which are the same."""

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store
        self.made: set[str] = set()
        self.same: set[str] = set()

    def get(self, fingerprint: str) -> Checkpoint:
        """Return a checkpoint as it was made here, if it was already."""
        return self._store.get(fingerprint)

    def put(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint that was made here, whether or not its bytes are those of before."""
        name = checkpoint.fingerprint
        if name in self._store and same_bytes(self._store.get(name), checkpoint):
            self.same.add(name)
        self.made.add(name)
        self._store.put(checkpoint)

    def __contains__(self, fingerprint: str) -> bool:
        """Whether a checkpoint is kept."""
        return fingerprint in self._store


def _is_needed(session: Session, elsewhere: Elsewhere) -> bool:
    """Whether there is anything to do: checkpoints of elsewhere, or what an earlier release wrote or named."""
    state = session.state()
    is_older = session.format < FORMAT or bool(state.recorded)
    return bool(elsewhere) or is_older or _following_people(state.knowledge) is not state.knowledge


def _upgraded(session: Session, elsewhere: Elsewhere, store: CheckpointStore, work: Work) -> State:
    """Make again what was made elsewhere, and return the state with a chain that is of here throughout."""
    before = session.state()
    fault = integrity_fault(session) or version_fault(session.papers(), session.stamp, before)
    if fault:  # what is made again from it would be recorded as if it had been learned
        raise WorkspaceDamaged(f"{fault}: restore it from a copy made after the last erasure, then upgrade")
    knowledge = _under_newest_rules(before.knowledge, elsewhere, work)
    places = _to_replay(before, knowledge, elsewhere)
    session.refuse_if_full(session.size if places else 0)
    chain = [NOT_TRAINED if place in places else link for place, link in enumerate(before.chain)]
    with work.training("replaying", samples_of(before.knowledge, places)) as effort:
        after = train_chain(knowledge, store, effort, Earlier(chain), work.executor)
    here = environment_for(knowledge.config)  # what 0.1 recorded names more than what counts
    if before.recorded:  # what is kept of 0.1 lies under 0.1's names, with what 0.1 recorded
        for link in after.chain:
            kept = session.checkpoints.get(link.fingerprint)
            session.checkpoints.put(replace(kept, environment=here))
    return State(knowledge, tuple(replace(link, environment=here) for link in after.chain))


def _under_newest_rules(knowledge: Knowledge, elsewhere: Elsewhere, work: Work) -> Knowledge:
    """Return what is known by the rules of today; whatever an earlier version kept otherwise is brought forward here.

    Groups that are decided anew with each erasure are decided here, since that is what a replay compares with.
    """
    following = _following_people(knowledge)
    following = replace(following, config=following.config.of_this_revision())
    return regrouped(following, work.grouping) if elsewhere and knowledge.config.policy == "regroup" else following


def _following_people(knowledge: Knowledge) -> Knowledge:
    """Return the same knowledge with items that follow the people, where 0.1 froze those of the data."""
    frozen = knowledge.catalogue is not None and not knowledge.catalogue.declared
    return knowledge.following() if frozen else knowledge


def _to_replay(state: State, after: Knowledge, elsewhere: Elsewhere) -> Sequence[int]:
    """Return the places of what was made elsewhere or has another name now, and of all that follows from it."""
    other = links_to_run(link_names(after), state.chain)
    places: list[int] = []
    parents: set[str] = set()
    for place, link in enumerate(state.chain):
        if place in elsewhere.places or place in other or link.parent in parents:
            places.append(place)
            parents.add(link.fingerprint)
    return places


def _commit(session: Session, before: State, after: State, done: Upgraded, work: Work) -> None:
    papers, stamp = session.papers(), Stamp.after(session.stamp.version)
    facts = {
        **version_facts(after, stamp),
        "adopted": done.adopted,
        "trained": done.trained,
        "kept": done.kept,
        "before": {"format": done.format_before, "environment": numeric_part(before.environment)},
        "after": {"format": done.format, "environment": numeric_part(after.environment)},
    }
    with work.reporter.track("saving"):
        session.commit(after, replace(papers, audit=add_record(papers.audit, "upgrade", facts)), stamp)


def _refuse_unready(home: Home, session: Session) -> None:
    refused = queue_fault(home) or _unready(session)
    if refused:
        raise Refused(refused)


def _unready(session: Session) -> str | None:
    """Say what has to be done first: certificates that are missing are about the version that is current."""
    if not read_search(session.papers().pending).erasures:
        return None
    finish = resuming(session.path)
    return said("an erasure is done and its certificates are missing: finish it with ", finish, ", then upgrade")
