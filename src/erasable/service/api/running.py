"""Routes about the service itself: status, health, readiness, metrics, documentation."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST

from erasable.errors import DiskFull, SuppressionUnknown, WorkspaceError
from erasable.operations import InMemory, status
from erasable.requests.lease import is_at_work
from erasable.requests.progress import read_progress
from erasable.requests.request import DISK_FULL
from erasable.requests.tokens import Caller
from erasable.service.access import ANYONE, OFFICE
from erasable.service.api.schemas import Health, Readiness, ServiceStatus, in_v1
from erasable.service.problems import RESPONSES, in_answer
from erasable.service.shop import Shop, shop_of

router = APIRouter(tags=["the service"], responses=RESPONSES)


@router.get("/v1/status")
def show_status(request: Request, caller: Annotated[Caller, Depends(OFFICE)]) -> ServiceStatus:
    """Show what is served, and how many requests are in which state."""
    shop = shop_of(request)
    people = shop.suppressed()
    found, progress = shop.history.totals(shop.clock()), read_progress(shop.database)
    return ServiceStatus(
        # Where the do-not-learn list and its key lie is for whoever has the machine; a queue at fault answers nobody.
        workspace={
            name: value
            for name, value in status(shop.home, InMemory(*shop.live.current, people)).items()
            if name not in ("do_not_learn", "queue_fault")
        },
        requests={in_v1(state): count for state, count in found.states.items()},
        open=found.urgent["open"],
        suppressed_people=len(people),
        due_soon=found.urgent["soon"],
        overdue=found.urgent["overdue"],
        late=found.urgent["late"],
        over_limit=found.urgent["over limit"],
        failed=found.urgent["failed"],
        served_version=shop.live.version,
        interactions_waiting=shop.intake.count(),
        worker=is_at_work(shop.database, shop.settings.lease_seconds),
        doing=None if progress is None else progress.step,
        progress=None if progress is None else progress.share,
        problem=shop.problem(),
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
    problem = shop.problem() or _unwritable(shop)
    ledger, serving = problem is None, shop.live.is_serving
    worker = ledger and is_at_work(shop.database, shop.settings.lease_seconds)
    if not serving:
        problem = in_answer(shop.live.fault)  # no request can be taken in then, either
    if not worker:
        problem = problem or "no worker is at work: wait a moment, then look at the log of the service"
    status: Literal["ready", "not ready"] = "ready" if problem is None else "not ready"
    return Readiness(status=status, ledger=ledger, worker=worker, serving=serving, problem=problem)


def _unwritable(shop: Shop) -> str | None:
    """Say why no request can be taken in; None if one can be."""
    try:
        shop.queue.try_to_write()
    except DiskFull:
        return DISK_FULL
    except SuppressionUnknown as error:
        return in_answer(error)
    except (WorkspaceError, OSError):
        return "no request can be taken in: look at the log of the service"
    return None
