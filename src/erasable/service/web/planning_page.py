"""The page of plans: what erasing those who wait costs one by one, and in one batch."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response

from erasable.errors import UnknownUser, WrongUse
from erasable.operations import near_in, plan
from erasable.requests import Request as Asked
from erasable.requests.tokens import Caller
from erasable.service.access import PAGES
from erasable.service.shop import Shop, shop_of
from erasable.service.web.own_site import refuse_foreign_forms
from erasable.service.web.pages import page
from erasable.service.web.request_list import item_lines

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
    asked = [Asked(user) for user in dict.fromkeys(named)] if named else _asked(shop)
    if not asked:
        raise WrongUse("there is nobody to plan for: name some people, or wait for requests")
    try:
        found = plan(shop.home, asked)
    except UnknownUser:
        unknown = (one.user for one in asked if not shop.live.knows(one.user))
        near = near_in(shop.live.knowledge, next(unknown, ""))
        if not near.held:
            raise
        raise WrongUse(near.sentence()) from None  # of someone unknown a page says less
    return _plan_page(request, {"found": found, "planned_for": len(asked), "named": bool(named)})


def _plan_page(request: Request, facts: dict[str, object]) -> Response:
    shop = shop_of(request)
    found = shop.history.totals(shop.clock())
    return page(
        request, "plan.html", {"waiting": found.states.get("suppressed", 0), "begin": found.next_begin, **facts}
    )


def _asked(shop: Shop) -> list[Asked]:
    """Return what those who wait have asked for, as far as the model knows of them."""
    waiting = shop.history.in_states(["suppressed"])
    asked = shop.queue.subjects([one.request_id for one in waiting])
    return [one for one in asked if shop.live.knows(one.user)]
