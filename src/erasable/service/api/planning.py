"""The route of plans: what forgetting would touch and cost; nothing is changed."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from erasable.errors import WrongUse
from erasable.operations import plan
from erasable.requests import Request as Asked
from erasable.requests.tokens import Caller
from erasable.service.access import OFFICE
from erasable.service.api.schemas import PlanFound, PlanWanted
from erasable.service.api.strict_json import StrictRoute
from erasable.service.problems import RESPONSES
from erasable.service.shop import shop_of

router = APIRouter(prefix="/v1/plan", tags=["erasure requests"], responses=RESPONSES, route_class=StrictRoute)


@router.post("")
def make_plan(request: Request, wanted: PlanWanted, caller: Annotated[Caller, Depends(OFFICE)]) -> PlanFound:
    """Say what forgetting some people together would touch and cost, and what it would cost one by one."""
    shop = shop_of(request)
    waiting = shop.history.in_states(["suppressed"]) if wanted.waiting else []
    kept = shop.queue.subjects([one.request_id for one in waiting])
    asked = {one.user: one for one in kept if shop.live.knows(one.user)}  # others wait to be learned
    asked |= {user: Asked(user) for user in wanted.user_ids}
    if not asked:
        raise WrongUse("there is nobody to plan for: name user_ids, or wait for requests")
    found = plan(shop.home, list(asked.values()))
    return PlanFound(
        people=len(asked),
        served_meanwhile=found.served_meanwhile,
        stages_rerun=found.stages_rerun,
        stages_total=found.stages_total,
        chain_ratio=found.chain_ratio,
        cost_ratio=found.cost_ratio,
        seconds_estimated=found.seconds_estimated,
        one_by_one=None if found.apart is None else found.apart._asdict(),
    )
