"""Upgrade: bring a recommender to the numeric environment of this process, and its files to the newest format.

Each checkpoint that was made elsewhere is trained again here, in the order of the chain, each from its new parent. If
the bytes are equal, the checkpoint is adopted: it gets the stamp of this environment. If not, the new bytes replace it.
All of it becomes current at once, with a record in the log.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from erasable.chain.arrangement import regrouped
from erasable.chain.chain import Earlier, Elsewhere, links_to_run, made_elsewhere, train_chain
from erasable.chain.checkpoints import (
    Checkpoint,
    CheckpointStore,
)
from erasable.chain.dataset import (
    Dataset,
    State,
)
from erasable.chain.plan import samples_of
from erasable.chain.tasks import environment_for, link_names
from erasable.errors import Refused, WorkspaceDamaged, said
from erasable.evaluation.replay import NOT_TRAINED, same_bytes
from erasable.operations.claims import integrity_fault
from erasable.operations.recording import version_facts
from erasable.operations.storage import Session, Storage, queue_fault, resuming
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof.checking import version_fault
from erasable.proof.issuing import numeric_part
from erasable.proof.log import add_record
from erasable.proof.search_file import read_search
from erasable.workspace.manifest import FORMAT, Stamp

_FROZEN = "0.1 froze the list of items; now it follows the people, and stages start from the items that they know"


@dataclass(frozen=True)
class UpgradePlan:
    """What an upgrade would do; nothing is trained to find out."""

    needed: bool
    """Whether there is anything to do."""
    format: int
    """The format of the files."""
    newest_format: int
    """The format that they would get."""
    differences: tuple[str, ...]
    """How the numeric environment or the rules here differ from those that made checkpoints."""
    steps_elsewhere: int
    """How many checkpoints were made in another numeric environment."""
    steps_replayed: int
    """How many would be trained again: those, and all that start from them."""
    steps_total: int
    seconds: float
    """About how long that takes, by the times measured when they were trained."""
    refused: str | None
    """Why an upgrade would be refused, if it would."""


@dataclass(frozen=True)
class Upgraded:
    """What an upgrade did."""

    changed: bool
    """Whether there was anything to do."""
    adopted: int
    """How many checkpoints from elsewhere have the same bytes here."""
    trained: int
    """How many have other bytes here; these are current now."""
    kept: int
    """How many were made in this environment already."""
    format_before: int
    format: int
    differences: tuple[str, ...]
    """How the numeric environment or the rules here differ from those that made checkpoints before."""
    version: int
    seconds: float


def plan_upgrade(storage: Storage) -> UpgradePlan:
    """Return what `upgrade` would do, and about how long it would take; nothing is changed or trained."""
    with storage.reading() as session:
        state = session.state()
        elsewhere = made_elsewhere(state)
        replayed = _to_replay(state, _following_people(state.dataset), elsewhere)
        needed = _is_needed(session, elsewhere)
        return UpgradePlan(
            needed=needed,
            format=session.format,
            newest_format=FORMAT,
            differences=_differences(elsewhere, state.dataset),
            steps_elsewhere=len(elsewhere.places),
            steps_replayed=len(replayed),
            steps_total=len(state.chain),
            seconds=sum(state.chain[place].seconds for place in replayed),
            refused=integrity_fault(session) or queue_fault(storage) or (_unready(session) if needed else None),
        )


def upgrade(storage: Storage, work: Work = QUIET_WORK) -> Upgraded:
    """Bring a recommender to this numeric environment and its files to the newest format; if it fails nothing changes.

    People who wait to be erased stay suppressed, and are erased afterwards.
    """
    began = time.perf_counter()
    with storage.writing() as session:
        before, format_before = session.state(), session.format
        elsewhere = made_elsewhere(before)
        changed = _is_needed(session, elsewhere)
        store = _Compared(session.checkpoints)
        if changed:
            _refuse_unready(storage, session)
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
            differences=_differences(elsewhere, before.dataset),
            version=session.stamp.version + changed,
            seconds=time.perf_counter() - began,
        )
        if changed:
            _commit(session, before, after, done, work)
    return done


class _Compared:
    """A store that replaces checkpoints by those trained here, and remembers which have the same bytes."""

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store
        self.made: set[str] = set()
        self.same: set[str] = set()

    def get(self, fingerprint: str) -> Checkpoint:
        """Return a checkpoint; the one trained here if there is one."""
        return self._store.get(fingerprint)

    def put(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint that was trained here, and note whether its bytes are the same as before."""
        name = checkpoint.fingerprint
        if name in self._store and same_bytes(self._store.get(name), checkpoint):
            self.same.add(name)
        self.made.add(name)
        self._store.put(checkpoint)

    def __contains__(self, fingerprint: str) -> bool:
        """Whether a checkpoint is kept."""
        return fingerprint in self._store


