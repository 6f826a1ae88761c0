"""Routes of erasure requests: submit, look, withdraw, hold, release, extend, retry, certificate."""

import json
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from erasable.operations import certificate_file
from erasable.operations.meanwhile import can_serve_without
from erasable.requests import Request as Asked
from erasable.requests.answers import AnsweredBefore
from erasable.requests.lifecycle import STATES
from erasable.requests.request import Submission as TakenIn
from erasable.requests.tokens import Caller
from erasable.service.access import OFFICE, SUBMITTING, may_know
from erasable.service.api.schemas import (
    ErasureRequest,
    ErasureRequestDetail,
    Explanation,
    Remark,
    RequestList,
    Submission,
    Submitted,
    V1State,
    from_v1,
)
from erasable.service.api.strict_json import StrictRoute
from erasable.service.problems import RESPONSES
from erasable.service.shop import Shop, shop_of

router = APIRouter(
    prefix="/v1/erasure-requests", tags=["erasure requests"], responses=RESPONSES, route_class=StrictRoute
)
RequestId = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="The id of a request.")]
NOTHING_SAID = Remark()
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=255, description="Random text; repeats are answered alike."
    ),
]


@router.post("", status_code=201, response_model=Submitted)
async def submit(
    request: Request, asked: Submission, caller: Annotated[Caller, Depends(SUBMITTING)], key: Key = None
) -> Response:
    """Ask for a person, or some of their interactions, to be erased.

    When this answers, the person is not served any more, or not with these items: `meanwhile` says which. A second
    request for the same person joins the first.
    An application gets the same answer whether or not anything is held, and whether or not the person has asked before.
    """
    body, shop = await request.body(), shop_of(request)
    answer = await run_in_threadpool(
        _answered_once, shop, caller, f"{caller.token} {key}" if key else None, asked, body
    )
    headers = {"Location": f"{router.prefix}/{json.loads(answer)['id']}"}
    return Response(answer, 201, headers, "application/json")


@router.get("")
def list_requests(
    request: Request,
    caller: Annotated[Caller, Depends(OFFICE)],
    state: Annotated[list[V1State] | None, Query(description="Only those in one of these states.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at most.")] = 100,
    before: Annotated[int | None, Query(ge=1, le=2**53, description="As `next` of the list before.")] = None,
) -> RequestList:
    """List requests, newest first."""
    shop = shop_of(request)
    found = shop.history.ids([*map(from_v1, state)] if state else STATES, limit + 1, before)
    shown = shop.history.some([request_id for _, request_id in found[:limit]])[::-1]
    return RequestList(
        requests=[ErasureRequest.of(filed, shop.settings, shop.clock()) for filed in shown],
        next=found[limit - 1][0] if len(found) > limit else None,
    )


@router.get("/{request_id}")
def show_request(
    request: Request, request_id: RequestId, caller: Annotated[Caller, Depends(OFFICE)]
) -> ErasureRequestDetail:
    """Show a request and everything that happened to it."""
    return _detail(shop_of(request), request_id)


@router.post("/{request_id}/withdraw")
def withdraw(
    request: Request, request_id: RequestId, caller: Annotated[Caller, Depends(OFFICE)], why: Remark = NOTHING_SAID
) -> ErasureRequestDetail:
    """Take a request back, until erasing begins; the person is served again. Who asked and why is not kept."""
    shop_of(request).reception.withdraw(request_id, caller.actor, why.reason)
    return _detail(shop_of(request), request_id)


@router.post("/{request_id}/hold")
def hold(
    request: Request, request_id: RequestId, caller: Annotated[Caller, Depends(OFFICE)], why: Remark = NOTHING_SAID
) -> ErasureRequestDetail:
    """Put a request on hold: it is not carried out, and the person stays suppressed."""
    shop = shop_of(request)
    shop.reception.hold(request_id, caller.actor, why.reason)
    return _detail(shop, request_id)


@router.post("/{request_id}/release")
def release(
    request: Request, request_id: RequestId, caller: Annotated[Caller, Depends(OFFICE)]
) -> ErasureRequestDetail:
    """Go on with a request that is on hold."""
    shop = shop_of(request)
    shop.decisions.release(request_id, caller.actor, shop.clock())
    return _detail(shop, request_id)


@router.post("/{request_id}/extend")
def extend(
    request: Request, request_id: RequestId, why: Explanation, caller: Annotated[Caller, Depends(OFFICE)]
) -> ErasureRequestDetail:
    """Extend the legal month by two, once; the reason has to be told to the person within the first (Art. 12(3))."""
    shop = shop_of(request)
    shop.reception.extend(request_id, caller.actor, why.reason)
    return _detail(shop, request_id)


@router.post("/{request_id}/retry")
def retry(request: Request, request_id: RequestId, caller: Annotated[Caller, Depends(OFFICE)]) -> ErasureRequestDetail:
    """Have a failed request tried again now."""
    shop = shop_of(request)
    shop.decisions.retry(request_id, caller.actor, shop.clock())
    return _detail(shop, request_id)


@router.get("/{request_id}/certificate", responses={200: {"content": {"application/json": {}}}})
def certificate(request: Request, request_id: RequestId, caller: Annotated[Caller, Depends(OFFICE)]) -> Response:
    """Return the signed certificate, byte for byte as it was issued."""
    return Response(certificate_file(shop_of(request).home, f"{request_id}.json"), media_type="application/json")


def _answered_once(shop: Shop, caller: Caller, key: str | None, asked: Submission, body: bytes) -> bytes:
    """Answer a submission; under a key that came before, as before."""
    items = None if asked.item_ids is None else tuple(asked.item_ids)
    request, unaware = Asked(asked.user_id, items), not may_know(caller)

    def answered(taken: TakenIn) -> bytes:
        answer = _submitted(shop, caller, asked, taken)
        if key is not None:
            shop.answers.keep(key, body, answer)
        return answer

    if key is None:
        return shop.reception.submit_and(request, caller.actor, answered, asked.reference, unaware)
    with shop.answers.under(key):
        earlier = shop.answers.earlier(key, body)
        if earlier is not None:
            return earlier
        try:
            return shop.reception.submit_and(request, caller.actor, answered, asked.reference, unaware)
        except AnsweredBefore as another:
            return another.answer


def _submitted(shop: Shop, caller: Caller, asked: Submission, taken: TakenIn) -> bytes:
    now = shop.clock()
    if not may_know(caller):
        without = can_serve_without(shop.live.knowledge)
        return Submitted.unaware(taken, asked, shop.settings, now, without).model_dump_json().encode()
    filed = shop.history.get(taken.request_id)
    fields = ErasureRequest.fields_of(filed, shop.settings, now)
    told = {
        "joined": taken.joined,
        "receipt_code": taken.receipt_code,
        "meanwhile": shop.meanwhile(filed, asked.user_id),
    }
    return Submitted(**fields, **told).model_dump_json().encode()


def _detail(shop: Shop, request_id: str) -> ErasureRequestDetail:
    filed = shop.history.get(request_id)
    return ErasureRequestDetail.in_full(filed, shop.settings, shop.clock(), shop.meanwhile(filed), shop.places(filed))
