"""The list of requests, as a page and as CSV: filters, order, and the form for a new request."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query, Response
from fastapi import Request as HttpRequest

from erasable.data.ids import NONE_NEAR
from erasable.operations.people import SERVED_WITHOUT, near_in
from erasable.requests.request import STATES, Request, RequestState
from erasable.requests.tokens import Caller
from erasable.service._http import PAGES, service_of
from erasable.service._service import Service
from erasable.service.api._schemas import Id
from erasable.service.settings import ServiceSettings
from erasable.service.web._pages import item_lines, page, refuse_foreign_forms

Only = Literal["all", "open", "soon", "overdue", "late"]
PAGE_SIZE = 25
_EVERY = 2**53


@dataclass(frozen=True)
class WantedRequests:
    """Filters of a list."""

    states: tuple[RequestState, ...] = ()
    """One of these; any if there are none."""
    only: Only = "all"
    text: str = ""
    """What the id contains."""

    def query(self, **more: int) -> str:
        """Return the filters as the query of an address."""
        chosen = [("state", state) for state in self.states] + [("only", self.only), ("text", self.text)]
        return urlencode([*((name, value) for name, value in chosen if value not in ("", "all")), *more.items()])

    def ids(self, service: Service) -> list[str]:
        """Return the ids of all matches: newest first, or most urgent first if only open ones are wanted."""
        part = self.text.strip().lower()
        return [request_id for request_id in self._ids_in_states(service) if part in request_id]

    def _ids_in_states(self, service: Service) -> list[str]:
        states, now = self.states or STATES, service.clock()
        if self.only in ("open", "soon", "overdue"):
            return [request_id for request_id, state in service.history.urgent_ids(self.only, now) if state in states]
        newest = [request_id for _, request_id in service.history.ids(states, _EVERY)]
        if self.only == "late":
            late = _late(service)
            return [request_id for request_id in newest if request_id in late]
        return newest


def _late(service: Service) -> set[str]:
    """Return the requests that are open after the legal time, or were erased after it."""
    now = service.clock()
    erased = service.history.some([request_id for _, request_id in service.history.ids(["erased"], _EVERY)])
    still = {request_id for request_id, _ in service.history.urgent_ids("late", now)}
    return still.union(one.request_id for one in erased if one.late(service.settings, now))


@dataclass(frozen=True)
class ListPage:
    """One page of a list."""

    requests: Sequence[Request]
    number: int
    total: int

    @staticmethod
    def of(service: Service, wanted: WantedRequests, number: int) -> "ListPage":
        """Return a page of the requests that are wanted; beyond the last page, the last."""
        if wanted.only == "all" and not wanted.text.strip():  # the usual case: fast for any number of requests
            counts, states = service.history.counts(), wanted.states or STATES
            total = sum(counts.get(state, 0) for state in states)
            number = min(number, max(1, -(-total // PAGE_SIZE)))
            newest = service.history.ids(states, PAGE_SIZE, skipped=(number - 1) * PAGE_SIZE)
            return ListPage(in_order(service, [request_id for _, request_id in newest]), number, total)
        ids = wanted.ids(service)
        number = min(number, max(1, -(-len(ids) // PAGE_SIZE)))
        shown = ids[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
        return ListPage(in_order(service, shown), number, len(ids))

    @property
    def first(self) -> int:
        """The position of its first request in the whole list."""
        return (self.number - 1) * PAGE_SIZE + 1

    @property
    def last(self) -> int:
        """The position of its last request in the whole list."""
        return self.first + len(self.requests) - 1


def in_order(service: Service, ids: Sequence[str]) -> list[Request]:
    """Return requests in the order of their ids."""
    found = {erasure_request.request_id: erasure_request for erasure_request in service.history.some(ids)}
    return [found[request_id] for request_id in ids]


COLUMNS = (
    *("id", "state", "scope", "received", "suppressed", "erased"),
    *("begin", "erase_by", "alarm", "limit", "legal", "late", "extended", "reason", "reference"),
)
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def requests_csv(requests: Iterable[Request], settings: ServiceSettings, now: datetime) -> str:
    """Return requests as CSV, one a line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(value) for value in _row(erasure_request, settings, now)] for erasure_request in requests)
    return text.getvalue()


def _row(erasure_request: Request, settings: ServiceSettings, now: datetime) -> tuple[str | datetime | None, ...]:
    deadlines = erasure_request.deadlines(settings)
    return (
        *(erasure_request.request_id, erasure_request.state, erasure_request.scope),
        *(erasure_request.received, erasure_request.when("suppressed"), erasure_request.when("erased")),
        *(deadlines.begin, deadlines.erase_by, deadlines.alarm, deadlines.limit, deadlines.legal),
        "late" if erasure_request.late(settings, now) else None,
        *(erasure_request.extended, erasure_request.reason, erasure_request.reference),
    )


def _cell(value: str | datetime | None) -> str:
    """Return the text of a cell; one that a spreadsheet would take for a formula gets a quote before it.

    >>> _cell("=1+1"), _cell("waits"), _cell(None)
    ("'=1+1", 'waits', '')
    """
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    text = value or ""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


router = APIRouter(include_in_schema=False)


def _wanted(
    state: Annotated[list[RequestState] | None, Query()] = None, only: Only = "all", text: str = ""
) -> WantedRequests:
    return WantedRequests(tuple(state or ()), only, text)


Wanted = Annotated[WantedRequests, Depends(_wanted)]


@router.get("/requests")
def list_requests(
    request: HttpRequest,
    caller: Annotated[Caller, Depends(PAGES)],
    wanted: Wanted,
    number: Annotated[int, Query(alias="page", ge=1, le=10**6)] = 1,
) -> Response:
    """List requests."""
    service = service_of(request)
    facts = {
        "wanted": wanted,
        "states": STATES,
        "list": ListPage.of(service, wanted, number),
        "settings": service.settings,
        "places_of": service.places,
    }
    return page(request, "requests.html", facts)


@router.get("/requests.csv")
def list_as_csv(request: HttpRequest, caller: Annotated[Caller, Depends(PAGES)], wanted: Wanted) -> Response:
    """Return the same list as a file for spreadsheets."""
    service = service_of(request)
    content = requests_csv(in_order(service, wanted.ids(service)), service.settings, service.clock())
    headers = {"Content-Disposition": 'attachment; filename="requests.csv"'}
    return Response(content, headers=headers, media_type="text/csv; charset=utf-8")


@router.post("/requests", dependencies=[Depends(refuse_foreign_forms)])
def submit(
    request: HttpRequest,
    caller: Annotated[Caller, Depends(PAGES)],
    user_id: Annotated[Id, Form()],
    item_ids: Annotated[str, Form()] = "",
    reference: Annotated[str, Form(max_length=100)] = "",
) -> Response:
    """Take a request in, and show its receipt code."""
    service = service_of(request)
    asked = Request(user_id, item_lines(item_ids))
    taken = service.reception.submit(asked, caller.actor, reference.strip() or None)
    facts = {
        "taken": taken,
        "erasure_request": taken.request,
        "settings": service.settings,
        "served_without": service.meanwhile(taken.request, user_id) == SERVED_WITHOUT,
        "near": near_in(service.live.dataset, user_id) if taken.rejected else NONE_NEAR,
    }
    return page(request, "submitted.html", facts, 201)
