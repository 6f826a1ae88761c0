"""Routes about the service itself: status, health, readiness, metrics, OpenAPI; and the figures of the overview."""

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Response
from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from erasable.errors import DiskFull, SuppressionUnknown, WorkspaceError
from erasable.operations.inspect import LoadedVersion, status
from erasable.requests.history import Urgency
from erasable.requests.lease import is_at_work, read_progress
from erasable.requests.request import DISK_FULL
from erasable.requests.tokens import Caller
from erasable.service._http import ANYONE, OFFICE, RESPONSES, StrictRoute, in_answer, service_of
from erasable.service._service import Service
from erasable.service._syncing import last_sync, sync_state
from erasable.service.api._schemas import V1_STATES, Health, Readiness, ServiceStatus, SyncInfo, in_v1

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
_LATE: tuple[Urgency, ...] = ("late", "overdue", "alarming", "stuck")


class Metrics:
    """Counts answers, and tells how many requests are in which state."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._answers = Counter(
            "erasable_answers",
            "Answers by route, method and status.",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "erasable_answer_seconds", "How long answers take.", ["route"], buckets=_SECONDS, registry=self.registry
        )
        self._requests = Gauge("erasable_requests", "Erasure requests by state.", ["state"], registry=self.registry)
        self._late = Gauge("erasable_requests_late", "Open requests by lateness.", ["kind"], registry=self.registry)
        self._over_limit = Gauge(
            "erasable_requests_over_limit", "Requests on hold beyond the limit of a token.", registry=self.registry
        )
        self._suppressed = Gauge("erasable_people_suppressed", "People who are not served.", registry=self.registry)
        self._version = Gauge("erasable_model_version", "The version that is served.", registry=self.registry)
        self._worker = Gauge("erasable_worker", "Whether a worker is at work.", registry=self.registry)
        self._sync_time = Gauge(
            "erasable_sync_time", "When the last sync ended that was done, in Unix time.", registry=self.registry
        )
        self._sync_undone = Gauge(
            "erasable_sync_undone", "Whether the last sync was refused or failed.", registry=self.registry
        )
        self._waiting = Gauge("erasable_interactions_waiting", "Interactions to be learned.", registry=self.registry)

    def answered(self, scope: Scope, status: int, seconds: float) -> None:
        """Count an answer under the pattern of its route: the address itself may name a person."""
        route = getattr(scope.get("route"), "path", "none")
        self._answers.labels(route, scope["method"] if route != "none" else "none", str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self, service: Service) -> bytes:
        """Return all figures in Prometheus' text format."""
        found = service.history.totals(service.clock())
        counts = {in_v1(state): count for state, count in found.states.items()}
        for state in V1_STATES:
            self._requests.labels(state).set(counts.get(state, 0))
        for kind in _LATE:
            self._late.labels(kind).set(found.urgent[kind])
        self._over_limit.set(found.urgent["over limit"])
        self._suppressed.set(len(service.suppressed()))
        self._version.set(service.live.version)
        self._worker.set(is_at_work(service.database, service.settings.lease_seconds))
        self._waiting.set(service.intake.count())
        sync, done = sync_state(service.history, service.settings, service.clock()), last_sync(service.history)
        self._sync_time.set(0 if done is None else done.timestamp())
        self._sync_undone.set(sync is not None and sync.outcome in ("refused", "failed"))
        return generate_latest(self.registry)


class MetricsMiddleware:
    """Counts every answer in the metrics."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and count the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def noticing(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noticing)
        finally:
            self._metrics.answered(scope, status, time.perf_counter() - began)


router = APIRouter(tags=["the service"], responses=RESPONSES)


def show_status(request: HttpRequest, caller: Annotated[Caller, Depends(OFFICE)]) -> ServiceStatus:
    """Show what is served, and how many requests are in which state."""
    service = service_of(request)
    people = service.suppressed()
    found, progress = service.history.totals(service.clock()), read_progress(service.database)
    sync = sync_state(service.history, service.settings, service.clock())
    return ServiceStatus(
        # The paths of the do-not-learn list are for whoever has the machine; with a faulty queue nobody gets an answer.
        workspace={
            name: value
            for name, value in status(service.storage, LoadedVersion(*service.live.current, people)).items()
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
        served_version=service.live.version,
        interactions_waiting=service.intake.count(),
        worker=is_at_work(service.database, service.settings.lease_seconds),
        doing=None if progress is None else progress.step,
        progress=None if progress is None else progress.share,
        sync=None if sync is None else SyncInfo(**vars(sync)),
        problem=service.problem(),
    )


router.add_api_route("/v1/status", show_status, methods=["GET"], route_class_override=StrictRoute)


@router.get("/healthz")
async def health(caller: Annotated[Caller | None, Depends(ANYONE)]) -> Health:
    """Say that the service runs."""
    return Health(status="ok")


@router.get("/readyz", responses={503: {"model": Readiness}})
def readiness(request: HttpRequest, caller: Annotated[Caller | None, Depends(ANYONE)]) -> JSONResponse:
    """Say whether the service can do all of its work."""
    found = _readiness(service_of(request))
    return JSONResponse(found.model_dump(), 200 if found.status == "ready" else 503)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def metrics(request: HttpRequest, caller: Annotated[Caller, Depends(OFFICE)]) -> Response:
    """Return figures for Prometheus; not for applications, since they count who has asked."""
    return Response(request.app.state.metrics.text(service_of(request)), media_type=CONTENT_TYPE_LATEST)


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: HttpRequest, caller: Annotated[Caller | None, Depends(ANYONE)]) -> dict[str, Any]:
    """Return the OpenAPI description."""
    schema: dict[str, Any] = request.app.openapi()
    return schema


def _readiness(service: Service) -> Readiness:
    problem = service.problem() or _unwritable(service)
    ledger, serving = problem is None, service.live.is_serving
    worker = ledger and is_at_work(service.database, service.settings.lease_seconds)
    if not serving:
        problem = in_answer(service.live.fault)  # no request can be taken in then, either
    if not worker:
        problem = problem or "no worker is at work: wait a moment, then look at the service's output (standard error)"
    status: Literal["ready", "not ready"] = "ready" if problem is None else "not ready"
    return Readiness(status=status, ledger=ledger, worker=worker, serving=serving, problem=problem)


def _unwritable(service: Service) -> str | None:
    """Return why no request can be taken in; None if one can be."""
    try:
        service.queue.try_to_write()
    except DiskFull:
        return DISK_FULL
    except SuppressionUnknown as error:
        return in_answer(error)
    except (WorkspaceError, OSError):
        return "no request can be taken in: look at the service's output (standard error)"
    return None
