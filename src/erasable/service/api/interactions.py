"""The route of interactions: learning goes on."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from erasable.data import ColumnNames, read_interactions
from erasable.errors import DataRefused, Refused
from erasable.requests.database import Interaction
from erasable.requests.intake import as_table
from erasable.requests.tokens import Caller
from erasable.service.access import RECOMMENDING, may_know
from erasable.service.api.schemas import Interactions, TakenIn
from erasable.service.api.strict_json import StrictRoute
from erasable.service.problems import RESPONSES
from erasable.service.shop import Shop, shop_of

router = APIRouter(prefix="/v1/interactions", tags=["learning"], responses=RESPONSES, route_class=StrictRoute)


@router.post("", status_code=202)
def take_in(request: Request, coming: Interactions, caller: Annotated[Caller, Depends(RECOMMENDING)]) -> TakenIn:
    """Take interactions in, to be learned soon; those of people whose erasure is under way are left out.

    An application is not told which or how many.
    """
    shop = shop_of(request)
    scale = shop.live.knowledge.scale
    happened = scale.high if scale.low == scale.high else None  # where a row says only that it happened
    rows = [Interaction(one.user_id, one.item_id, one.rating or happened, one.time) for one in coming.interactions]
    _refuse_what_can_not_be_learned(shop, rows)
    kept = shop.intake.add(rows, leaving=shop.live.served.asked.people)
    shown = kept if may_know(caller) else len(rows)
    return TakenIn(accepted=shown, left_out=len(rows) - shown)


def _refuse_what_can_not_be_learned(shop: Shop, rows: list[Interaction]) -> None:
    """Refuse now what learning would refuse later, with everything that came in since."""
    knowledge = shop.live.knowledge
    if knowledge.config.min_interactions:
        raise Refused("a filter was applied when this was learned, so that it can't learn more: learn again from all")
    items = knowledge.items if knowledge.catalogue and knowledge.catalogue.declared else None
    for place, row in enumerate(rows):
        if items is not None and row.item not in items:
            raise DataRefused(
                f"interactions.{place}.item_id: is not in the catalogue, which was declared: leave it out"
            )
        if row.rating is None:
            raise DataRefused(f"interactions.{place}.rating: ratings go from {knowledge.scale} here: give one")
    read_interactions(as_table(rows), ColumnNames(), knowledge.scale, fewest_users=1)
