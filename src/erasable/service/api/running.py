"""Routes about the service itself: status, health, readiness, metrics, documentation."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST

from erasable.operations import status
from erasable.service.access import ANYONE, OFFICE
from erasable.service.api.schemas import Health, Readiness, ServiceStatus
from erasable.service.lease import holder_of
from erasable.service.overview import overview
from erasable.service.problems import RESPONSES
from erasable.service.progress import read_progress
from erasable.service.shop import Shop, shop_of
from erasable.service.tokens import Caller

router = APIRouter(tags=["the service"], responses=RESPONSES)


@router.get("/v1/status")
def show_status(request: Request, caller: Annotated[Caller, Depends(OFFICE)]) -> ServiceStatus:
    """Show what is served, and how many requests are in which state."""
    shop = shop_of(request)
    found, progress = overview(shop), read_progress(shop.ledger)
    return ServiceStatus(
        # Where the do-not-learn list and its key lie is for whoever has the machine.
        workspace={name: value for name, value in status(shop.home).items() if name != "do_not_learn"},
        requests=dict(found.counts),
        open=len(found.open),
        suppressed_people=len(shop.requests.suppressed_people()),
        due_soon=len(found.due_soon),
        overdue=len(found.overdue),
        late=len(found.late),
        over_limit=len(found.over_limit),
        failed=len(found.failed),
        served_version=shop.live.version,
        interactions_waiting=shop.intake.count(),
        worker=holder_of(shop.ledger) is not None,
        doing=None if progress is None else progress.step,
    )


@router.get("/healthz")
async def health(caller: Annotated[Caller | None, Depends(ANYONE)]) -> Health:
    """Say that the service runs."""
    return Health(status="ok")


@router.get("/readyz", responses={503: {"model": Readiness}})
def readiness(request: Request, caller: Annotated[Caller | None, Depends(ANYONE)]) -> JSONResponse:
    """Say whether the service can do all of its work."""
    found = _readiness(shop_of(request))
    return JSONResponse(found.model_dump(), 200 if found.status == "ready" else 503)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def metrics(request: Request, caller: Annotated[Caller, Depends(OFFICE)]) -> Response:
    """Return figures for Prometheus; they count who asked, so that they are not for applications."""
    return Response(request.app.state.metrics.text(shop_of(request)), media_type=CONTENT_TYPE_LATEST)


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request, caller: Annotated[Caller | None, Depends(ANYONE)]) -> dict[str, Any]:
    """Return the description of the API for programs."""
    schema: dict[str, Any] = request.app.openapi()
    return schema


def _readiness(shop: Shop) -> Readiness:
    ledger = shop.ledger.is_writable()
    worker = ledger and holder_of(shop.ledger) is not None
    ready = ledger and worker
    return Readiness(status="ready" if ready else "not ready", ledger=ledger, worker=worker)
