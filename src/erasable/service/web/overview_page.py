"""The first page: what needs someone's hand, both clocks, and what the service does now."""

from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from erasable.service.access import PAGES
from erasable.service.filed import Filed
from erasable.service.lease import holder_of
from erasable.service.overview import Overview, is_overdue, overview
from erasable.service.progress import read_progress
from erasable.service.shop import Shop, shop_of
from erasable.service.tokens import Caller
from erasable.service.web.pages import page

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Task:
    """A request that needs someone's hand: why, and what to do."""

    filed: Filed
    why: str
    advice: str
    limit: datetime


@dataclass(frozen=True)
class Clocks:
    """Both clocks over all open requests."""

    served_still: int
    """How many people may still be used for recommendations."""
    suppressed: int
    """How many people are not used, and their data may still be there."""
    next_begin: datetime | None
    """When the next batch begins."""
    next_limit: datetime | None
    """The first limit that an open request runs into."""
    next_legal: datetime | None


@router.get("/")
def show_overview(request: Request, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Show the state of the service."""
    shop = shop_of(request)
    found = overview(shop)
    facts = {
        "overview": found,
        "tasks": sorted((_task(one, shop) for one in found.needs_action), key=attrgetter("limit")),
        "clocks": _clocks(found, shop),
        "last_erased": shop.requests.last_erased(),
        "audit": request.app.state.audit_watch.state(),
        "progress": read_progress(shop.ledger),
        "working": holder_of(shop.ledger) is not None,
        "interactions_waiting": shop.intake.count(),
        "version": shop.live.version,
    }
    return page(request, "overview.html", facts)


def _task(filed: Filed, shop: Shop) -> Task:
    return Task(filed, _why(filed, shop), _advice(filed), filed.deadlines(shop.settings).limit)


def _why(filed: Filed, shop: Shop) -> str:
    now = shop.clock()
    if filed.late(shop.settings, now):
        return "late: past the legal time"
    if is_overdue(filed, shop.settings, now):
        return "past its limit"
    if filed.state == "failed" and filed.retry_at is None:
        return "failed for good"
    return "beyond the limit of its token" if filed.over_limit else "the alarm has gone off"


def _advice(filed: Filed) -> str:
    if filed.state == "failed" and filed.retry_at is None:
        return f"{filed.reason or 'The reason is not known'}. Then have it tried again."
    if filed.state == "failed":
        return f"{filed.reason or 'The reason is not known'}. It is tried again by itself."
    if filed.over_limit:
        return "See whether whoever has the token meant it; then release it, or take it back."
    if filed.state == "on hold":
        return "Release it if nothing speaks against erasing; else extend it, with a reason for the person."
    return "It should have been carried out by now: see whether the worker is at work."


def _clocks(found: Overview, shop: Shop) -> Clocks:
    deadlines = [one.deadlines(shop.settings) for one in found.open]
    waiting = [one.deadlines(shop.settings).begin for one in found.open if one.state == "suppressed"]
    return Clocks(
        served_still=sum(one.state in ("received", "accepted") for one in found.open),
        suppressed=len(shop.requests.suppressed_people()),
        next_begin=min(waiting, default=None),
        next_limit=min((one.limit for one in deadlines), default=None),
        next_legal=min((one.legal for one in deadlines), default=None),
    )
