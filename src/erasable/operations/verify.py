"""Verify: check every file, record and signature, then train again from what is left, and compare every byte."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from erasable.errors import (
    NewerDocument,
    Refused,
    Said,
    UnknownModel,
    WorkspaceDamaged,
    WorkspaceError,
    WrongUse,
    option,
    said,
)
from erasable.evaluation import compare, replay
from erasable.operations.broken_papers import is_unrecorded
from erasable.operations.do_not_learn import checkable
from erasable.operations.home import Home, Session, resuming, upgrading
from erasable.operations.learn import samples_of
from erasable.operations.recording import record_verification, version_facts
from erasable.operations.recovery import left_to_finish
from erasable.operations.suppressed import queue_fault
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import (
    Certificate,
    Receipt,
    certificate_fault,
    chain_fault,
    first_fault,
    held_fault,
    newest_certificate,
    papers_fault,
    read_certificate,
    read_receipt,
    read_search,
    recorded_steps,
    records_about,
    says_more_than_known,
    signing_public_key,
    version_fault,
)
from erasable.proof.suppression import Suppression, SuppressionList, held, with_requests
from erasable.requests import Request
from erasable.training import Elsewhere, MemoryStore, State, label_of, made_elsewhere

_Paper = TypeVar("_Paper")
# Each kind of paper, and a field that nothing else has: one that was changed may have lost one of the two.
_CERTIFICATE = "certificate of erasure", "signature"
_RECEIPT = "receipt of erasure", "salt"
_PUT_BACK = " (if an older manifest.json was put back, that was rightly destroyed: take the newest copy of the folder)"


@dataclass(frozen=True)
class Claim:
    """What is to be verified beside the workspace itself.

    Parameters
    ----------
    certificate : Path, optional
        A certificate that must be of this workspace.
    receipt : Path, optional
        A receipt that must belong to that certificate.
    from_scratch : bool, default False
        Whether all stages are trained again, not only those that the certificate's erasure has trained.
    suppression : Suppression, optional
        Another list of people whom the workspace must not hold than the one that it remembers.

    Examples
    --------
    >>> Claim(certificate=Path("shop/certificates/1.json")).from_scratch
    False
    """

    certificate: Path | None = None
    """A certificate that must be of this workspace."""
    receipt: Path | None = None
    """A receipt that must belong to that certificate."""
    from_scratch: bool = False
    """Whether all stages are trained again, not only those that the certificate's erasure has trained."""
    suppression: Suppression | None = None
    """Another list of people whom the workspace must not hold than the one that it remembers."""

    def in_words(self) -> str:
        """Say what was found right beside the workspace itself."""
        given = {"certificate": self.certificate, "receipt": self.receipt, "do-not-learn list": self.suppression}
        checked = [f"the {name}" for name, value in given.items() if value is not None]
        return f"{' and '.join(checked)} {'agrees' if len(checked) == 1 else 'agree'}; " if checked else ""


NO_CLAIM = Claim()


@dataclass(frozen=True)
class Verification:
    """Whether a replay gives the same bytes (None: can't be told here), and how many arrays were compared."""

    identical: bool | None
    compared: int
    reason: str
    stages_replayed: int = 0
    recorded: bool = False
    """Whether the audit chain says that this was done."""
    elsewhere: bool = False
    """Whether it can't be told because it was made in another numeric environment; else something is missing."""


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
    named = SuppressionList.open(claim.suppression) if claim.suppression else None
    try:
        certificate, receipt = _given(claim)
        with home.reading() as session:
            fault = integrity_fault(session, certificate)
            listed, unlisted = (named, "") if named or fault else checkable(session)
            fault = fault or _content_fault(home, session, certificate, listed)
            if fault:
                return Verification(False, 0, fault)
            unknown = unlisted or _unasked(home)
            if unknown:
                return Verification(None, 0, unknown)
            found = made_elsewhere(session.state())
            if found:
                return Verification(None, 0, _not_here(session, found), elsewhere=True)
            newer = _newer(session, certificate, receipt)
            copied = _copied(home, session)
            made_again = None if claim.from_scratch else _made_again(certificate, session)
    except (NewerDocument, UnknownModel):  # nothing can be said about it here
        raise
    except (WorkspaceDamaged, Refused) as fault:
        return Verification(False, 0, fault.said)
    replayed = _replayed(home, copied, _positions(copied.state, made_again), work)
    if not replayed.identical:
        return replayed
    return replace(replayed, reason=said(claim.in_words(), newer, replayed.reason))


def _replayed(home: Home, held: _Held, positions: Sequence[int], work: Work) -> Verification:
    state, checkpoints = held.state, held.checkpoints
    with work.training("replaying", samples_of(state.knowledge, positions)) as effort:
        replayed = replay(state, effort, checkpoints, positions, work.executor)
    comparison = compare(state, checkpoints, replayed, positions)
    outcome = {"identical": comparison.identical, "compared": comparison.compared, "stages": len(positions)}
    recorded = record_verification(home, {**held.facts, **outcome}, work)
    reason = comparison.difference or _same_bytes(len(positions), len(state.chain))
    if comparison.identical and held.pending:
        reason = said(reason, "; but an erasure was interrupted: finish it with ", resuming(home.path))
    return Verification(comparison.identical, comparison.compared, reason, len(positions), recorded)


def _not_here(session: Session, found: Elsewhere) -> str:
    """Say which steps were made in another numeric environment, and how that differs."""
    some = len(found.places) < len(session.state().chain)
    what = f"{', '.join(map(label_of, found.places))} of it" if some else "it"
    return said(f"{what} was learned {found.how}: {found} (", upgrading(session), " makes it again here)")


