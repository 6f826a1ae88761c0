"""The routes of erasure requests, plans, recommendations and interactions."""

import json
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi import Request as HttpRequest
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute

from erasable.data.columns import ColumnNames
from erasable.data.readers import read_interactions
from erasable.errors import DataRefused, Refused, WrongUse
from erasable.operations.inspect import certificate_file
from erasable.operations.live import Recommended
from erasable.operations.people import can_serve_without
from erasable.operations.planning import plan
from erasable.requests.database import WaitingInteraction
from erasable.requests.decisions import as_table
from erasable.requests.request import STATES, Request, Submission
from erasable.requests.tokens import AnsweredBefore, Caller
from erasable.service._http import (
    OFFICE,
    RECOMMENDING,
    RESPONSES,
    SUBMITTING,
    RequestId,
    StrictRoute,
    may_know,
    service_of,
)
from erasable.service._service import Service
from erasable.service.api._schemas import (
    ErasureRequest,
    ErasureRequestDetail,
    ManyUsers,
    NewErasureRequest,
    NewInteractions,
    PlanFound,
    PlanWanted,
    RecommendedToMany,
    RecommendedToOne,
    Remark,
    RequestList,
    RequiredRemark,
    Submitted,
    TakenIn,
    V1State,
    from_v1,
)

erasure_requests_router = APIRouter(
    prefix="/v1/erasure-requests", tags=["erasure requests"], responses=RESPONSES, route_class=StrictRoute
)
NOTHING_SAID = Remark()
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=255, description="Random text; a repeat gets the same answer."
    ),
]


@erasure_requests_router.post("", status_code=201, response_model=Submitted)
async def submit(
    request: HttpRequest, asked: NewErasureRequest, caller: Annotated[Caller, Depends(SUBMITTING)], key: Key = None
) -> Response:
    """Ask for a person, or some of their interactions, to be erased.

    When this answers, the person is not served any more, or not with these items: `meanwhile` says which. A second
    request for the same person joins the first.
    An application gets the same answer whether or not anything is held, and whether or not the person has asked before.
    """
    body, service = await request.body(), service_of(request)
    answer = await run_in_threadpool(
        _answered_once, service, caller, f"{caller.token} {key}" if key else None, asked, body
    )
    headers = {"Location": f"{erasure_requests_router.prefix}/{json.loads(answer)['id']}"}
    return Response(answer, 201, headers, "application/json")


@erasure_requests_router.get("")
def list_requests(
    request: HttpRequest,
    caller: Annotated[Caller, Depends(OFFICE)],
    state: Annotated[list[V1State] | None, Query(description="Only those in one of these states.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at most.")] = 100,
    before: Annotated[int | None, Query(ge=1, le=2**53, description="The `next` of the page before.")] = None,
) -> RequestList:
    """List requests, newest first."""
    service = service_of(request)
    found = service.history.ids([*map(from_v1, state)] if state else STATES, limit + 1, before)
    shown = service.history.some([request_id for _, request_id in found[:limit]])[::-1]
    return RequestList(
        requests=[ErasureRequest.of(erasure_request, service.settings, service.clock()) for erasure_request in shown],
        next=found[limit - 1][0] if len(found) > limit else None,
    )


@erasure_requests_router.get("/{request_id}")
def show_request(
    request: HttpRequest, request_id: RequestId, caller: Annotated[Caller, Depends(OFFICE)]
) -> ErasureRequestDetail:
    """Show a request and everything that happened to it."""
    return _detail(service_of(request), request_id)


@erasure_requests_router.post("/{request_id}/withdraw")
def withdraw(
    request: HttpRequest, request_id: RequestId, caller: Annotated[Caller, Depends(OFFICE)], why: Remark = NOTHING_SAID
) -> ErasureRequestDetail:
    """Take a request back, until erasing begins; the person is served again. Who asked and why is not kept."""
    service_of(request).reception.withdraw(request_id, caller.actor, why.reason)
    return _detail(service_of(request), request_id)


@erasure_requests_router.post("/{request_id}/hold")
def hold(
    request: HttpRequest, request_id: RequestId, caller: Annotated[Caller, Depends(OFFICE)], why: Remark = NOTHING_SAID
) -> ErasureRequestDetail:
    """Put a request on hold: it is not carried out, and the person stays suppressed."""
    service = service_of(request)
    service.reception.hold(request_id, caller.actor, why.reason)
    return _detail(service, request_id)


