"""The first page: what needs someone's hand, both clocks, and what the service does now."""

from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from erasable.requests import Request as Asked
from erasable.requests.lease import is_at_work
from erasable.requests.progress import read_progress
from erasable.requests.tokens import Caller
from erasable.service.access import PAGES
from erasable.service.overview import overview
from erasable.service.shop import Shop, shop_of
from erasable.service.web.pages import page

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Task:
    """A request that needs someone's hand: why, and what to do."""

    filed: Asked
    why: str
    advice: str
    limit: datetime


@router.get("/")
def show_overview(request: Request, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Show the state of the service."""
    shop = shop_of(request)
    found = overview(shop)
    facts = {
        "totals": found.totals,
        "tasks": sorted((_task(one, shop) for one in found.needs_action), key=attrgetter("limit")),
        "suppressed": len(shop.suppressed()),
        "last_erased": shop.history.last_erased(),
        "audit": request.app.state.audit_watch.state(),
        "progress": read_progress(shop.database),
        "working": is_at_work(shop.database, shop.settings.lease_seconds),
        "interactions_waiting": shop.intake.count(),
        "version": shop.live.version,
        "problem": shop.problem(),
    }
    return page(request, "overview.html", facts)


def _task(filed: Asked, shop: Shop) -> Task:
    return Task(filed, _why(filed, shop), _advice(filed), filed.deadlines(shop.settings).limit)


def _why(filed: Asked, shop: Shop) -> str:
    now = shop.clock()
    if filed.late(shop.settings, now):
        return "late: past the legal time"
    if now > filed.deadlines(shop.settings).limit:
        return "past its limit"
    if filed.state == "failed" and filed.retry_at is None:
        return "failed for good"
    return "beyond the limit of its token" if filed.over_limit else "the alarm has gone off"


def _advice(filed: Asked) -> str:
    if filed.state == "failed" and filed.retry_at is None:
        return f"{filed.reason or 'The reason is not known'}. Then have it tried again."
    if filed.state == "failed":
        return f"{filed.reason or 'The reason is not known'}. It is tried again by itself."
    if filed.over_limit:
        return "See whether whoever has the token meant it; then release it, or take it back."
    if filed.state == "on hold":
        return "Release it if nothing speaks against erasing; else extend it, with a reason for the person."
    return "It should have been carried out by now: see whether the worker is at work."
