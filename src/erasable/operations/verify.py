"""Verify: check every file, record and signature, then train again on the data that is left, and compare every byte."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from erasable.chain.chain import Elsewhere, made_elsewhere
from erasable.chain.checkpoints import MemoryStore
from erasable.chain.dataset import State
from erasable.chain.plan import samples_of
from erasable.chain.tasks import Executor, label_of
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
from erasable.evaluation.replay import compare, replay
from erasable.operations.claims import integrity_fault, is_unrecorded, left_to_finish
from erasable.operations.do_not_learn import checkable
from erasable.operations.recording import record_verification, version_facts
from erasable.operations.storage import Session, Storage, queue_fault, resuming, upgrading
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof.certificate import Certificate, read_certificate, recorded_steps
from erasable.proof.checking import (
    chain_fault,
    held_fault,
    newest_certificate,
    records_about,
    version_fault,
)
from erasable.proof.do_not_learn import DoNotLearnFiles, DoNotLearnList, held, with_requests
from erasable.proof.issuing import Receipt, read_receipt
from erasable.proof.log import says_more_than_known
from erasable.proof.search_file import read_search
from erasable.requests.request import Request
from erasable.wording import listed

_Read = TypeVar("_Read")
# Each kind of document, and a field that only it has: a changed file may have lost one of the two.
_CERTIFICATE = "certificate of erasure", "signature"
_RECEIPT = "receipt of erasure", "salt"


@dataclass(frozen=True)
class Claim:
    """What to verify beside the workspace itself.

    Parameters
    ----------
    certificate : Path, optional
        A certificate that must belong to this workspace.
    receipt : Path, optional
        A receipt that must belong to that certificate.
    from_scratch : bool, default False
        Whether all stages are trained again, not only those that the certificate's erasure trained.
    do_not_learn : DoNotLearnFiles, optional
        A do-not-learn list to check instead of the one that the workspace remembers.

    Examples
    --------
    >>> Claim(certificate=Path("shop/certificates/1.json")).from_scratch
    False
    """

    certificate: Path | None = None
    """A certificate that must belong to this workspace."""
    receipt: Path | None = None
    """A receipt that must belong to that certificate."""
    from_scratch: bool = False
    """Whether all stages are trained again, not only those that the certificate's erasure trained."""
    do_not_learn: DoNotLearnFiles | None = None
    """A do-not-learn list to check instead of the one that the workspace remembers."""

    def in_words(self) -> str:
        """Say which documents agree with the workspace."""
        given = {"certificate": self.certificate, "receipt": self.receipt, "do-not-learn list": self.do_not_learn}
        checked = [f"the {name}" for name, value in given.items() if value is not None]
        return f"{listed(checked)} {'agrees' if len(checked) == 1 else 'agree'}; " if checked else ""


NO_CLAIM = Claim()


@dataclass(frozen=True)
class Verification:
    """Whether a replay gives the same bytes (None: it can't be told here), and how many arrays were compared."""

    identical: bool | None
    compared: int
    reason: str
    stages_replayed: int = 0
    recorded: bool = False
    """Whether the log has a record of this."""
    elsewhere: bool = False
    """Whether it can't be told because the model was trained in another numeric environment."""


@dataclass(frozen=True)
class _Held:
    """A copy of everything a replay needs, so that it does not keep a writer waiting."""

    state: State
    checkpoints: MemoryStore
    facts: dict[str, object]
    pending: int


def verify(storage: Storage, claim: Claim = NO_CLAIM, work: Work = QUIET_WORK) -> Verification:
    """Check files, records and signatures, then replay on the data that is left and compare byte for byte.

    With a certificate only the stages that its erasure trained are replayed, unless `from_scratch` is set.
    """
    named = DoNotLearnList.open(claim.do_not_learn) if claim.do_not_learn else None
    with ExitStack() as running:
        try:
            certificate, receipt = _given(claim)
            reading = running.enter_context(ExitStack())
            session = reading.enter_context(storage.reading())
            fault = integrity_fault(session, certificate)
            listed, unlisted = (named, "") if named or fault else checkable(session)
            fault = fault or _content_fault(storage, session, certificate, listed)
            if fault:
                return Verification(False, 0, fault)
            unknown = unlisted or _unreadable_queue(storage)
            if unknown:
                return Verification(None, 0, unknown)
            found = made_elsewhere(session.state())
            if found:
                return Verification(None, 0, _not_here(session, found), elsewhere=True)
            newer = _newer(session, certificate, receipt)
            copied = _copied(storage, session, in_memory=work.cluster is None)
            made_again = None if claim.from_scratch else _made_again(certificate, session)
        except (NewerDocument, UnknownModel):  # no verdict is possible here
            raise
        except (WorkspaceDamaged, Refused) as fault:
            return Verification(False, 0, fault.said)
        executor = running.enter_context(work.tasks_of(session))
        reading.close()
        replayed = _replayed(storage, copied, _positions(copied.state, made_again), work, executor)
    if not replayed.identical:
        return replayed
    return replace(replayed, reason=said(claim.in_words(), newer, replayed.reason))


