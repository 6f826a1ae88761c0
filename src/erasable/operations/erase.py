"""One erasure in one session: plan, train, commit, remove who asked from the queue, search, certify.

The search file names what is erased and not certified; it becomes current together with the version without the people.
So after a kill there is one rule for each request that was begun: if its certificate is there, it is erased; if the
search file names it, it is certified next; else it begins again.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from erasable import fingerprint
from erasable.chain.dataset import (
    Dataset,
    State,
)
from erasable.chain.plan import Erasure, Plan, carry_out, known_requests, largest_cost, plan_change
from erasable.evaluation.protocols import measure, measured_people
from erasable.evaluation.utility import Utility
from erasable.operations._vocabulary import vocabulary_of
from erasable.operations.claims import RequestClaims, joined_cheaply
from erasable.operations.do_not_learn import OpenList, Outside, lists_of, put_on_lists, still_listed, write_receipts
from erasable.operations.recording import version_facts, without_names_like
from erasable.operations.scan import (
    Found,
    describe_residues,
    held_of,
    items_that_go,
    names_that_go,
    places_shown,
    search_for,
    targets_of,
    to_search_for,
)
from erasable.operations.storage import Session, declared_ids
from erasable.operations.work import Work
from erasable.proof import coarse
from erasable.proof.certificate import Certificate, CertifiedScan, certified_steps, data_digest, now, outcome_of
from erasable.proof.issuing import Outcome, Receipt, certificate_page, issue_certificates
from erasable.proof.log import add_record, head_of
from erasable.proof.search_file import Erased, Places, Search, read_search
from erasable.requests.queue import one_for_each
from erasable.requests.request import Request
from erasable.scan import PERSONAL, PERSONAL_OR_SHARED, TEXTS, TEXTS_IF_ANY, Scan, scan_contents
from erasable.workspace.files import AUDIT, certificate_name
from erasable.workspace.manifest import Documents, Stamp

_BYTES_PER_CERTIFICATE = 40_000
_SLOWER = 2  # on a busy machine training may take this many times as long as before


@dataclass(frozen=True)
class Manner:
    """How an erasure is carried out."""

    open_list: OpenList
    """The do-not-learn list that people are put on."""
    outside: Outside
    rerun: bool = False
    """Whether everything is trained again."""


@dataclass(frozen=True)
class Certified:
    """The certified erasure of one person."""

    certificate: Certificate
    receipt: Receipt | None
    """None for requests to the service: whoever asked there has the code for it."""
    outcome: Mapping[str, Any] = field(repr=False)
    """What pages show beside the certificate."""


@dataclass(frozen=True)
class Carried:
    """What came of requests."""

    certified: tuple[Certified, ...] = ()
    set_aside: Mapping[str, str] = field(default_factory=dict)
    """Requests that are erased and can't be certified, and where something of the person was found."""
    rejected: tuple[str, ...] = ()
    """Requests that name nothing that is held."""
    plan: Plan | None = None
    dropped: int = 0
    """How many others the filter, applied again, no longer keeps."""
    state: State | None = field(default=None, repr=False)
    """The state that became current, with what is computed of it already, such as the digests of its rows."""

    def joined_with(self, later: "Carried") -> "Carried":
        """Return the outcome of both."""
        return Carried(
            (*self.certified, *later.certified),
            {one: why for one, why in self.set_aside.items() if one not in later.outcomes} | dict(later.set_aside),
            (*self.rejected, *later.rejected),
            self.plan or later.plan,
            self.dropped + later.dropped,
        )

    @property
    def outcomes(self) -> dict[str, Mapping[str, Any]]:
        """What pages show beside each certificate, by request."""
        return {one.certificate.request_id: one.outcome for one in self.certified}

    @property
    def told(self) -> set[str]:
        """The requests that have an outcome."""
        return {*self.outcomes, *self.rejected, *self.set_aside}


