"""The routes of erasure requests, plans and interactions."""

import json
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi import Request as HttpRequest
from fastapi.concurrency import run_in_threadpool

from erasable.chain.arrangement import refuse_after_filter
from erasable.chain.dataset import Dataset
from erasable.data.columns import ANY_COLUMNS
from erasable.data.readers import read_interactions
from erasable.errors import DataRefused, WrongUse
from erasable.operations.inspect import certificate_file
from erasable.operations.people import can_serve_without
from erasable.operations.planning import plan
from erasable.requests.database import WaitingInteraction
from erasable.requests.decisions import WEIGHT_TAKEN_IN, as_table
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
from erasable.service._syncing import ask_for_sync
from erasable.service.api._schemas import (
    ErasureRequest,
    ErasureRequestDetail,
    NewErasureRequest,
    NewInteraction,
    NewInteractions,
    PlanFound,
    PlanWanted,
    Remark,
    RequestList,
    RequiredRemark,
    Submitted,
    SyncInfo,
    SyncWanted,
    TakenIn,
    V1State,
    from_v1,
)
from erasable.service.settings import log

erasure_requests_router = APIRouter(
    prefix="/v1/erasure-requests", tags=["erasure requests"], responses=RESPONSES, route_class=StrictRoute
)
NOTHING_SAID = Remark()
NOTHING_CONFIRMED = SyncWanted()
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


interactions_router = APIRouter(
    prefix="/v1/interactions", tags=["learning"], responses=RESPONSES, route_class=StrictRoute
)


@interactions_router.post("", status_code=202)
def take_in(request: HttpRequest, coming: NewInteractions, caller: Annotated[Caller, Depends(RECOMMENDING)]) -> TakenIn:
    """Take interactions in, to be learned soon; those of people whose erasure is under way are left out.

    An application is not told which or how many.
    """
    service = service_of(request)
    rows = _waiting(service.live.dataset, coming.interactions)
    if not rows:
        return TakenIn(accepted=0, left_out=len(coming.interactions))
    _refuse_what_can_not_be_learned(service, rows)
    kept = service.intake.add(rows, leaving=service.live.served.asked.people)
    shown = kept if may_know(caller) else len(rows)
    return TakenIn(accepted=shown, left_out=len(coming.interactions) - shown)


def _waiting(dataset: Dataset, coming: list[NewInteraction]) -> list[WaitingInteraction]:
    """Return the rows to learn, with a rating or in its place a weight; those whose event counts 0 are left out."""
    scale, weights = dataset.scale, dataset.config.weights
    happened = scale.high if scale.low == scale.high else None  # without ratings, a row only says that it happened
    rows = []
    for place, one in enumerate(coming):
        unlike = ("rating",) if weights else ("weight", "event")
        wrong = next((name for name in unlike if getattr(one, name) is not None), None)
        if wrong is not None:
            what = "with weights" if weights else "without weights"
            raise DataRefused(f"interactions.{place}.{wrong}: this was learned {what}: leave it out")
        rating = happened if one.rating is None else one.rating
        if weights is not None:
            try:
                rating = weights.of(one.weight, one.event)
            except DataRefused as refused:
                raise DataRefused(f"interactions.{place}.event: {refused}") from None
        if weights is None or rating:
            rows.append(WaitingInteraction(one.user_id, one.item_id, rating, one.time))
    return rows


def _refuse_what_can_not_be_learned(service: Service, rows: list[WaitingInteraction]) -> None:
    """Refuse now what learning would refuse later, together with everything that came in since."""
    dataset = service.live.dataset
    refuse_after_filter(dataset)
    items = dataset.items if dataset.catalogue and dataset.catalogue.declared else None
    for place, row in enumerate(rows):
        if items is not None and row.item not in items:
            raise DataRefused(
                f"interactions.{place}.item_id: is not in the catalogue, which was declared: leave it out"
            )
        if row.time is None and dataset.config.splitting.needs_time:
            raise DataRefused(f"interactions.{place}.time: what is held out is decided by time here: give one")
        if row.time is None and dataset.config.learner.uses_time:
            raise DataRefused(
                f"interactions.{place}.time: {dataset.config.model} learns from the order in time: give one"
            )
        if row.rating is None:
            raise DataRefused(f"interactions.{place}.rating: ratings go from {dataset.scale} here: give one")
    weights = dataset.config.weights
    columns = ANY_COLUMNS if weights is None else WEIGHT_TAKEN_IN
    read_interactions(as_table(rows), columns, dataset.scale, fewest_users=1, weights=weights)


sync_router = APIRouter(prefix="/v1/sync", tags=["learning"], responses=RESPONSES, route_class=StrictRoute)


@sync_router.post("", status_code=202)
def ask_for_a_sync(
    request: HttpRequest, caller: Annotated[Caller, Depends(OFFICE)], wanted: SyncWanted = NOTHING_CONFIRMED
) -> SyncInfo:
    """Have the workspace made equal to the export now; `GET /v1/status` says what came of it.

    If a sync was refused, `yes` and `expect_rows` confirm what the export lacks.
    """
    service = service_of(request)
    facts = {"yes": wanted.yes, "expect_rows": wanted.expect_rows}
    state = ask_for_sync(service.queue, service.settings, caller.actor, service.clock(), facts)
    log("sync asked", actor=caller.actor)
    return SyncInfo(**vars(state))


ROUTERS = (erasure_requests_router, interactions_router, sync_router, plan_router)
