"""The pages about the whole service: overview, groups, plan, and log."""

import threading
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Response
from fastapi import Request as HttpRequest
from fastapi.responses import RedirectResponse

from erasable.chain.dataset import Dataset
from erasable.errors import UnknownUser, WorkspaceDamaged, WrongUse
from erasable.operations.inspect import GroupFacts
from erasable.operations.people import near_in
from erasable.operations.planning import plan
from erasable.operations.storage import Storage
from erasable.proof.checking import documents_fault
from erasable.proof.log import Record, records_of
from erasable.requests.lease import is_at_work, read_progress
from erasable.requests.request import Request
from erasable.requests.tokens import Caller
from erasable.service._http import PAGES, service_of
from erasable.service._service import Service, overview
from erasable.service._syncing import ask_for_sync, sync_state
from erasable.service.web._pages import item_lines, page, refuse_foreign_forms

router = APIRouter(include_in_schema=False)
_ASKED, _ENDED = "verification asked", "verification ended"
_EVENTS_SHOWN = 25
_RECORDS_SHOWN = 25


@dataclass(frozen=True)
class ActionNeeded:
    """A request that needs action: why, and what to do."""

    erasure_request: Request
    why: str
    advice: str
    limit: datetime


@router.get("/")
def show_overview(request: HttpRequest, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Show the state of the service."""
    service = service_of(request)
    found = overview(service)
    facts = {
        "totals": found.totals,
        "needed": sorted((_action_needed(one, service) for one in found.needs_action), key=attrgetter("limit")),
        "suppressed": len(service.suppressed()),
        "last_erased": service.history.last_erased(),
        "log": request.app.state.log_watch.state(),
        "progress": read_progress(service.database),
        "working": is_at_work(service.database, service.settings.lease_seconds),
        "interactions_waiting": service.intake.count(),
        "version": service.live.version,
        "sync": sync_state(service.history, service.settings, service.clock()),
        "problem": service.problem(),
    }
    return page(request, "overview.html", facts)


@router.post("/sync", dependencies=[Depends(refuse_foreign_forms)])
def ask_for_a_sync(
    request: HttpRequest,
    caller: Annotated[Caller, Depends(PAGES)],
    yes: Annotated[bool, Form()] = False,
    expect_rows: Annotated[int | None, Form(ge=1)] = None,
) -> Response:
    """Have the worker make the workspace equal to the export now."""
    service, facts = service_of(request), {"yes": yes, "expect_rows": expect_rows}
    ask_for_sync(service.queue, service.settings, caller.actor, service.clock(), facts)
    return RedirectResponse("/", HTTPStatus.SEE_OTHER)


def _action_needed(erasure_request: Request, service: Service) -> ActionNeeded:
    return ActionNeeded(
        erasure_request,
        _why(erasure_request, service),
        _advice(erasure_request),
        erasure_request.deadlines(service.settings).limit,
    )


def _why(erasure_request: Request, service: Service) -> str:
    now = service.clock()
    if erasure_request.late(service.settings, now):
        return "late: past the legal time"
    if now > erasure_request.deadlines(service.settings).limit:
        return "past its limit"
    if erasure_request.state == "failed" and erasure_request.retry_at is None:
        return "failed for good"
    return "beyond the limit of its token" if erasure_request.over_limit else "the alarm has gone off"


def _advice(erasure_request: Request) -> str:
    if erasure_request.state == "failed" and erasure_request.retry_at is None:
        return f"{erasure_request.reason or 'The reason is not known'}. Then try it again."
    if erasure_request.state == "failed":
        return f"{erasure_request.reason or 'The reason is not known'}. It is retried by itself."
    if erasure_request.over_limit:
        return "Ask whoever has the token whether this was meant; then release the request, or take it back."
    if erasure_request.state == "on hold":
        return "Release it if nothing speaks against the erasure; otherwise extend it, with a reason for the person."
    return "It should have been carried out by now: check that the worker is at work."


@router.get("/groups")
def show_groups(request: HttpRequest, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Show the groups and the chain."""
    service = service_of(request)
    dataset = service.live.dataset
    facts = {
        "groups": _group_facts(dataset),
        "config": dataset.config,
        "stages": dataset.stages,
        "solves_rows": dataset.solves_rows,
        "users": dataset.users,
        "interactions": dataset.interactions,
        "version": service.live.version,
    }
    return page(request, "groups.html", facts)


def _group_facts(dataset: Dataset) -> list[GroupFacts]:
    """Return the groups with the cohesion that is stored; computing it again may take long."""
    known = dataset.cohesion or (None,) * dataset.group_count
    return [
        GroupFacts(position, size.users, len(size), *(cohesion[:2] if cohesion else (None, None)))
        for position, (size, cohesion) in enumerate(zip(dataset.group_sizes(), known, strict=True), start=1)
    ]


@router.get("/plan")
def show_plan(request: HttpRequest, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Show how many requests wait, and ask whom to plan for."""
    return _plan_page(request, {"found": None, "planned_for": None, "named": False})


@router.post("/plan", dependencies=[Depends(refuse_foreign_forms)])
def make_plan(
    request: HttpRequest, caller: Annotated[Caller, Depends(PAGES)], user_ids: Annotated[str, Form()] = ""
) -> Response:
    """Plan an erasure; nothing is changed."""
    service, named = service_of(request), item_lines(user_ids)
    asked = [Request(user) for user in dict.fromkeys(named)] if named else _asked(service)
    if not asked:
        raise WrongUse("there is nobody to plan for: name some people, or wait for requests")
    try:
        found = plan(service.storage, asked)
    except UnknownUser:
        unknown = (one.user for one in asked if not service.live.knows(one.user))
        near = near_in(service.live.dataset, next(unknown, ""))
        if not near.held:
            raise
        raise WrongUse(near.sentence()) from None  # the usual page about an unknown user says less
    return _plan_page(request, {"found": found, "planned_for": len(asked), "named": bool(named)})


def _plan_page(request: HttpRequest, facts: dict[str, object]) -> Response:
    service = service_of(request)
    found = service.history.totals(service.clock())
    return page(
        request, "plan.html", {"waiting": found.states.get("suppressed", 0), "begin": found.next_begin, **facts}
    )


def _asked(service: Service) -> list[Request]:
    """Return the waiting requests of people whom the model knows."""
    waiting = service.history.in_states(["suppressed"])
    asked = service.queue.subjects([one.request_id for one in waiting])
    return [one for one in asked if service.live.knows(one.user)]


@dataclass(frozen=True)
class LogState:
    """The records of the log, and what is wrong with them or with the certificates, if anything is."""

    records: tuple[Record, ...]
    fault: str | None


class LogWatch:
    """Reads the log and checks it against the certificates whenever the workspace has changed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._seen: tuple[object, LogState] | None = None

    def state(self) -> LogState:
        """Return the current log."""
        with self._lock:
            mark = self._storage.mark()
            if self._seen is None or self._seen[0] != mark:
                self._seen = mark, self._look()
            return self._seen[1]

    def _look(self) -> LogState:
        try:
            with self._storage.reading() as session:
                documents, issued = session.documents(), session.issued()
                fault = documents_fault(documents, issued)
        except WorkspaceDamaged as error:
            return LogState((), error.of_command)
        return LogState(() if fault else tuple(records_of(documents.records())), fault)


@router.get("/log")
def show_log(
    request: HttpRequest,
    caller: Annotated[Caller, Depends(PAGES)],
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
) -> Response:
    """Show what was done, by whom and when."""
    service, log = service_of(request), request.app.state.log_watch.state()
    journal = service.history.events(_EVENTS_SHOWN + 1, before)
    last = service.history.last_event(_ASKED, _ENDED)
    facts = {
        "log": log,
        "records": log.records[: -_RECORDS_SHOWN - 1 : -1],
        "journal": journal[:_EVENTS_SHOWN],
        "older": journal[_EVENTS_SHOWN - 1].number if len(journal) > _EVENTS_SHOWN else None,
        "verifying": last is not None and last.name == _ASKED,
        "verified": service.history.last_event(_ENDED),
        "tokens": service.tokens.all(),
    }
    return page(request, "log.html", facts)


@router.get("/audit")
def show_log_under_its_earlier_name(request: HttpRequest, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Redirect to the log, which had this address up to 0.1."""
    return RedirectResponse("/log", HTTPStatus.PERMANENT_REDIRECT)


@router.post("/log/verify", dependencies=[Depends(refuse_foreign_forms)])
def ask_for_verification(request: HttpRequest, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Have the worker verify the workspace."""
    service = service_of(request)
    service.queue.note(None, _ASKED, caller.actor, service.clock())
    return RedirectResponse("/log", HTTPStatus.SEE_OTHER)
