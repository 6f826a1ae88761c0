"""Routes of recommendations, served from memory; each answer comes from one version of the model."""

import json
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute

from erasable.errors import WrongUse
from erasable.operations import Recommended as Found
from erasable.requests.tokens import Caller
from erasable.service.access import RECOMMENDING, may_know
from erasable.service.api.schemas import ManyUsers, Recommended, RecommendedToMany
from erasable.service.api.strict_json import StrictRoute
from erasable.service.problems import RESPONSES
from erasable.service.shop import shop_of

router = APIRouter(prefix="/v1/recommendations", tags=["recommendations"], responses=RESPONSES, route_class=StrictRoute)
_JSON = "application/json"
_MOST_ITEMS = 1000
_MOST_ANSWERS = 20_000


class _Direct(APIRoute):
    """Reads its few parameters itself: what FastAPI does to find them takes longer than recommending."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers."""
        return _recommended


async def _recommended(request: Request) -> Response:
    caller = await RECOMMENDING(request)
    user, k = request.path_params["user_id"], _number_of_items(request.query_params.get("k", "10"))
    why = _yes_or_no("why", request.query_params.get("why", "false"))
    answer = partial(shop_of(request).live.recommend, user, k, tell=may_know(caller), why=why)
    found = await run_in_threadpool(answer) if why else answer()  # reasons for many items may take a while
    return Response(json.dumps(_as_json(user, found)), media_type=_JSON)


def _number_of_items(text: str) -> int:
    k = int(text) if text.isdecimal() and len(text) <= len(str(_MOST_ITEMS)) else 0
    if not 1 <= k <= _MOST_ITEMS:
        raise WrongUse(f"query.k: give a whole number from 1 to {_MOST_ITEMS}")
    return k


def _yes_or_no(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise WrongUse(f"query.{name}: give true or false")
    return text == "true"


def recommend(
    user_id: str,
    caller: Annotated[Caller, Depends(RECOMMENDING)],
    k: Annotated[int, Query(ge=1, le=_MOST_ITEMS, description="How many items.")] = 10,
    why: Annotated[bool, Query(description="Whether to say which own items speak most for each.")] = False,
) -> Recommended:
    """Recommend the best items to a user; whoever has asked to be erased is unknown, and to operators suppressed."""
    raise NotImplementedError("it stands for the parameters; _recommended answers")


router.add_api_route("/{user_id:path}", recommend, methods=["GET"], route_class_override=_Direct)


@router.post("", response_model=RecommendedToMany)
def recommend_to_many(
    request: Request, wanted: ManyUsers, caller: Annotated[Caller, Depends(RECOMMENDING)]
) -> Response:
    """Recommend to several users at once, all from one version of the model."""
    if len(wanted.user_ids) * wanted.k > _MOST_ANSWERS:
        raise WrongUse(f"body.k: more than {_MOST_ANSWERS} items in all: ask for fewer users or items at a time")
    live = shop_of(request).live
    found = live.recommend_many(wanted.user_ids, wanted.k)
    answer = {
        "version": next((one.version for one in found if one), live.version),
        "recommendations": [_as_json(user, one) for user, one in zip(wanted.user_ids, found, strict=True) if one],
        "unknown": [place for place, one in enumerate(found) if one is None],
    }
    if may_know(caller):
        answer["suppressed"] = [place for place, user in enumerate(wanted.user_ids) if live.withholds(user)]
    return Response(json.dumps(answer), media_type=_JSON)


def _as_json(user: str, found: Found) -> dict[str, Any]:
    ranked = [{**offer._asdict(), "rank": rank} for rank, offer in enumerate(found.ranked, 1)]
    if found.why is not None:
        for item, reasons in zip(ranked, found.why, strict=True):
            item["because"] = [reason._asdict() for reason in reasons]
    return {"user_id": user, "version": found.version, "items": ranked}
