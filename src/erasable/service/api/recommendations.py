"""Routes of recommendations, served from memory; each answer comes from one version of the model."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from erasable.operations import Recommended as Found
from erasable.service.access import RECOMMENDING
from erasable.service.api.schemas import ManyUsers, Recommended, RecommendedToMany
from erasable.service.problems import RESPONSES
from erasable.service.shop import shop_of
from erasable.service.tokens import Caller

router = APIRouter(prefix="/v1/recommendations", tags=["recommendations"], responses=RESPONSES)
_JSON = "application/json"


@router.get("/{user_id:path}", response_model=Recommended)
async def recommend(
    request: Request,
    user_id: str,
    caller: Annotated[Caller, Depends(RECOMMENDING)],
    k: Annotated[int, Query(ge=1, le=1000, description="How many items.")] = 10,
) -> Response:
    """Recommend the best items to a user; whoever has asked to be erased is unknown."""
    found = shop_of(request).live.recommend(user_id, k)
    return Response(json.dumps(_as_json(user_id, found)), media_type=_JSON)


@router.post("", response_model=RecommendedToMany)
def recommend_to_many(
    request: Request, wanted: ManyUsers, caller: Annotated[Caller, Depends(RECOMMENDING)]
) -> Response:
    """Recommend to several users at once, all from one version of the model."""
    live = shop_of(request).live
    found = live.recommend_many(wanted.user_ids, wanted.k)
    answer = {
        "version": next((one.version for one in found if one), live.version),
        "recommendations": [_as_json(user, one) for user, one in zip(wanted.user_ids, found, strict=True) if one],
        "unknown": [place for place, one in enumerate(found) if one is None],
    }
    return Response(json.dumps(answer), media_type=_JSON)


def _as_json(user: str, found: Found) -> dict[str, Any]:
    ranked = [{"item_id": item, "score": score, "rank": rank} for rank, (item, score) in enumerate(found.ranked, 1)]
    return {"user_id": user, "version": found.version, "items": ranked}
