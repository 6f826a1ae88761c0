"""The page of the audit: the records of the workspace, the journal of the service, tokens, and verifying."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from erasable.requests.tokens import Caller
from erasable.service.access import PAGES
from erasable.service.shop import shop_of
from erasable.service.web.own_site import refuse_foreign_forms
from erasable.service.web.pages import page

router = APIRouter(include_in_schema=False)
_ASKED, _ENDED = "verification asked", "verification ended"
_EVENTS_SHOWN = 25
_RECORDS_SHOWN = 25


@router.get("/audit")
def show_audit(
    request: Request,
    caller: Annotated[Caller, Depends(PAGES)],
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
) -> Response:
    """Show what was done, by whom and when."""
    shop, audit = shop_of(request), request.app.state.audit_watch.state()
    journal = shop.history.events(_EVENTS_SHOWN + 1, before)
    last = shop.history.last_event(_ASKED, _ENDED)
    facts = {
        "audit": audit,
        "records": audit.records[: -_RECORDS_SHOWN - 1 : -1],
        "journal": journal[:_EVENTS_SHOWN],
        "older": journal[_EVENTS_SHOWN - 1].number if len(journal) > _EVENTS_SHOWN else None,
        "verifying": last is not None and last.name == _ASKED,
        "verified": shop.history.last_event(_ENDED),
        "tokens": shop.tokens.all(),
    }
    return page(request, "audit.html", facts)


@router.post("/audit/verify", dependencies=[Depends(refuse_foreign_forms)])
def ask_for_verification(request: Request, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Have the worker verify the workspace."""
    shop = shop_of(request)
    shop.queue.note(None, _ASKED, caller.actor, shop.clock())
    return RedirectResponse("/audit", HTTPStatus.SEE_OTHER)
