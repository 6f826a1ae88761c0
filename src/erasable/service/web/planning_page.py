"""The page of plans: what erasing those who wait costs one by one, and in one batch."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response

from erasable.errors import UnknownUser, WrongUse
from erasable.operations import near_in, plan
from erasable.service.access import PAGES
from erasable.service.filed import Filed
from erasable.service.shop import Shop, shop_of
from erasable.service.tokens import Caller
from erasable.service.web.own_site import refuse_foreign_forms
from erasable.service.web.pages import page
from erasable.service.web.request_list import item_lines
from erasable.unlearning import Request as Wish

router = APIRouter(include_in_schema=False)


@router.get("/plan")
def show_plan(request: Request, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Show who waits, and ask whom to plan for."""
    return _plan_page(request, {"found": None, "planned_for": None, "named": False})


@router.post("/plan", dependencies=[Depends(refuse_foreign_forms)])
def make_plan(
    request: Request, caller: Annotated[Caller, Depends(PAGES)], user_ids: Annotated[str, Form()] = ""
) -> Response:
    """Work out what erasing costs; nothing is changed."""
    shop, named = shop_of(request), item_lines(user_ids)
    wishes = [Wish(user) for user in dict.fromkeys(named)] if named else _wishes(shop, _waiting(shop))
    if not wishes:
        raise WrongUse("there is nobody to plan for: name some people, or wait for requests")
    try:
        found = plan(shop.home, wishes)
    except UnknownUser:
        unknown = (wish.user for wish in wishes if not shop.live.knows(wish.user))
        near = near_in(shop.live.knowledge, next(unknown, ""))
        if not near.held:
            raise
        raise WrongUse(near.sentence()) from None  # of someone unknown a page says less
    return _plan_page(request, {"found": found, "planned_for": len(wishes), "named": bool(named)})


def _plan_page(request: Request, facts: dict[str, object]) -> Response:
    shop = shop_of(request)
    waiting = _waiting(shop)
    return page(request, "plan.html", {"waiting": len(waiting), "begin": _begin(waiting, shop), **facts})


def _waiting(shop: Shop) -> list[Filed]:
    return shop.requests.in_states(["suppressed"])


def _begin(waiting: Sequence[Filed], shop: Shop) -> datetime | None:
    """Return when the next batch begins: when the first of those who wait is due."""
    return min((one.deadlines(shop.settings).begin for one in waiting), default=None)


def _wishes(shop: Shop, waiting: Sequence[Filed]) -> list[Wish]:
    """Return what those who wait have asked for, as far as the model knows of them."""
    asked = shop.requests.accepted([one.request_id for one in waiting])
    return [one.request for one in asked if shop.live.knows(one.user)]
