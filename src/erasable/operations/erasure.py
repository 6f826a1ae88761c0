"""The steps of an erasure: accept, erase, scan, certify; each is durable before the next begins.

Accepted requests lie in the workspace until their certificates do, so that a process that is killed in between loses
none: whoever forgets next finishes them.
"""

import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from erasable import fingerprint
from erasable.errors import ErasableError, ResidueFound, WorkspaceError, WrongUse, option, said
from erasable.evaluation import Utility, measure, measured_people
from erasable.operations.do_not_learn import Listing, put_on_lists
from erasable.operations.home import Session, resuming
from erasable.operations.input_facts import without_names_like
from erasable.operations.recording import version_facts
from erasable.operations.traces import held_ids, target_of, that_must_be_gone, traces_of
from erasable.operations.work import Work
from erasable.proof import (
    NOTHING_PENDING,
    Certificate,
    CertifiedScan,
    Erased,
    Outcome,
    Pending,
    Receipt,
    add_record,
    certificate_page,
    certified_steps,
    coarse,
    data_digest,
    head_of,
    issue_certificates,
    now,
)
from erasable.proof.residue import (
    PERSONAL,
    PERSONAL_OR_SHARED,
    TEXTS,
    TEXTS_IF_ANY,
    Residue,
    Scan,
    Target,
    scan_contents,
    scan_folder,
)
from erasable.proof.suppression import Suppression
from erasable.store import files
from erasable.store.layout import AUDIT, LEDGER_FILES, certificate_name
from erasable.training import Knowledge, State
from erasable.unlearning import Erasure, Plan, carry_out, largest_cost, plan_change

_BYTES_PER_CERTIFICATE = 40_000
_SLOWER = 2  # a machine that is busy may take so many times as long as training took before


@dataclass(frozen=True)
class Outside:
    """What an erasure writes outside the workspace, if anything.

    Parameters
    ----------
    receipts : Path, optional
        The folder for the people's receipts.
    suppression : Suppression, optional
        Another do-not-learn list, with its key, than the one that is remembered.
    without_do_not_learn : bool, default False
        Whether no such list is kept from now on.
    erased : callable, optional
        Who else is told that the data is gone, before the workspace is searched.
    reference : str, optional
        The own case number of one person's request, which the receipt holds.

    Examples
    --------
    >>> Outside(receipts=Path("receipts")).without_do_not_learn
    False
    """

    receipts: Path | None = None
    """The folder for the subjects' receipts."""
    suppression: Suppression | None = None
    """Another do-not-learn list, with its key, than the one that is remembered."""
    without_do_not_learn: bool = False
    """Whether no such list is kept from now on."""
    erased: Callable[[Pending], None] | None = None
    """Who else is told that the data is gone, and forgets the people too before the workspace is searched for them."""

    reference: str | None = None
    """The own case number of one person's request, which the receipt holds."""

    @property
    def listing(self) -> Listing:
        """What is said about the do-not-learn list."""
        return Listing(self.suppression, self.without_do_not_learn)


@dataclass(frozen=True)
class Done:
    """What an erasure was about and what it took."""

    pending: Pending
    plan: Plan
    dropped: int


def prepare_outside(outside: Outside, workspace: Path | None) -> None:
    """Refuse, before any work, what could not be written outside the workspace afterwards."""
    if outside.receipts is not None:
        _make_receipts_folder(outside.receipts, workspace)


def accept(session: Session, pending: Pending) -> None:
    """Make requests durable: from here on they are carried out, by this process or by the next."""
    session.amend(replace(session.papers(), pending=pending.encoded()))


def withdraw(session: Session, pending: Pending) -> None:
    """Go back to what was pending before, where that can be done; the state is as before."""
    with suppress(ErasableError):
        session.amend(replace(session.papers(), pending=pending.encoded() if pending.accepted else b""))