def _is_needed(session: Session, elsewhere: Elsewhere) -> bool:
    """Whether there is anything to do: checkpoints from elsewhere, or files or names of an earlier release."""
    state = session.state()
    is_older = session.format < FORMAT or bool(state.recorded)
    return bool(elsewhere) or is_older or _following_people(state.dataset) is not state.dataset


def _upgraded(session: Session, elsewhere: Elsewhere, store: CheckpointStore, work: Work) -> State:
    """Train again what was made elsewhere, and return the state with all links of this environment."""
    before = session.state()
    fault = integrity_fault(session) or version_fault(session.documents(), session.stamp, before)
    if fault:  # else damaged data would be recorded as if it had been learned
        raise WorkspaceDamaged(f"{fault}: restore it from a copy made after the last erasure, then upgrade")
    dataset = _under_newest_rules(before.dataset, elsewhere, work)
    places = _to_replay(before, dataset, elsewhere)
    session.refuse_if_full(session.size if places else 0)
    chain = [NOT_TRAINED if place in places else link for place, link in enumerate(before.chain)]
    work = work if places else replace(work, cluster=None)
    with work.tasks_of(session) as executor, work.training("replaying", samples_of(before.dataset, places)) as effort:
        after = train_chain(dataset, store, effort, Earlier(chain), executor)
    here = environment_for(dataset.config)  # 0.1 recorded more than what counts
    if before.recorded:  # checkpoints kept from 0.1 have its names and environment
        for link in after.chain:
            kept = session.checkpoints.get(link.fingerprint)
            session.checkpoints.put(replace(kept, environment=here))
    return State(dataset, tuple(replace(link, environment=here) for link in after.chain))


def _under_newest_rules(dataset: Dataset, elsewhere: Elsewhere, work: Work) -> Dataset:
    """Return the dataset in the form of this release.

    Under the policy regroup the groups are chosen again here, since that is what a replay compares with.
    """
    following = _following_people(dataset)
    following = replace(following, config=following.config.of_this_revision())
    return regrouped(following, work.grouping) if elsewhere and dataset.config.policy == "regroup" else following


def _following_people(dataset: Dataset) -> Dataset:
    """Return the dataset with a catalogue that follows the data, if 0.1 had frozen it."""
    frozen = dataset.catalogue is not None and not dataset.catalogue.declared
    return dataset.following() if frozen else dataset


def _differences(elsewhere: Elsewhere, dataset: Dataset) -> tuple[str, ...]:
    """Say why checkpoints may get other bytes here."""
    frozen = _following_people(dataset) is not dataset
    return (*elsewhere.differences, *([_FROZEN] if frozen else []))


def _to_replay(state: State, after: Dataset, elsewhere: Elsewhere) -> Sequence[int]:
    """Return the places of links made elsewhere or renamed, and of all that start from them."""
    other = links_to_run(link_names(after), state.chain)
    places: list[int] = []
    parents: set[str] = set()
    for place, link in enumerate(state.chain):
        if place in elsewhere.places or place in other or link.parent in parents:
            places.append(place)
            parents.add(link.fingerprint)
    return places


def _commit(session: Session, before: State, after: State, done: Upgraded, work: Work) -> None:
    documents, stamp = session.documents(), Stamp.after(session.stamp.version)
    facts = {
        **version_facts(after, stamp),
        "adopted": done.adopted,
        "trained": done.trained,
        "kept": done.kept,
        "before": {"format": done.format_before, "environment": numeric_part(before.environment)},
        "after": {"format": done.format, "environment": numeric_part(after.environment)},
    }
    with work.reporter.track("saving"):
        session.commit(after, replace(documents, log=add_record(documents.log, "upgrade", facts)), stamp)


def _refuse_unready(storage: Storage, session: Session) -> None:
    refused = queue_fault(storage) or _unready(session)
    if refused:
        raise Refused(refused)


def _unready(session: Session) -> str | None:
    """Say what to do first: missing certificates are about the current version."""
    if not read_search(session.documents().pending).erasures:
        return None
    finish = resuming(session.path)
    return said("an erasure is done and its certificates are missing: finish it with ", finish, ", then upgrade")