def _replayed(storage: Storage, held: _Held, positions: Sequence[int], work: Work, executor: Executor) -> Verification:
    state, checkpoints = held.state, held.checkpoints
    with work.training("replaying", samples_of(state.dataset, positions)) as effort:
        replayed = replay(state, effort, checkpoints, positions, executor)
    comparison = compare(state, checkpoints, replayed, positions)
    outcome = {"identical": comparison.identical, "compared": comparison.compared, "stages": len(positions)}
    recorded = record_verification(storage, {**held.facts, **outcome}, work)
    reason = comparison.difference or _same_bytes(len(positions), len(state.chain))
    if comparison.identical and held.pending:
        reason = said(reason, "; but an erasure was interrupted: finish it with ", resuming(storage.path))
    return Verification(comparison.identical, comparison.compared, reason, len(positions), recorded)


def _not_here(session: Session, found: Elsewhere) -> str:
    """Say which steps were trained in another numeric environment, and how it differs."""
    some = len(found.places) < len(session.state().chain)
    what = f"{', '.join(map(label_of, found.places))} of it" if some else "it"
    return said(f"{what} was learned {found.how}: {found} (", upgrading(session), " makes it again here)")


def _same_bytes(replayed: int, steps: int) -> str:
    how = "from scratch" if replayed == steps else f"of {replayed} of {steps} steps, from the checkpoint before,"
    return f"a replay {how} on the data that is left gives the same bytes"


def _newer(session: Session, certificate: Certificate | None, receipt: Receipt | None) -> str:
    """Say which documents have a field that this release does not know."""
    found = {
        "certificate": certificate is not None and certificate.newer,
        "receipt": receipt is not None and receipt.newer,
        "log": says_more_than_known(session.documents().records()),
        "manifest": session.newer,
    }
    named = [f"the {name}" for name, more in found.items() if more]
    return f"a newer version wrote {', '.join(named)}, with something that this one does not know; " if named else ""


def _given(claim: Claim) -> tuple[Certificate | None, Receipt | None]:
    """Read the certificate and the receipt, and check that they belong together."""
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


def _read(path: Path, sign: tuple[str, str], reader: Callable[[bytes], _Read]) -> _Read:
    """Read a document; another kind of file is wrong use, a changed document is refused."""
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
        raise WrongUse(f"{path}: it is a web page, and no {kind}: give the .json file")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise WrongUse(f"{path}: it is no JSON, or only a part of it: give the .json file that forget made") from None
    if not isinstance(found, dict) or (found.get("kind") != kind and field not in found):
        raise WrongUse(f"{path}: it is no {kind}: give the .json file that forget made")


def _content_fault(
    storage: Storage, session: Session, certificate: Certificate | None, suppressed: DoNotLearnList | None
) -> str | None:
    """Return where data and checkpoints contradict the last record, the certificate or the do-not-learn list."""
    documents, state = session.documents(), session.state()
    fault = None if is_unrecorded(session) else version_fault(documents, session.stamp, state)
    if suppressed is not None:
        # People who are about to be erased may be on the list already.
        leaving = with_requests(DoNotLearnList(suppressed.key), _leaving(storage, session))
        fault = fault or _resurrection(state, suppressed.without(leaving))
    newest = newest_certificate(session.issued())
    if newest is not None:
        fault = fault or held_fault(newest, state, session.stamp, state.environment)
    if certificate is not None:
        record = _record(certificate, session)
        fault = fault or chain_fault(certificate, record, state, session.checkpoints, session.stamp)
    return fault


def _leaving(storage: Storage, session: Session) -> list[Request]:
    """Return the requests that are about to be carried out, as far as they can be read."""
    accepted = [one.request for one in read_search(session.documents().pending).accepted]
    try:
        return [*accepted, *storage.asked()]
    except WorkspaceError:
        return accepted


def _unreadable_queue(storage: Storage) -> str | None:
    """Say why it can't be told who has asked to be erased, if it can't."""
    fault = queue_fault(storage)
    return None if fault is None else said("it can't be told who has asked to be erased (", fault, ")")


def _resurrection(state: State, suppressed: DoNotLearnList) -> str | None:
    found = held(suppressed, state.dataset)
    if not found.total:
        return None
    return (
        f"what was erased is held again ({found}): an old copy was put back, or it was erased elsewhere with the same "
        "do-not-learn list; forget it here"
    )


def _made_again(certificate: Certificate | None, session: Session) -> set[int] | None:
    """Return the places in the chain that a certificate's erasure trained, by the certificate or its record.

    None if neither says so, or if the policy is to regroup, where each erasure trains everything.
    """
    if certificate is None or session.state().dataset.config.policy == "regroup":
        return None
    steps = certificate.chain or recorded_steps(_record(certificate, session))
    return None if steps is None else {place for place, step in enumerate(steps) if not step.kept}


def _record(certificate: Certificate, session: Session) -> Mapping[str, Any] | None:
    """Return the record of a certificate's erasure in the log."""
    return records_about([certificate.request_id], session.documents()).get(certificate.request_id)


def _positions(state: State, made_again: set[int] | None) -> Sequence[int]:
    """Return the steps to replay: all, or those that were trained."""
    everything = range(len(state.chain))
    # An erasure that trained nothing leaves no step of its own to replay: then all are.
    return [position for position in everything if position in (made_again or ())] or everything


def _copied(storage: Storage, session: Session, in_memory: bool) -> _Held:
    state, checkpoints = session.state(), MemoryStore()
    for link in state.chain:
        checkpoints.put(session.checkpoints.get(link.fingerprint))
    state = replace(state, dataset=state.dataset.recounted(in_memory))
    try:
        pending = len(left_to_finish(storage, session))
    except WorkspaceError:  # a reader may not be allowed to read the queue
        pending = len(read_search(session.documents().pending).users)
    return _Held(state, checkpoints, version_facts(state, session.stamp), pending)