def erase(
    session: Session,
    claims: RequestClaims,
    due: Sequence[Request],
    waiting: Sequence[Request],
    manner: Manner,
    work: Work,
) -> Carried:
    """Certify what is erased already, then carry out what is due, together with waiting requests that cost little more.

    Requests that are due were begun, so nobody can extend them; waiting ones may be extended until they are begun here.
    Whoever can't be certified is set aside and keeps nobody else waiting.
    """
    search = _listed(session, manner)
    # Certificates are about the current version, so those that are missing come before the next erasure.
    current = search.of_version(None, session.stamp.version)
    first = _search_and_certify(session, claims, search, current, manner, work)
    done = _carried_out(session, claims, due, waiting, manner, work)
    search = read_search(session.documents().pending)
    # Without an erasure nothing has changed since the first search: whoever that left out is not searched for again.
    left = search if done.plan else search.without([one.request_id for one in current.people])
    return first.joined_with(done).joined_with(
        _search_and_certify(session, claims, search, left, manner, work, done.state)
    )


def _listed(session: Session, manner: Manner) -> Search:
    """Put everyone whom the search file names on the do-not-learn lists, except those who may return, and return it."""
    search = read_search(session.documents().pending)
    listing = manner.outside.listing
    erasures = tuple(still_listed(one, manner.open_list, listing, session.path) for one in search.erasures)
    for one in erasures:
        put_on_lists(session, one.suppression, one.requests)
    return search.model_copy(update={"erasures": erasures})


def _carried_out(
    session: Session,
    claims: RequestClaims,
    due: Sequence[Request],
    waiting: Sequence[Request],
    manner: Manner,
    work: Work,
) -> Carried:
    """Erase what is due, and make the result current together with the search file."""
    began = time.perf_counter()
    state = session.state()
    known = known_requests(due, state.dataset, ignore_unknown=True)
    unknown = {one.request_id for one in due}.difference(one.request_id for one in known)
    lists = lists_of(manner.open_list, session.path)
    # Whoever is gone already, as by a sync while they asked, must not come back either.
    put_on_lists(session, lists, [one for one in due if one.request_id in unknown])
    if not known:
        return Carried(rejected=tuple(sorted(unknown)))
    change = _begun(claims, state, known, joined_cheaply(state, known, waiting), manner.rerun, work)
    utility = _utility(session, state, change.after, work)
    after = make_current(session, change, lists, utility, work, began)
    gone = {one.user for one in change.requests if after.dataset.buckets.find(one.user) is None}
    return Carried(
        rejected=tuple(sorted(unknown)),
        plan=change.plan,
        dropped=state.dataset.users - after.dataset.users - len(gone),  # by the filter
        state=None if after.recorded else after,  # else its checkpoints were renamed
    )


def _as_they_are(documents: Documents, state: State, stamp: Stamp) -> Documents:
    return documents


def make_current(
    session: Session,
    change: "Undertaking",
    lists: Places | None,
    utility: Utility | None,
    work: Work,
    began: float,
    recorded: Callable[[Documents, State, Stamp], Documents] = _as_they_are,
) -> State:
    """Train a change, and make it current together with the search file; without lists nobody is put on one."""
    state = session.state()
    session.refuse_if_full(_room_for(session, change))
    held = held_of(change.requests, session, state)
    data_before = data_digest(session.stamp.salt, state)
    after = _trained(session, change, work)
    put_on_lists(session, lists or (), change.requests)
    seconds = time.perf_counter() - began
    stamp = Stamp.after(session.stamp.version)
    erased = Erased(
        people=to_search_for(change.requests, held, session.checkpoints, after),
        version=stamp.version,
        suppression=lists or (),
        may_return=lists is None,
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
        own_items=items_that_go(state.dataset, after.dataset, declared_ids(session)),
    )
    documents = recorded(session.documents(), after, stamp)
    search = _with_erasure(read_search(documents.pending), erased)
    preferences = without_names_like(documents.preferences, {one.user for one in change.requests})
    session.commit(after, replace(documents, pending=search.encoded(), preferences=preferences), stamp)
    return after