@erasure_requests_router.post("/{request_id}/release")
def release(
    request: HttpRequest, request_id: RequestId, caller: Annotated[Caller, Depends(OFFICE)]
) -> ErasureRequestDetail:
    """Release a request that is on hold."""
    service = service_of(request)
    service.decisions.release(request_id, caller.actor, service.clock())
    return _detail(service, request_id)


@erasure_requests_router.post("/{request_id}/extend")
def extend(
    request: HttpRequest, request_id: RequestId, why: RequiredRemark, caller: Annotated[Caller, Depends(OFFICE)]
) -> ErasureRequestDetail:
    """Extend the legal month by two, once; the person must be told the reason within the first (Art. 12(3))."""
    service = service_of(request)
    service.reception.extend(request_id, caller.actor, why.reason)
    return _detail(service, request_id)


@erasure_requests_router.post("/{request_id}/retry")
def retry(
    request: HttpRequest, request_id: RequestId, caller: Annotated[Caller, Depends(OFFICE)]
) -> ErasureRequestDetail:
    """Retry a failed request now."""
    service = service_of(request)
    service.decisions.retry(request_id, caller.actor, service.clock())
    return _detail(service, request_id)


@erasure_requests_router.get("/{request_id}/certificate", responses={200: {"content": {"application/json": {}}}})
def certificate(request: HttpRequest, request_id: RequestId, caller: Annotated[Caller, Depends(OFFICE)]) -> Response:
    """Return the signed certificate, byte for byte as it was issued."""
    return Response(certificate_file(service_of(request).storage, f"{request_id}.json"), media_type="application/json")


def _answered_once(service: Service, caller: Caller, key: str | None, asked: NewErasureRequest, body: bytes) -> bytes:
    """Answer a submission; a key that was used before gets its earlier answer."""
    items = None if asked.item_ids is None else tuple(asked.item_ids)
    request, unaware = Request(asked.user_id, items), not may_know(caller)

    def answered(taken: Submission) -> bytes:
        answer = _submitted(service, caller, asked, taken)
        if key is not None:
            service.answers.keep(key, body, answer)
        return answer

    if key is None:
        return service.reception.submit_and(request, caller.actor, answered, asked.reference, unaware)
    with service.answers.under(key):
        earlier = service.answers.earlier(key, body)
        if earlier is not None:
            return earlier
        try:
            return service.reception.submit_and(request, caller.actor, answered, asked.reference, unaware)
        except AnsweredBefore as another:
            return another.answer


def _submitted(service: Service, caller: Caller, asked: NewErasureRequest, taken: Submission) -> bytes:
    now = service.clock()
    if not may_know(caller):
        without = can_serve_without(service.live.dataset)
        return Submitted.unaware(taken, asked, service.settings, now, without).model_dump_json().encode()
    erasure_request = service.history.get(taken.request_id)
    fields = ErasureRequest.fields_of(erasure_request, service.settings, now)
    told = {
        "joined": taken.joined,
        "receipt_code": taken.receipt_code,
        "meanwhile": service.meanwhile(erasure_request, asked.user_id),
    }
    return Submitted(**fields, **told).model_dump_json().encode()


def _detail(service: Service, request_id: str) -> ErasureRequestDetail:
    erasure_request = service.history.get(request_id)
    return ErasureRequestDetail.in_full(
        erasure_request,
        service.settings,
        service.clock(),
        service.meanwhile(erasure_request),
        service.places(erasure_request),
    )


plan_router = APIRouter(prefix="/v1/plan", tags=["erasure requests"], responses=RESPONSES, route_class=StrictRoute)


@plan_router.post("")
def make_plan(request: HttpRequest, wanted: PlanWanted, caller: Annotated[Caller, Depends(OFFICE)]) -> PlanFound:
    """Plan the erasure of some people: what it would touch and cost together, and one by one."""
    service = service_of(request)
    waiting = service.history.in_states(["suppressed"]) if wanted.waiting else []
    kept = service.queue.subjects([one.request_id for one in waiting])
    asked = {one.user: one for one in kept if service.live.knows(one.user)}  # the others are not learned yet
    asked |= {user: Request(user) for user in wanted.user_ids}
    if not asked:
        raise WrongUse("there is nobody to plan for: name user_ids, or wait for requests")
    found = plan(service.storage, list(asked.values()))
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


recommendations_router = APIRouter(
    prefix="/v1/recommendations", tags=["recommendations"], responses=RESPONSES, route_class=StrictRoute
)
_JSON = "application/json"
_MOST_ITEMS = 1000
_MOST_ANSWERS = 20_000


