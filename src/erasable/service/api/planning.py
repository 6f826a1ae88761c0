"""The route of plans: what forgetting would touch and cost; nothing is changed."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from erasable.errors import WrongUse
from erasable.operations import plan
from erasable.service.access import OFFICE
from erasable.service.api.schemas import PlanFound, PlanWanted
from erasable.service.api.strict_json import StrictRoute
from erasable.service.problems import RESPONSES
from erasable.service.shop import shop_of
from erasable.service.tokens import Caller
from erasable.unlearning import Request as Wish

router = APIRouter(prefix="/v1/plan", tags=["erasure requests"], responses=RESPONSES, route_class=StrictRoute)


@router.post("")
def make_plan(request: Request, wanted: PlanWanted, caller: Annotated[Caller, Depends(OFFICE)]) -> PlanFound:
    """Say what forgetting some people together would touch and cost, and what it would cost one by one."""
    shop = shop_of(request)
    waiting = shop.requests.in_states(["suppressed"]) if wanted.waiting else []
    asked = shop.requests.accepted([filed.request_id for filed in waiting])
    wishes = {one.user: one.request for one in asked if shop.live.knows(one.user)}  # others wait to be learned
    wishes |= {user: Wish(user) for user in wanted.user_ids}
    if not wishes:
        raise WrongUse("there is nobody to plan for: name user_ids, or wait for requests")
    found = plan(shop.home, list(wishes.values()))
    return PlanFound(
        people=len(wishes),
        stages_rerun=found.stages_rerun,
        stages_total=found.stages_total,
        chain_ratio=found.chain_ratio,
        cost_ratio=found.cost_ratio,
        seconds_estimated=found.seconds_estimated,
        one_by_one=None if found.apart is None else found.apart._asdict(),
    )
