"""The page of one request: its clocks, the work on it, what happened, and what can be done."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from erasable.operations import certificate_file
from erasable.operations.meanwhile import SERVED_WITHOUT
from erasable.requests.tokens import Caller
from erasable.service.access import PAGES
from erasable.service.api.erasure_requests import RequestId
from erasable.service.shop import shop_of
from erasable.service.web.headers import CERTIFICATE_POLICY
from erasable.service.web.own_site import refuse_foreign_forms
from erasable.service.web.pages import page
from erasable.service.web.request_actions import ActionName, carry_out, offered
from erasable.service.web.request_view import ClockBar, WorkView

router = APIRouter(prefix="/requests/{request_id}", include_in_schema=False)


@router.get("")
def show_request(request: Request, request_id: RequestId, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Show a request."""
    return _request_page(request, request_id)


@router.get("/progress")
def show_progress(request: Request, request_id: RequestId, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Show how far the work on a request is, as a part of its page."""
    shop = shop_of(request)
    filed = shop.history.get(request_id)
    return page(request, "work.html", {"filed": filed, "work": WorkView.of(filed, shop), "places": shop.places(filed)})


@router.post("/reveal", dependencies=[Depends(refuse_foreign_forms)])
def reveal(request: Request, request_id: RequestId, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Show who asked, this once, and write down who wanted to know."""
    shop = shop_of(request)
    return _request_page(request, request_id, shop.decisions.reveal(request_id, caller.actor, shop.clock()))


@router.post("/actions/{name}", dependencies=[Depends(refuse_foreign_forms)])
def act(
    request: Request,
    request_id: RequestId,
    name: ActionName,
    caller: Annotated[Caller, Depends(PAGES)],
    reason: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Do something about a request."""
    carry_out(shop_of(request), name, request_id, caller.actor, reason)
    return RedirectResponse(f"/requests/{request_id}", HTTPStatus.SEE_OTHER)


@router.get("/certificate.html")
def certificate_page(request: Request, request_id: RequestId, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Show the certificate as it was issued."""
    content = certificate_file(shop_of(request).home, f"{request_id}.html")
    return Response(content, headers={"Content-Security-Policy": CERTIFICATE_POLICY}, media_type="text/html")


@router.get("/certificate.json")
def certificate_json(request: Request, request_id: RequestId, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Return the signed certificate, byte for byte as it was issued."""
    headers = {"Content-Disposition": f'attachment; filename="{request_id}.json"'}
    content = certificate_file(shop_of(request).home, f"{request_id}.json")
    return Response(content, headers=headers, media_type="application/json")


def _request_page(request: Request, request_id: str, person: str | None = None) -> Response:
    shop = shop_of(request)
    filed = shop.history.get(request_id)
    facts = {
        "filed": filed,
        "clock": ClockBar.of(filed, shop),
        "work": WorkView.of(filed, shop),
        "actions": offered(filed, shop.clock()),
        "deadlines": filed.deadlines(shop.settings),
        "left_out": filed.when("suppressed"),
        "served_without": shop.meanwhile(filed) == SERVED_WITHOUT,
        "late": filed.late(shop.settings, shop.clock()),
        "code_is_shown_again": filed.state in ("suppressed", "on hold") and not filed.from_application,
        "places": shop.places(filed),
        "person": person,
        "person_kept": filed.open and filed.when("certifying") is None,
    }
    return page(request, "request.html", facts)
