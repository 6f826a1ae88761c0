"""The route of interactions: learning goes on."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from erasable.errors import DataRefused, Refused
from erasable.service.access import RECOMMENDING
from erasable.service.api.schemas import Interactions, TakenIn
from erasable.service.api.strict_json import StrictRoute
from erasable.service.intake import Coming
from erasable.service.problems import RESPONSES
from erasable.service.shop import Shop, shop_of
from erasable.service.tokens import Caller

router = APIRouter(prefix="/v1/interactions", tags=["learning"], responses=RESPONSES, route_class=StrictRoute)


@router.post("", status_code=202)
def take_in(request: Request, coming: Interactions, caller: Annotated[Caller, Depends(RECOMMENDING)]) -> TakenIn:
    """Take interactions in, to be learned soon; those of people whose erasure is under way are left out."""
    shop = shop_of(request)
    rows = [Coming(one.user_id, one.item_id, one.rating, one.time) for one in coming.interactions]
    _refuse_unlike(shop, rows)
    kept = shop.intake.add(rows, leaving=shop.live.served.withheld)
    return TakenIn(accepted=kept, left_out=len(rows) - kept)


def _refuse_unlike(shop: Shop, rows: list[Coming]) -> None:
    """Refuse what could not be learned, before it is taken in."""
    knowledge = shop.live.knowledge
    if knowledge.config.min_interactions:
        raise Refused("a filter was applied when this was learned, so that it can't learn more: learn again from all")
    scale = knowledge.scale
    for place, row in enumerate(rows):
        if row.rating is None and scale.low < scale.high:
            raise DataRefused(f"interactions.{place}.rating: ratings go from {scale} here: give one")
        if row.rating is not None and not scale.low <= row.rating <= scale.high:
            raise DataRefused(f"interactions.{place}.rating: must lie on the scale {scale}")
