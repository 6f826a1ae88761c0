"""One erasure: plan, train, commit, have the queue forget who asked, search, certify; in one session.

What is erased and not certified lies in the search file, which becomes current together with the version without the
people. So whoever comes after a kill has one rule for each request that was begun: its certificate is there, so it is
erased; the search file names it, so it is certified next; else it begins again.
"""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from erasable import fingerprint
from erasable.evaluation import Utility, measure, measured_people
from erasable.operations.batching import joined_cheaply
from erasable.operations.desk import Desk
from erasable.operations.do_not_learn import Roll, lists_of, put_on_lists, still_listed
from erasable.operations.home import Session
from erasable.operations.input_facts import without_names_like
from erasable.operations.outside import Outside, write_receipts
from erasable.operations.recording import version_facts
from erasable.operations.searching import Found, places_shown, said, search_for
from erasable.operations.traces import held_ids, held_of, items_that_go, names_that_go, sought_after, targets_of
from erasable.operations.work import Work
from erasable.proof import (
    Certificate,
    CertifiedScan,
    Erased,
    Outcome,
    Receipt,
    Search,
    add_record,
    certificate_page,
    certified_steps,
    coarse,
    data_digest,
    head_of,
    issue_certificates,
    now,
    read_search,
)
from erasable.proof.residue import PERSONAL, PERSONAL_OR_SHARED, TEXTS, TEXTS_IF_ANY, Scan, scan_contents
from erasable.requests import Request
from erasable.requests.queue import one_for_each
from erasable.store import Stamp
from erasable.store.layout import AUDIT, certificate_name
from erasable.training import Knowledge, State
from erasable.unlearning import Erasure, Plan, carry_out, known_requests, largest_cost, plan_change

_BYTES_PER_CERTIFICATE = 40_000
_SLOWER = 2  # a machine that is busy may take so many times as long as training took before


@dataclass(frozen=True)
class Manner:
    """How an erasure is carried out."""

    roll: Roll
    """The do-not-learn list that people are put on."""
    outside: Outside
    rerun: bool = False
    """Whether everything is trained again."""


@dataclass(frozen=True)
class Certified:
    """Someone whose erasure is certified."""

    certificate: Certificate
    receipt: Receipt | None
    """None where it is the secret of whoever asked the service."""
    outcome: Mapping[str, Any] = field(repr=False)
    """What is shown beside the certificate."""


@dataclass(frozen=True)
class Carried:
    """What came of requests."""

    certified: tuple[Certified, ...] = ()
    set_aside: Mapping[str, str] = field(default_factory=dict)
    """Whose erasure is done and can't be certified, by request, and where something of them was found."""
    rejected: tuple[str, ...] = ()
    """Of whom nothing is held."""
    plan: Plan | None = None
    dropped: int = 0
    """How many others a filter that was applied anew no longer keeps."""
    state: State | None = field(default=None, repr=False)
    """What became current, with whatever is known of it already, such as the digests of its rows."""

    def joined_with(self, later: "Carried") -> "Carried":
        """Return this and what came after it."""
        return Carried(
            (*self.certified, *later.certified),
            {one: why for one, why in self.set_aside.items() if one not in later.outcomes} | dict(later.set_aside),
            (*self.rejected, *later.rejected),
            self.plan or later.plan,
            self.dropped + later.dropped,
        )

    @property
    def outcomes(self) -> dict[str, Mapping[str, Any]]:
        """What is shown beside each certificate, by request."""
        return {one.certificate.request_id: one.outcome for one in self.certified}

    @property
    def told(self) -> set[str]:
        """The requests that something came of."""
        return {*self.outcomes, *self.rejected, *self.set_aside}


def erase(
    session: Session, desk: Desk, due: Sequence[Request], waiting: Sequence[Request], manner: Manner, work: Work
) -> Carried:
    """Finish what is erased and not certified, and carry out what is due, with whoever is best done with it.

    What is due was begun, so that nobody can ask for more in it; who waits may, until they are begun here. Who can't be
    certified is set aside, and keeps nobody else waiting.
    """
    search = _listed(session, manner)
    # What is there to be certified is about the version that is current, as long as nothing else is erased.
    current = search.of_version(None, session.stamp.version)
    first = _settled(session, desk, search, current, manner, work)
    done = _carried_out(session, desk, due, waiting, manner, work)
    search = read_search(session.papers().pending)
    left = search if done.plan else search.without([one.request_id for one in current.people])
    return first.joined_with(done).joined_with(_settled(session, desk, search, left, manner, work, done.state))


