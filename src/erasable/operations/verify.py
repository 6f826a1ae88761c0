"""Verify: check every file, record and signature, then train again from what is left, and compare every byte."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from erasable.errors import Refused, WorkspaceDamaged, WrongUse
from erasable.evaluation import compare, replay
from erasable.operations.home import Home, Session
from erasable.operations.learn import samples_of
from erasable.operations.recording import record_verification, version_facts
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import (
    Certificate,
    certificate_fault,
    chain_fault,
    first_fault,
    held_fault,
    newest_certificate,
    papers_fault,
    read_certificate,
    read_pending,
    read_receipt,
    recorded_steps,
    records_about,
    version_fault,
)
from erasable.proof.suppression import Suppression, SuppressionList, held
from erasable.training import MemoryStore, State, differences

_Paper = TypeVar("_Paper")


@dataclass(frozen=True)
class Claim:
    """What is to be verified beside the workspace itself."""

    certificate: Path | None = None
    """A certificate that must be of this workspace."""
    receipt: Path | None = None
    """A receipt that must belong to that certificate."""
    from_scratch: bool = False
    """Whether all stages are trained again, not only those that the certificate's erasure has trained."""
    suppression: Suppression | None = None
    """A list of people whom the workspace must not hold."""

    def in_words(self) -> str:
        """Say what was found right beside the workspace itself."""
        given = {"certificate": self.certificate, "receipt": self.receipt, "suppression list": self.suppression}
        checked = [f"the {name}" for name, value in given.items() if value is not None]
        return f"{' and '.join(checked)} {'agrees' if len(checked) == 1 else 'agree'}; " if checked else ""


NO_CLAIM = Claim()
_NEWER = "the certificate is of a newer version and says something that this one does not know; "


@dataclass(frozen=True)
class Verification:
    """Whether a replay gives the same bytes (None: can't be told here), and how many arrays were compared."""

    identical: bool | None
    compared: int
    reason: str
    stages_replayed: int = 0
    recorded: bool = False
    """Whether the audit chain says that this was done."""


@dataclass(frozen=True)
class _Held:
    """Everything that a workspace holds, copied, so that a replay does not keep a writer waiting."""

    state: State
    checkpoints: MemoryStore
    facts: dict[str, object]
    pending: int


def verify(home: Home, claim: Claim = NO_CLAIM, work: Work = QUIET_WORK) -> Verification:
    """Check files, records and signatures, then replay on the data that is left and compare byte for byte.

    With a certificate only the stages that its erasure has trained again are replayed, unless everything is asked for.
    """
    suppressed = SuppressionList.open(claim.suppression) if claim.suppression else None
    try:
        certificate = _certificate(claim)
        with home.reading() as session:
            fault = integrity_fault(session, certificate) or _content_fault(session, certificate, suppressed)
            if fault:
                return Verification(False, 0, fault)
            found = differences(session.environment)
            if found:
                return Verification(None, 0, f"it was learned in another numeric environment: {'; '.join(found)}")
            copied = _copied(session)
            made_again = None if claim.from_scratch else _made_again(certificate, session)
    except (WorkspaceDamaged, Refused) as fault:
        return Verification(False, 0, str(fault))
    replayed = _replayed(home, copied, _positions(copied.state, made_again), work)
    more = _NEWER if certificate and certificate.newer else ""
    return replace(replayed, reason=f"{claim.in_words()}{more}{replayed.reason}") if replayed.identical else replayed


def _replayed(home: Home, held: _Held, positions: Sequence[int], work: Work) -> Verification:
    state, checkpoints = held.state, held.checkpoints
    with work.training("replaying", samples_of(state.knowledge, positions)) as effort:
        replayed = replay(state, effort, checkpoints, positions)
    comparison = compare(state, checkpoints, replayed, positions)
    outcome = {"identical": comparison.identical, "compared": comparison.compared, "stages": len(positions)}
    recorded = record_verification(home, {**held.facts, **outcome}, work)
    reason = comparison.difference or _same_bytes(len(positions), len(state.chain), held.pending)
    return Verification(comparison.identical, comparison.compared, reason, len(positions), recorded)


def _same_bytes(replayed: int, steps: int, pending: int) -> str:
    how = "from scratch" if replayed == steps else f"of {replayed} of {steps} steps, from the checkpoint before,"
    reason = f"a replay {how} on the data that is left gives the same bytes"
    if not pending:
        return reason
    return f"{reason}; but an erasure was interrupted: finish it with erasable forget DIR --resume"