def erase(session: Session, pending: Pending, rerun: bool, work: Work) -> Done:
    """Carry out accepted requests and make what they leave current."""
    began = time.perf_counter()
    state = session.state()
    before = state.untrained() if rerun else state
    after = Erasure.of(pending.requests).apply(before.knowledge, work.grouping)
    planned = plan_change(before, after)
    session.refuse_if_full(_room_for(session, planned, pending))
    traces = traces_of(pending, session, state)
    data_before = data_digest(session.stamp.salt, state.knowledge)
    utility = _utility(session, state, after, work)
    with work.training("forgetting", planned.samples) as effort:
        new_state = carry_out(planned, before, after, session.checkpoints, effort, work.executor)
    put_on_lists(session, pending)
    seconds = time.perf_counter() - began
    erased = Erased(
        at=now(),
        seconds=seconds,
        threads=work.threads,
        rerun=planned.rerun,
        cost_ratio=planned.cost_ratio,
        cost_at_most=largest_cost(planned, after, len(pending.accepted)),
        seconds_at_most=max(seconds, _SLOWER * sum(link.seconds for link in new_state.chain)),
        data_before=data_before,
        utility_before=None if utility is None else dict(utility.values),
        traces=that_must_be_gone(traces, session.checkpoints, state, new_state),
    )
    done = pending.model_copy(update={"erased": erased})
    papers = session.papers()
    preferences = without_names_like(papers.preferences, pending.users)
    session.commit(new_state, replace(papers, pending=done.encoded(), preferences=preferences))
    return Done(done, planned, _dropped(state.knowledge, after, pending))


def certify(session: Session, pending: Pending, outside: Outside, work: Work) -> list[Certificate]:
    """Search the workspace for the people who were erased; only if nothing is found, issue their certificates."""
    papers = session.papers()
    outcome = _outcome(session, pending, work)
    certificates = issue_certificates(pending, outcome, papers.key)
    pages = {one.request_id: certificate_page(one) for one in certificates}
    record = {
        **version_facts(session.state(), session.stamp),
        **_work_facts(session, pending),
        "files": outcome.files,
        "certificates": {one.request_id: one.digest() for one in certificates},
        "pages": {request_id: fingerprint.of_bytes(page) for request_id, page in pages.items()},
    }
    named = {f"{one.request_id}.json": one.content for one in certificates}
    named |= {f"{request_id}.html": page for request_id, page in pages.items()}
    audit = add_record(papers.audit, "forget", record)
    if session.path is not None:
        ours = [one.request_id for one in certificates]
        held = replace(held_ids(session.state().knowledge, NOTHING_PENDING), declared=papers.preferences.issuers)
        found = scan_contents(_placed(named, audit), _targets(pending), ours, held)
        _refuse_residues(session.path, found)
    if outside.receipts is not None:
        _write_receipts(pending, outside.receipts)
    session.amend(replace(papers, audit=audit, pending=b"", certificates=named, seal=True))
    return certificates


def _work_facts(session: Session, pending: Pending) -> dict[str, object]:
    """Return what the log says of the work, for `verify` and for the officer: certificates leave it out."""
    state, erased = session.state(), pending.erased
    if erased is None:
        return {}
    steps = certified_steps(state, session.checkpoints, session.stamp.salt, erased.rerun)
    return {
        "stages": state.knowledge.stages,
        "steps": [step.model_dump(mode="json") for step in steps],
        "cost": coarse.share(erased.cost_ratio),
        "duration": coarse.duration(erased.seconds),
    }


def _placed(certificates: Mapping[str, bytes], audit: bytes) -> dict[str, bytes]:
    """Return papers that are about to be written, by where they will lie."""
    return {certificate_name(name): content for name, content in certificates.items()} | {AUDIT: audit}


def _outcome(session: Session, pending: Pending, work: Work) -> Outcome:
    """Scan and measure what the erasure has left."""
    with work.reporter.track("scanning"):
        scan = _scan(session, pending)
    scanned, state = now(), session.state()
    return Outcome(
        state=state,
        environment=state.environment,
        stamp=session.stamp,
        audit=head_of(session.papers().audit),
        scan=None if scan is None else _certified_scan(scan, _has_rows(session)),
        scanned=scanned,
        utility=_utility(session, state, state.knowledge, work),
        issuer=session.papers().preferences.issuer,
        files=None if scan is None else scan.files,
    )


