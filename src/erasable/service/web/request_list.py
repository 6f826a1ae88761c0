"""The list of requests, as a page and as CSV, and the form that submits one."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response

from erasable.data import NONE_NEAR
from erasable.operations import near_in
from erasable.operations.meanwhile import SERVED_WITHOUT
from erasable.requests import Request as Asked
from erasable.requests.lifecycle import STATES, RequestState
from erasable.requests.tokens import Caller
from erasable.service.access import PAGES
from erasable.service.api.schemas import Id
from erasable.service.shop import shop_of
from erasable.service.web.own_site import refuse_foreign_forms
from erasable.service.web.pages import page
from erasable.service.web.request_csv import requests_csv
from erasable.service.web.wanted_requests import ListPage, Only, WantedRequests, in_order

router = APIRouter(include_in_schema=False)


def _wanted(
    state: Annotated[list[RequestState] | None, Query()] = None, only: Only = "all", text: str = ""
) -> WantedRequests:
    return WantedRequests(tuple(state or ()), only, text)


Wanted = Annotated[WantedRequests, Depends(_wanted)]


@router.get("/requests")
def list_requests(
    request: Request,
    caller: Annotated[Caller, Depends(PAGES)],
    wanted: Wanted,
    number: Annotated[int, Query(alias="page", ge=1, le=10**6)] = 1,
) -> Response:
    """List requests."""
    shop = shop_of(request)
    facts = {
        "wanted": wanted,
        "states": STATES,
        "list": ListPage.of(shop, wanted, number),
        "settings": shop.settings,
        "places_of": shop.places,
    }
    return page(request, "requests.html", facts)


@router.get("/requests.csv")
def list_as_csv(request: Request, caller: Annotated[Caller, Depends(PAGES)], wanted: Wanted) -> Response:
    """Return the same list as a file for spreadsheets."""
    shop = shop_of(request)
    content = requests_csv(in_order(shop, wanted.ids(shop)), shop.settings, shop.clock())
    headers = {"Content-Disposition": 'attachment; filename="requests.csv"'}
    return Response(content, headers=headers, media_type="text/csv; charset=utf-8")


@router.post("/requests", dependencies=[Depends(refuse_foreign_forms)])
def submit(
    request: Request,
    caller: Annotated[Caller, Depends(PAGES)],
    user_id: Annotated[Id, Form()],
    item_ids: Annotated[str, Form()] = "",
    reference: Annotated[str, Form(max_length=100)] = "",
) -> Response:
    """Take a request in, and show its receipt code."""
    shop = shop_of(request)
    asked = Asked(user_id, item_lines(item_ids))
    taken = shop.reception.submit(asked, caller.actor, reference.strip() or None)
    facts = {
        "taken": taken,
        "filed": taken.request,
        "settings": shop.settings,
        "served_without": shop.meanwhile(taken.request, user_id) == SERVED_WITHOUT,
        "near": near_in(shop.live.knowledge, user_id) if taken.rejected else NONE_NEAR,
    }
    return page(request, "submitted.html", facts, 201)


def item_lines(text: str) -> tuple[str, ...] | None:
    """Return the items that were named one a line, none if there is no line.

    >>> item_lines(" a \\r\\n\\r\\nb"), item_lines(" ")
    (('a', 'b'), None)
    """
    return tuple(line.strip() for line in text.splitlines() if line.strip()) or None