def _certificate(claim: Claim) -> Certificate | None:
    """Read the certificate, and the receipt that belongs to it, each checked by itself."""
    if claim.certificate is None:
        if claim.receipt is not None:
            raise WrongUse("--receipt needs --certificate: a receipt shows whom a certificate is about")
        return None
    certificate = _read(claim.certificate, read_certificate)
    if claim.receipt is not None and not _read(claim.receipt, read_receipt).opens(certificate):
        raise Refused(f"{claim.receipt} does not belong to {claim.certificate}")
    return certificate


def _read(path: Path, reader: Callable[[bytes], _Paper]) -> _Paper:
    try:
        return reader(path.read_bytes())
    except OSError:
        raise WrongUse(f"{path}: can't be read: give a file that erasable forget made") from None
    except Refused as refused:
        raise Refused(f"{path}: {refused}") from None


def integrity_fault(session: Session, certificate: Certificate | None = None) -> str | None:
    """Say what is wrong with files, records or signatures, if anything is; no data and no parameters are loaded."""
    damaged = session.damaged()
    if damaged:
        return _damage(session, damaged)
    if session.leftovers:
        return f"files of an earlier version are left, remove them: {', '.join(session.leftovers)}"
    papers, issued = session.papers(), session.issued()
    fault = papers_fault(papers, issued)
    if fault or certificate is None:
        return fault
    return certificate_fault(certificate, papers, issued, session.stamp)


def _content_fault(session: Session, certificate: Certificate | None, suppressed: SuppressionList | None) -> str | None:
    """Say where data and checkpoints differ from what the last record, the certificate and the list say of them."""
    papers, state = session.papers(), session.state()
    # An erasure that is current and not yet certified is not yet recorded either.
    uncertified = read_pending(papers.pending).erased is not None
    fault = None if uncertified else version_fault(papers, session.stamp, state)
    if suppressed is not None:
        fault = fault or _resurrection(state, suppressed)
    newest = newest_certificate(session.issued())
    if newest is not None and not uncertified:
        fault = fault or held_fault(newest, state, session.stamp, session.environment)
    if certificate is not None:
        record = _record(certificate, session)
        fault = fault or chain_fault(certificate, record, state, session.checkpoints, session.stamp)
    return fault


def _resurrection(state: State, suppressed: SuppressionList) -> str | None:
    found = held(suppressed, state.knowledge)
    return f"what was erased is held again ({found}): an old copy was put back; forget again" if found.total else None


def _damage(session: Session, damaged: Sequence[str]) -> str:
    """Name the files, and in the audit chain the record."""
    named = ", ".join(damaged)
    if not any(name.startswith("audit") for name in damaged):
        return f"damaged or missing: {named}"
    located = first_fault(session.unchecked_audit()) or "records at its end are missing"
    return f"damaged or missing: {named}; the audit chain: {located}"


def _made_again(certificate: Certificate | None, session: Session) -> set[int] | None:
    """Return the places in the chain that a certificate's erasure has made again, as it or its record in the log says.

    None if neither says so, or where each erasure makes everything again.
    """
    if certificate is None or session.state().knowledge.config.policy == "regroup":
        return None
    steps = certificate.chain or recorded_steps(_record(certificate, session))
    return None if steps is None else {place for place, step in enumerate(steps) if not step.kept}


def _record(certificate: Certificate, session: Session) -> Mapping[str, Any] | None:
    """Return what the log says of a certificate's erasure."""
    return records_about([certificate.request_id], session.papers()).get(certificate.request_id)


def _positions(state: State, made_again: set[int] | None) -> Sequence[int]:
    """Return the steps to replay: all, or those that were made again."""
    everything = range(len(state.chain))
    # An erasure that has trained nothing again leaves nothing of its own to replay.
    return [position for position in everything if position in (made_again or ())] or everything


def _copied(session: Session) -> _Held:
    state, checkpoints = session.state(), MemoryStore()
    for link in state.chain:
        checkpoints.put(session.checkpoints.get(link.fingerprint))
    for _ in state.knowledge.groups:
        pass
    pending = len(read_pending(session.papers().pending).accepted)
    return _Held(state, checkpoints, version_facts(state, session.stamp), pending)
