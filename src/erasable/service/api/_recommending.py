"""The routes of recommendations, scores and similar items."""

import json
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from fastapi import Request as HttpRequest
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute

from erasable.data.item_lists import ItemList
from erasable.errors import WrongUse
from erasable.operations.live import Recommended
from erasable.operations.selection import Selection
from erasable.requests.tokens import Caller
from erasable.service._http import (
    RECOMMENDING,
    RESPONSES,
    StrictRoute,
    may_know,
    query_parameters,
    refuse_unknown_parameters,
    service_of,
)
from erasable.service.api._recommending_schemas import (
    ManyUsers,
    RecommendedToMany,
    RecommendedToOne,
    Scored,
    ScoresWanted,
    SimilarToOne,
)
from erasable.service.api._schemas import Id

recommendations_router = APIRouter(
    prefix="/v1/recommendations", tags=["recommendations"], responses=RESPONSES, route_class=StrictRoute
)
_JSON = "application/json"
_MOST_ITEMS = 1000
_MOST_ANSWERS = 20_000
_WITH_POST = f"leave it out; filters go with POST {recommendations_router.prefix}"


class _Direct(APIRoute):
    """Reads its few parameters itself: FastAPI takes longer to parse them than recommending takes."""

    def get_route_handler(self) -> Callable[[HttpRequest], Coroutine[Any, Any, Response]]:
        """Return the handler."""
        return partial(_recommended, query_parameters(self))


async def _recommended(known: Sequence[str], request: HttpRequest) -> Response:
    caller = await RECOMMENDING(request)
    refuse_unknown_parameters(request, known, _WITH_POST)
    user, k = request.path_params["user_id"], _number_of_items(request.query_params.get("k", "10"))
    why = _yes_or_no("why", request.query_params.get("why", "false"))
    live = service_of(request).live
    answer = partial(live.recommend, user, k, tell=may_know(caller), why=why)
    # Reasons for many items may take a while, and so may a torch model; else an answer takes no longer than a thread.
    found = await run_in_threadpool(answer) if why or live.may_wait_for(user) else answer()
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
    why: Annotated[
        bool, Query(description="Whether to name the user's own items that add most to each score.")
    ] = False,
) -> RecommendedToOne:
    """Recommend the best items to a user. Someone who asked to be erased is unknown, and to operators suppressed.

    Filters such as `available`, `exclude` and `where`: only with POST. An unknown query parameter is refused.
    """
    raise NotImplementedError("it only documents the parameters: _recommended answers")


recommendations_router.add_api_route("/{user_id:path}", recommend, methods=["GET"], route_class_override=_Direct)


@recommendations_router.post("", response_model=RecommendedToMany)
def recommend_to_many(
    request: HttpRequest, wanted: ManyUsers, caller: Annotated[Caller, Depends(RECOMMENDING)]
) -> Response:
    """Recommend to several users at once, all from one version of the model; or to someone with a history and no id.

    A history is neither stored nor logged.
    """
    users = wanted.user_ids or ()
    if len(users) * wanted.k > _MOST_ANSWERS:
        raise WrongUse(f"body.k: more than {_MOST_ANSWERS} items in all: ask for fewer users or items at a time")
    only, available, exclude = (_lists(given) for given in (wanted.items, wanted.available, wanted.exclude))
    live, selection = service_of(request).live, Selection(only, available, exclude, wanted.seen, wanted.where)
    if wanted.history is not None:
        version, best = live.recommend_for_history(wanted.history, wanted.k, wanted.why, selection)
        found = _as_json("", Recommended.of(version, best, wanted.why))
        answer = {"version": version, "recommendations": [found], "unknown": []}
        return _answer(answer | ({"left_out": best.left_out} if best.left_out else {}))
    many = live.recommend_many(users, wanted.k, wanted.why, selection)
    answer = {
        "version": next((one.version for one in many if one), live.version),
        "recommendations": [_as_json(user, one) for user, one in zip(users, many, strict=True) if one],
        "unknown": [place for place, one in enumerate(many) if one is None],
    }
    if may_know(caller):
        answer["suppressed"] = [place for place, user in enumerate(users) if live.suppresses(user)]
    return _answer(answer)


def _lists(given: list[str] | dict[str, list[str]] | None) -> tuple[ItemList, ...]:
    return () if given is None else (given,)


def _answer(content: dict[str, Any]) -> Response:
    return Response(json.dumps(content), media_type=_JSON)


def _as_json(user: str, found: Recommended) -> dict[str, Any]:
    ranked = [{**offer._asdict(), "rank": rank} for rank, offer in enumerate(found.ranked, 1)]
    if found.why is not None:
        for item, reasons in zip(ranked, found.why, strict=True):
            item["because"] = [reason._asdict() for reason in reasons]
    return {"user_id": user, "version": found.version, "items": ranked}


scores_router = APIRouter(prefix="/v1/scores", tags=["recommendations"], responses=RESPONSES, route_class=StrictRoute)


@scores_router.post("", response_model=Scored)
def score(request: HttpRequest, wanted: ScoresWanted, caller: Annotated[Caller, Depends(RECOMMENDING)]) -> Response:
    """Score some items for a user, seen or not, or for a history, which is neither stored nor logged."""
    live = service_of(request).live
    if wanted.history is not None:
        version, found = live.score_for_history(wanted.history, wanted.item_ids)
    else:
        version, found = live.score(wanted.user_id or "", wanted.item_ids, tell=may_know(caller))
    items = [{"item_id": item, "score": value} for item, value in found.scores]
    answer = {"user_id": found.user_id, "version": version, "items": items}
    return _answer(answer | ({"left_out": found.left_out} if found.left_out else {}))


similar_router = APIRouter(
    prefix="/v1/similar-items", tags=["recommendations"], responses=RESPONSES, route_class=StrictRoute
)


@similar_router.get("/{item_id:path}", response_model=SimilarToOne)
def similar(
    request: HttpRequest,
    item_id: str,
    caller: Annotated[Caller, Depends(RECOMMENDING)],
    k: Annotated[int, Query(ge=1, le=_MOST_ITEMS, description="How many items.")] = 10,
    available: Annotated[
        list[Id] | None, Query(description="Only these items, one a parameter; unknown ones are passed over.")
    ] = None,
    exclude: Annotated[list[Id] | None, Query(description="None of these items, one a parameter.")] = None,
    where: Annotated[
        str | None, Query(min_length=1, max_length=10_000, description="Only items whose declared attributes fit.")
    ] = None,
) -> Response:
    """Return the items most similar to one. There is no such route for people: it would show one person to another."""
    selection = Selection((), _lists(available), _lists(exclude), where=where)
    version, found = service_of(request).live.similar(item_id, k, selection)
    ranked = [{"item_id": one.item_id, "score": one.score, "rank": rank} for rank, one in enumerate(found, 1)]
    return _answer({"item_id": item_id, "version": version, "items": ranked})


ROUTERS = (recommendations_router, scores_router, similar_router)