def outcome_of(certificate: Certificate, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown beside a certificate: what it says, and what the log says of the work."""
    said = json.loads(certificate.content)
    scan, utility = said["scan"], said["utility"]
    kept = [step["kept"] for step in record.get("steps") or said.get("chain", ())]
    stages = record.get("stages", said.get("stages_total", len(kept)))
    return {
        "version": certificate.version,
        "duration": record.get("duration"),
        "stages_rerun": kept[:stages].count(False),
        "stages_total": stages,
        "cost": record.get("cost"),
        "kept": kept,
        "files_searched": record.get("files", scan["files"] if scan else 0),
        "utility": utility and {"before": utility["before"], "after": utility["after"], "grain": utility.get("grain")},
    }


def _listed(session: Session, manner: Manner) -> Search:
    """Return whom the search file names, each put on the do-not-learn lists."""
    search = read_search(session.papers().pending)
    listing = manner.outside.listing
    erasures = tuple(still_listed(one, manner.roll, listing) for one in search.erasures)
    for one in erasures:
        put_on_lists(session, one.suppression, one.requests)
    return search.model_copy(update={"erasures": erasures})


def _carried_out(
    session: Session, desk: Desk, due: Sequence[Request], waiting: Sequence[Request], manner: Manner, work: Work
) -> Carried:
    """Erase what is due and make what it leaves current, together with the search file."""
    began = time.perf_counter()
    state = session.state()
    known = known_requests(due, state.knowledge, ignore_unknown=True)
    unknown = {one.request_id for one in due}.difference(one.request_id for one in known)
    if not known:
        return Carried(rejected=tuple(sorted(unknown)))
    change = _begun(desk, state, known, joined_cheaply(state, known, waiting), manner.rerun, work)
    session.refuse_if_full(_room_for(session, change))
    held = held_of(change.requests, session, state)
    data_before = data_digest(session.stamp.salt, state.knowledge)
    utility = _utility(session, state, change.after, work)
    with work.training("forgetting", change.plan.samples) as effort:
        after = carry_out(change.plan, change.before, change.after, session.checkpoints, effort, work.executor)
    lists = lists_of(manner.roll)
    put_on_lists(session, lists, change.requests)
    seconds = time.perf_counter() - began
    stamp = Stamp.after(session.stamp.version)
    erased = Erased(
        people=sought_after(change.requests, held, session.checkpoints, after),
        version=stamp.version,
        suppression=lists,
        at=now(),
        seconds=seconds,
        threads=work.threads,
        rerun=change.plan.rerun,
        cost_ratio=change.plan.cost_ratio,
        cost_at_most=largest_cost(change.plan, change.after, len(change.requests)),
        seconds_at_most=max(seconds, _SLOWER * sum(link.seconds for link in after.chain)),
        data_before=data_before,
        utility_before=None if utility is None else dict(utility.values),
        texts=names_that_go(state, after),
        own_items=items_that_go(state.knowledge, after.knowledge),
    )
    papers = session.papers()
    search = _with(read_search(papers.pending), erased)
    preferences = without_names_like(papers.preferences, {one.user for one in change.requests})
    session.commit(after, replace(papers, pending=search.encoded(), preferences=preferences), stamp)
    dropped = _dropped(state.knowledge, after.knowledge, {one.user for one in change.requests})
    known_still = None if after.recorded else after  # else its checkpoints have other names now
    return Carried(rejected=tuple(sorted(unknown)), plan=change.plan, dropped=dropped, state=known_still)


@dataclass(frozen=True)
class _Change:
    """Requests that were begun, and the one plan for them."""

    requests: Sequence[Request]
    before: State
    after: Knowledge
    plan: Plan


def _begun(
    desk: Desk, state: State, known: Sequence[Request], joined: Sequence[Request], rerun: bool, work: Work
) -> _Change:
    """Begin requests that join those which are begun, and plan all once; who was taken back meanwhile is left out."""
    chosen = one_for_each([*known, *joined])
    begun = desk.begin([one.request_id for one in chosen]) if joined else known
    requests = known_requests(begun, state.knowledge, ignore_unknown=True)
    before = state.untrained() if rerun else state
    after = Erasure.of(requests).apply(before.knowledge, work.grouping)
    plan = plan_change(before, after)
    facts = {"stages_rerun": plan.stages_rerun, "stages_total": plan.stages_total, "rerun": list(plan.rerun)}
    ratios = {"chain_ratio": plan.chain_ratio, "cost_ratio": plan.cost_ratio}
    desk.planned({"requests": len(requests), **facts, **ratios})
    return _Change(requests, before, after, plan)


def _with(search: Search, erased: Erased) -> Search:
    """Return what is sought, with one more erasure; whoever was erased before is certified for the version after it."""
    earlier = search.made_again(erased.rerun)
    return earlier.model_copy(update={"erasures": (*earlier.erasures, erased)})


def _settled(
    session: Session,
    desk: Desk,
    search: Search,
    part: Search,
    manner: Manner,
    work: Work,
    state: State | None = None,
) -> Carried:
    """Search the workspace for a part of those who are erased, and certify whoever nothing is found of."""
    if not part.erasures:
        return Carried()
    if session.path is not None:  # in memory nothing lasts before all of it is done
        desk.forget([one.request for one in part.people])
    follow = partial(work.reporter.track, "scanning")
    found = search_for(session, part, (state or session.state()).knowledge, follow)
    if found.clean.erasures:
        return _certified(session, desk, search, found, state or session.state(), manner.outside, work)
    return _set_aside(session, search, found.places, found.shown)


def _set_aside(
    session: Session, search: Search, places: Mapping[str, str], shown: Mapping[str, tuple[str, ...]]
) -> Carried:
    """Keep in the search file where something was found; whoever may read it sees it there."""
    papers = session.papers()
    content = search.found_at(places, shown).encoded()
    if content != papers.pending:
        session.amend(replace(papers, pending=content))
    return Carried(set_aside=places)


def _certified(
    session: Session, desk: Desk, search: Search, found: Found, state: State, outside: Outside, work: Work
) -> Carried:
    """Issue certificates, unless what is about to be written names someone who is sought."""
    papers, scanned = session.papers(), now()
    ours = desk.asked_by_command([one.request_id for one in found.clean.people])
    common = Outcome(
        state=state,
        environment=state.environment,
        stamp=session.stamp,
        audit=head_of(papers.audit),
        scan=None if found.scan is None else _certified_scan(found.scan, _has_rows(session, state)),
        scanned=scanned,
        utility=_utility(session, state, state.knowledge, work),
        issuer=papers.preferences.issuer,
        files=None if found.scan is None else found.scan.files,
    )
    audit, certified, named = papers.audit, list[Certified](), dict[str, bytes]()
    for erased in found.clean.erasures:
        certificates, pages = _issued(erased, replace(common, audit=head_of(audit)), papers.key, work)
        record = {
            **version_facts(state, session.stamp),
            **_work_facts(session, state, erased),
            "files": common.files,
            "certificates": {one.request_id: one.digest() for one in certificates},
            "pages": {request_id: fingerprint.of_bytes(page) for request_id, page in pages.items()},
        }
        audit = add_record(audit, "forget", record)
        named |= {f"{one.request_id}.json": one.content for one in certificates}
        named |= {f"{request_id}.html": page for request_id, page in pages.items()}
        certified += [
            Certified(one, Receipt.of(sought) if one.request_id in ours else None, outcome_of(one, record))
            for one, sought in zip(certificates, erased.people, strict=True)
        ]
    ids = {one.certificate.request_id for one in certified}
    if session.path is not None:
        held = replace(held_ids(state.knowledge), declared=papers.preferences.issuers)
        sought = [target for erased in search.erasures for target in targets_of(erased)]
        residues = scan_contents(_placed(named, audit), sought, [*ids], held)
        if residues:
            places = {**found.places, **dict.fromkeys(ids, said(session, residues))}
            shown = {**found.shown, **places_shown(search, dict.fromkeys(ids, residues))}
            return _set_aside(session, search, places, shown)
    if outside.receipts is not None:
        write_receipts([one.receipt for one in certified if one.receipt], outside.receipts)
    left = search.without(ids).found_at(found.places, found.shown)
    session.amend(replace(papers, audit=audit, pending=left.encoded(), certificates=named, seal=True))
    return Carried(certified=tuple(certified), set_aside=found.places)


def _issued(erased: Erased, outcome: Outcome, key: bytes, work: Work) -> tuple[Sequence[Certificate], dict[str, bytes]]:
    """Issue the certificates of an erasure, with a page for each by its request."""
    with work.reporter.track("certifying", len(erased.people)) as advance:
        certificates, pages = issue_certificates(erased, outcome, key), dict[str, bytes]()
        for one in certificates:
            pages[one.request_id] = certificate_page(one)
            advance(1)
    return certificates, pages


def _work_facts(session: Session, state: State, erased: Erased) -> dict[str, object]:
    """Return what the log says of the work, for `verify` and for the officer: certificates leave it out."""
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


def _has_rows(session: Session, state: State) -> bool:
    """Whether checkpoints hold user rows; ease has none, and those that are solved when needed are not stored."""
    return bool(state.trained_rows(session.checkpoints, 0))


def _room_for(session: Session, change: _Change) -> int:
    """Return about how many bytes an erasure writes before it can destroy what it replaces."""
    steps = len(session.state().chain)
    share = min(1.0, (len(change.plan.rerun) + 1) / (steps + 1))  # the data of a group are written again as well
    return int(session.size * share) + _BYTES_PER_CERTIFICATE * len(change.requests)


def _utility(session: Session, state: State, left: Knowledge, work: Work) -> Utility | None:
    """Measure on the holdout of those who are left, of at most 10,000 people, if there is one."""
    if not len(left.held_out):
        return None
    with work.reporter.track("evaluating"):
        people = measured_people(left.held_out, left.config.seed)
        return measure(state, session.checkpoints, people, work.threads)


def _dropped(before: Knowledge, after: Knowledge, asked: Collection[str]) -> int:
    """Count those who are gone without having asked for it."""
    left = {user for group in after.groups for user in group.users}
    gone = {user for group in before.groups for user in group.users} - left
    return len(gone.difference(asked))