def _certified_scan(scan: Scan, has_rows: bool) -> CertifiedScan:
    """Return a scan that found nothing as certificates have it.

    A row that the person still has is not searched for, and not every erasure destroys a checkpoint. Either would tell
    of what was erased, or who is an anchor, so the sentences about rows and names are always there, in the same place.
    """
    said = [sentence for sentence in scan.searched if sentence not in (PERSONAL, TEXTS)]
    return CertifiedScan(
        files=coarse.count(scan.files),
        size=coarse.size(scan.bytes),
        kinds=tuple(kind for kind, files_of_it in scan.kinds.items() if files_of_it),
        searched=(*said, *((PERSONAL_OR_SHARED,) if has_rows else ()), TEXTS_IF_ANY),
    )


def _has_rows(session: Session) -> bool:
    """Whether checkpoints hold user rows; ease has none, and those that are solved when needed are not stored."""
    return bool(session.state().trained_rows(session.checkpoints, 0))


def _room_for(session: Session, planned: Plan, pending: Pending) -> int:
    """Return about how many bytes an erasure writes before it can destroy what it replaces."""
    steps = len(session.state().chain)
    share = min(1.0, (len(planned.rerun) + 1) / (steps + 1))  # the data of a group are written again as well
    return int(session.size * share) + _BYTES_PER_CERTIFICATE * len(pending.accepted)


def _scan(session: Session, pending: Pending) -> Scan | None:
    """Search every file but that of the pending requests, which goes when the certificates are written."""
    if session.path is None:
        return None
    try:
        issuers = session.papers().preferences.issuers
        held = replace(held_ids(session.state().knowledge, NOTHING_PENDING), declared=issuers)
        scan = scan_folder(session.path, _targets(pending), session.pending_files, held, session.sealed_files)
    except WorkspaceError as error:
        raise _not_certified(session.path, said("not every file could be searched (", error.said, ")")) from error
    _refuse_residues(session.path, scan.residues)
    return scan


def _targets(pending: Pending) -> list[Target]:
    return [target_of(trace) for trace in pending.erased.traces] if pending.erased else []


def _refuse_residues(path: Path, residues: Sequence[Residue]) -> None:
    if residues:
        places = "; ".join(f"{residue.file} ({residue.place})" for residue in residues[:5])
        raise _not_certified(path, f"{len(residues)} places still hold the person: {places}{_hint(path, residues)}")


def _hint(path: Path, residues: Sequence[Residue]) -> str:
    """Return what to do about the service's ledger, which must not be removed."""
    if not any(residue.file in LEDGER_FILES for residue in residues):
        return ""
    place = shlex.quote(str(path))
    return (
        " (leave the ledger where it is: an open request or a remark about the person goes when erasable serve runs, "
        f"which finishes this; a token's label that names the person is changed by erasable token rename {place} "
        f"NUMBER LABEL, with the number that erasable token list {place} shows)"
    )


def _not_certified(path: Path, reason: str) -> ResidueFound:
    return ResidueFound("the erasure is done, but not certified: ", reason, ". Remove them, then run: ", resuming(path))


def _utility(session: Session, state: State, left: Knowledge, work: Work) -> Utility | None:
    """Measure on the holdout of those who are left, of at most 10,000 people, if there is one."""
    if not len(left.held_out):
        return None
    with work.reporter.track("evaluating"):
        people = measured_people(left.held_out, left.config.seed)
        return measure(state, session.checkpoints, people, work.threads)


def _make_receipts_folder(folder: Path, workspace: Path | None) -> None:
    if workspace is not None and folder.resolve().is_relative_to(workspace.resolve()):
        raise WrongUse(f"{folder} lies in the workspace, which must not keep receipts: give another folder")
    if not folder.is_dir():
        files.make_folder(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise WrongUse(f"{folder} can't be written to: give ", option("receipts"), " another folder")


def _write_receipts(pending: Pending, folder: Path) -> None:
    for accepted in pending.accepted:
        receipt = Receipt.of(accepted)
        files.write_file(folder / f"{receipt.request_id}.json", receipt.encoded())


def _dropped(before: Knowledge, after: Knowledge, pending: Pending) -> int:
    """Count those who are gone without having asked for it."""
    left = {user for group in after.groups for user in group.users}
    gone = {user for group in before.groups for user in group.users} - left
    return len(gone - pending.users)
