"""Figures for Prometheus; no label names a person."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from erasable.requests.history import Urgency
from erasable.requests.lease import is_at_work
from erasable.service.api.schemas import V1_STATES, in_v1
from erasable.service.shop import Shop

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
        self._waiting = Gauge("erasable_interactions_waiting", "Interactions to be learned.", registry=self.registry)

    def answered(self, scope: Scope, status: int, seconds: float) -> None:
        """Count an answer, under the pattern of its route: what stands in an address may name a person."""
        route = getattr(scope.get("route"), "path", "none")
        self._answers.labels(route, scope["method"] if route != "none" else "none", str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self, shop: Shop) -> bytes:
        """Return all figures in Prometheus' text format."""
        found = shop.history.totals(shop.clock())
        counts = {in_v1(state): count for state, count in found.states.items()}
        for state in V1_STATES:
            self._requests.labels(state).set(counts.get(state, 0))
        for kind in _LATE:
            self._late.labels(kind).set(found.urgent[kind])
        self._over_limit.set(found.urgent["over limit"])
        self._suppressed.set(len(shop.suppressed()))
        self._version.set(shop.live.version)
        self._worker.set(is_at_work(shop.database, shop.settings.lease_seconds))
        self._waiting.set(shop.intake.count())
        return generate_latest(self.registry)


class Measured:
    """Tells the metrics about every answer."""

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