def _trained(session: Session, change: "Undertaking", work: Work) -> State:
    """Train what the plan says; if that is nothing, nobody has to be asked to do it."""
    work = work if change.plan.rerun else replace(work, cluster=None)
    with work.tasks_of(session) as executor, work.training("forgetting", change.plan.samples) as effort:
        return carry_out(change.plan, change.before, change.after, session.checkpoints, effort, executor)


@dataclass(frozen=True)
class Undertaking:
    """Requests that are carried out together, and their common plan."""

    requests: Sequence[Request]
    before: State
    after: Dataset
    plan: Plan


def _begun(
    claims: RequestClaims, state: State, known: Sequence[Request], joined: Sequence[Request], rerun: bool, work: Work
) -> Undertaking:
    """Begin the requests that join, and plan all of them once; those withdrawn meanwhile are left out."""
    chosen = one_for_each([*known, *joined])
    begun = claims.begin([one.request_id for one in chosen]) if joined else known
    requests = known_requests(begun, state.dataset, ignore_unknown=True)
    before = state.untrained() if rerun else state
    after = Erasure.of(requests).apply(before.dataset, work.grouping)
    plan = plan_change(before, after)
    facts = {"stages_rerun": plan.stages_rerun, "stages_total": plan.stages_total, "rerun": list(plan.rerun)}
    ratios = {"chain_ratio": plan.chain_ratio, "cost_ratio": plan.cost_ratio}
    claims.planned({"requests": len(requests), **facts, **ratios})
    return Undertaking(requests, before, after, plan)


def _with_erasure(search: Search, erased: Erased) -> Search:
    """Return the search with one more erasure; people erased earlier are certified for the new version."""
    earlier = search.made_again(erased.rerun)
    return earlier.model_copy(update={"erasures": (*earlier.erasures, erased)})


def _search_and_certify(
    session: Session,
    claims: RequestClaims,
    search: Search,
    part: Search,
    manner: Manner,
    work: Work,
    state: State | None = None,
) -> Carried:
    """Search the workspace for some of the erased people, and certify those of whom nothing is found."""
    if not part.erasures:
        return Carried()
    if session.path is not None:  # in memory nothing becomes current before all of it is done
        claims.forget([one.request for one in part.people])
    follow = partial(work.reporter.track, "scanning")
    found = search_for(session, part, (state or session.state()).dataset, follow, work)
    if found.clean.erasures:
        return _certified(session, claims, search, found, state or session.state(), manner.outside, work)
    return _set_aside(session, search, found.places, found.shown)


def _set_aside(
    session: Session, search: Search, places: Mapping[str, str], shown: Mapping[str, tuple[str, ...]]
) -> Carried:
    """Record in the search file where something was found."""
    documents = session.documents()
    content = search.found_at(places, shown).encoded()
    if content != documents.pending:
        session.amend(replace(documents, pending=content))
    return Carried(set_aside=places)