class _Direct(APIRoute):
    """Reads its few parameters itself: FastAPI takes longer to parse them than recommending takes."""

    def get_route_handler(self) -> Callable[[HttpRequest], Coroutine[Any, Any, Response]]:
        """Return the handler."""
        return _recommended


async def _recommended(request: HttpRequest) -> Response:
    caller = await RECOMMENDING(request)
    user, k = request.path_params["user_id"], _number_of_items(request.query_params.get("k", "10"))
    why = _yes_or_no("why", request.query_params.get("why", "false"))
    answer = partial(service_of(request).live.recommend, user, k, tell=may_know(caller), why=why)
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
    why: Annotated[
        bool, Query(description="Whether to name the user's own items that add most to each score.")
    ] = False,
) -> RecommendedToOne:
    """Recommend the best items to a user. Someone who asked to be erased is unknown, and to operators suppressed."""
    raise NotImplementedError("it only documents the parameters: _recommended answers")


recommendations_router.add_api_route("/{user_id:path}", recommend, methods=["GET"], route_class_override=_Direct)


@recommendations_router.post("", response_model=RecommendedToMany)
def recommend_to_many(
    request: HttpRequest, wanted: ManyUsers, caller: Annotated[Caller, Depends(RECOMMENDING)]
) -> Response:
    """Recommend to several users at once, all from one version of the model."""
    if len(wanted.user_ids) * wanted.k > _MOST_ANSWERS:
        raise WrongUse(f"body.k: more than {_MOST_ANSWERS} items in all: ask for fewer users or items at a time")
    live = service_of(request).live
    found = live.recommend_many(wanted.user_ids, wanted.k)
    answer = {
        "version": next((one.version for one in found if one), live.version),
        "recommendations": [_as_json(user, one) for user, one in zip(wanted.user_ids, found, strict=True) if one],
        "unknown": [place for place, one in enumerate(found) if one is None],
    }
    if may_know(caller):
        answer["suppressed"] = [place for place, user in enumerate(wanted.user_ids) if live.suppresses(user)]
    return Response(json.dumps(answer), media_type=_JSON)


def _as_json(user: str, found: Recommended) -> dict[str, Any]:
    ranked = [{**offer._asdict(), "rank": rank} for rank, offer in enumerate(found.ranked, 1)]
    if found.why is not None:
        for item, reasons in zip(ranked, found.why, strict=True):
            item["because"] = [reason._asdict() for reason in reasons]
    return {"user_id": user, "version": found.version, "items": ranked}


interactions_router = APIRouter(
    prefix="/v1/interactions", tags=["learning"], responses=RESPONSES, route_class=StrictRoute
)


@interactions_router.post("", status_code=202)
def take_in(request: HttpRequest, coming: NewInteractions, caller: Annotated[Caller, Depends(RECOMMENDING)]) -> TakenIn:
    """Take interactions in, to be learned soon; those of people whose erasure is under way are left out.

    An application is not told which or how many.
    """
    service = service_of(request)
    scale = service.live.dataset.scale
    happened = scale.high if scale.low == scale.high else None  # without ratings, a row only says that it happened
    rows = [
        WaitingInteraction(one.user_id, one.item_id, one.rating or happened, one.time) for one in coming.interactions
    ]
    _refuse_what_can_not_be_learned(service, rows)
    kept = service.intake.add(rows, leaving=service.live.served.asked.people)
    shown = kept if may_know(caller) else len(rows)
    return TakenIn(accepted=shown, left_out=len(rows) - shown)


def _refuse_what_can_not_be_learned(service: Service, rows: list[WaitingInteraction]) -> None:
    """Refuse now what learning would refuse later, together with everything that came in since."""
    dataset = service.live.dataset
    if dataset.config.min_interactions:
        raise Refused("a filter was applied when this was learned, so it can't learn more: learn again from all data")
    items = dataset.items if dataset.catalogue and dataset.catalogue.declared else None
    for place, row in enumerate(rows):
        if items is not None and row.item not in items:
            raise DataRefused(
                f"interactions.{place}.item_id: is not in the catalogue, which was declared: leave it out"
            )
        if row.rating is None:
            raise DataRefused(f"interactions.{place}.rating: ratings go from {dataset.scale} here: give one")
    read_interactions(as_table(rows), ColumnNames(), dataset.scale, fewest_users=1)


ROUTERS = (erasure_requests_router, recommendations_router, interactions_router, plan_router)