def _same_bytes(replayed: int, steps: int) -> str:
    how = "from scratch" if replayed == steps else f"of {replayed} of {steps} steps, from the checkpoint before,"
    return f"a replay {how} on the data that is left gives the same bytes"


def _newer(session: Session, certificate: Certificate | None, receipt: Receipt | None) -> str:
    """Say what has a field that this version does not know, if anything has."""
    found = {
        "certificate": certificate is not None and certificate.newer,
        "receipt": receipt is not None and receipt.newer,
        "log": says_more_than_known(session.papers().records()),
        "manifest": session.newer,
    }
    named = [f"the {name}" for name, more in found.items() if more]
    return f"a newer version wrote {', '.join(named)}, with something that this one does not know; " if named else ""


def _given(claim: Claim) -> tuple[Certificate | None, Receipt | None]:
    """Read the certificate, and the receipt that belongs to it, each checked by itself."""
    if claim.certificate is None:
        if claim.receipt is not None:
            raise WrongUse(
                option("receipt"), " needs ", option("certificate"), ": a receipt shows whom a certificate is about"
            )
        return None, None
    certificate = _read(claim.certificate, _CERTIFICATE, read_certificate)
    receipt = None if claim.receipt is None else _read(claim.receipt, _RECEIPT, read_receipt)
    if receipt is not None and not receipt.opens(certificate):
        raise Refused(f"{claim.receipt} does not belong to {claim.certificate}")
    return certificate, receipt


def _read(path: Path, sign: tuple[str, str], reader: Callable[[bytes], _Paper]) -> _Paper:
    """Read a paper; what is none at all is wrong use, and what was changed is refused."""
    try:
        content = path.read_bytes()
        _refuse_other_files(path, content, sign)
        return reader(content)
    except OSError:
        made = Said("forget made", "erasable forget made")
        raise WrongUse(f"{path}: can't be read: give a file that ", made) from None
    except Refused as refused:
        raise type(refused)(f"{path}: ", refused.said) from None


def _refuse_other_files(path: Path, content: bytes, sign: tuple[str, str]) -> None:
    kind, field = sign
    if content.lstrip().startswith(b"<"):
        raise WrongUse(f"{path}: it is a page for people, and no {kind}: give the .json file")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise WrongUse(f"{path}: it is no JSON, or only a part of it: give the .json file that forget made") from None
    if not isinstance(found, dict) or (found.get("kind") != kind and field not in found):
        raise WrongUse(f"{path}: it is no {kind}: give the .json file that forget made")


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
    if certificate.public_key != signing_public_key(papers):
        raise WrongUse(
            "the certificate was signed with another key: it is of another workspace; name the folder that it is of"
        )
    return certificate_fault(certificate, papers, issued, session.stamp)


def _content_fault(
    home: Home, session: Session, certificate: Certificate | None, suppressed: SuppressionList | None
) -> str | None:
    """Say where data and checkpoints differ from what the last record, the certificate and the list say of them."""
    papers, state = session.papers(), session.state()
    fault = None if is_unrecorded(session) else version_fault(papers, session.stamp, state)
    if suppressed is not None:
        # Whoever is about to be erased may be on the list already.
        leaving = with_requests(SuppressionList(suppressed.key), _leaving(home, session))
        fault = fault or _resurrection(state, suppressed.without(leaving))
    newest = newest_certificate(session.issued())
    if newest is not None:
        fault = fault or held_fault(newest, state, session.stamp, state.environment)
    if certificate is not None:
        record = _record(certificate, session)
        fault = fault or chain_fault(certificate, record, state, session.checkpoints, session.stamp)
    return fault


def _leaving(home: Home, session: Session) -> list[Request]:
    """Return what is about to be erased, as far as that can be read."""
    accepted = [one.request for one in read_search(session.papers().pending).accepted]
    try:
        return [*accepted, *home.asked()]
    except WorkspaceError:
        return accepted


def _unasked(home: Home) -> str | None:
    """Say that who has asked to be erased can't be told, and why."""
    fault = queue_fault(home)
    return None if fault is None else said("who is not to be served can't be told (", fault, ")")


def _resurrection(state: State, suppressed: SuppressionList) -> str | None:
    found = held(suppressed, state.knowledge)
    if not found.total:
        return None
    return (
        f"what was erased is held again ({found}): an old copy was put back, or it was erased elsewhere with the same "
        "do-not-learn list; forget it here"
    )


def _damage(session: Session, damaged: Sequence[str]) -> str:
    """Name the files, and in the audit chain the record."""
    named = f"damaged or missing: {', '.join(damaged)}"
    if session.path is not None and any(not (session.path / name).exists() for name in damaged):
        named = f"{named}{_PUT_BACK}"
    if not any(name.startswith("audit") for name in damaged):
        return named
    try:
        located = first_fault(session.unchecked_audit()) or "records at its end are missing"
    except WorkspaceError:  # there is none to look into
        return named
    return f"{named}; the audit chain: {located}"


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


def _copied(home: Home, session: Session) -> _Held:
    state, checkpoints = session.state(), MemoryStore()
    for link in state.chain:
        checkpoints.put(session.checkpoints.get(link.fingerprint))
    for _ in state.knowledge.groups:
        pass
    try:
        pending = len(left_to_finish(home, session))
    except WorkspaceError:  # who only looks may not read the queue
        pending = len(read_search(session.papers().pending).users)
    return _Held(state, checkpoints, version_facts(state, session.stamp), pending)