def _certified(
    session: Session, claims: RequestClaims, search: Search, found: Found, state: State, outside: Outside, work: Work
) -> Carried:
    """Issue certificates, unless they or the log would name someone who is sought."""
    documents, scanned = session.documents(), now()
    ours = claims.asked_by_command([one.request_id for one in found.clean.people])
    common = Outcome(
        state=state,
        environment=state.environment,
        stamp=session.stamp,
        audit=head_of(documents.log),
        scan=None if found.scan is None else _certified_scan(found.scan, _has_rows(session, state)),
        scanned=scanned,
        utility=_utility(session, state, state.dataset, work),
        issuer=documents.preferences.issuer,
        files=None if found.scan is None else found.scan.files,
    )
    log, certified, named = documents.log, list[Certified](), dict[str, bytes]()
    for erased in found.clean.erasures:
        certificates, pages = _issued(erased, replace(common, audit=head_of(log)), documents.key, work)
        record = {
            **version_facts(state, session.stamp),
            **_work_facts(session, state, erased),
            "files": common.files,
            "certificates": {one.request_id: one.digest() for one in certificates},
            "pages": {request_id: fingerprint.of_bytes(page) for request_id, page in pages.items()},
        }
        log = add_record(log, "forget", record)
        named |= {f"{one.request_id}.json": one.content for one in certificates}
        named |= {f"{request_id}.html": page for request_id, page in pages.items()}
        certified += [
            Certified(one, Receipt.of(sought) if one.request_id in ours else None, outcome_of(one, record))
            for one, sought in zip(certificates, erased.people, strict=True)
        ]
    ids = {one.certificate.request_id for one in certified}
    if session.path is not None:
        sought = [target for erased in search.erasures for target in targets_of(erased)]
        contents = {certificate_name(name): content for name, content in named.items()} | {AUDIT: log}
        declared = documents.preferences.issuers
        residues = scan_contents(contents, sought, vocabulary_of(state.dataset), [*ids], declared)
        if residues:
            places = {**found.places, **dict.fromkeys(ids, describe_residues(session, residues))}
            shown = {**found.shown, **places_shown(search, dict.fromkeys(ids, residues))}
            return _set_aside(session, search, places, shown)
    if outside.receipts is not None:
        write_receipts([one.receipt for one in certified if one.receipt], outside.receipts)
    left = search.without(ids).found_at(found.places, found.shown)
    session.amend(replace(documents, log=log, pending=left.encoded(), certificates=named, seal=True))
    return Carried(certified=tuple(certified), set_aside=found.places)


def _issued(erased: Erased, outcome: Outcome, key: bytes, work: Work) -> tuple[Sequence[Certificate], dict[str, bytes]]:
    """Issue the certificates of an erasure, and a page for each."""
    with work.reporter.track("certifying", len(erased.people)) as advance:
        certificates, pages = issue_certificates(erased, outcome, key), dict[str, bytes]()
        for one in certificates:
            pages[one.request_id] = certificate_page(one)
            advance(1)
    return certificates, pages


def _work_facts(session: Session, state: State, erased: Erased) -> dict[str, object]:
    """Return what the log records of the work, for `verify` and the officer; certificates leave it out."""
    steps = certified_steps(state, session.checkpoints, session.stamp.salt, erased.rerun)
    return {
        "stages": state.dataset.stages,
        "steps": [step.model_dump(mode="json") for step in steps],
        "cost": coarse.share(erased.cost_ratio),
        "duration": coarse.duration(erased.seconds),
    }


def _certified_scan(scan: Scan, has_rows: bool) -> CertifiedScan:
    """Return a scan that found nothing, in the form that certificates have.

    Whether rows or checkpoint names were searched would reveal what was erased and who is an anchor. So every
    certificate has both sentences, in the same place.
    """
    said = [sentence for sentence in scan.searched if sentence not in (PERSONAL, TEXTS)]
    return CertifiedScan(
        files=coarse.count(scan.files),
        size=coarse.size(scan.bytes),
        kinds=tuple(kind for kind, files_of_it in scan.kinds.items() if files_of_it),
        searched=(*said, *((PERSONAL_OR_SHARED,) if has_rows else ()), TEXTS_IF_ANY),
    )


def _has_rows(session: Session, state: State) -> bool:
    """Whether checkpoints hold user rows; ease has none, and solved rows are not stored."""
    return bool(state.trained_rows(session.checkpoints, 0))


def _room_for(session: Session, change: Undertaking) -> int:
    """Return about how many bytes an erasure writes before it can destroy what it replaces."""
    steps = len(session.state().chain)
    share = min(1.0, (len(change.plan.rerun) + 1) / (steps + 1))  # the data of a group are written again as well
    return int(session.size * share) + _BYTES_PER_CERTIFICATE * len(change.requests)


def _utility(session: Session, state: State, left: Dataset, work: Work) -> Utility | None:
    """Measure utility on the holdout of those who are left, if there is one, with at most 10,000 people."""
    if not left.counts.held_out:
        return None
    with work.reporter.track("evaluating"):
        return measure(state, session.checkpoints, measured_people(left), work.threads)
