"""The application: routes, rules, limits, and errors in one shape."""

from importlib.metadata import version

from fastapi import FastAPI

from erasable.service.access import refuse_routes_without_rule
from erasable.service.api import erasure_requests, interactions, planning, recommendations, running
from erasable.service.limits import BodyLimits
from erasable.service.metrics import Measured, Metrics
from erasable.service.problems import answer_problems
from erasable.service.shop import Shop
from erasable.service.web.site import add_pages

_ABOUT = "Recommendations from a model that can forget, and requests to be forgotten."


def make_application(shop: Shop) -> FastAPI:
    """Return the application that serves a shop."""
    app = FastAPI(
        title="erasable",
        version=version("erasable"),
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.shop = shop
    app.state.metrics = Metrics()
    for part in (erasure_requests, recommendations, interactions, planning, running):
        app.router.routes.extend(part.router.routes)
    answer_problems(app)
    add_pages(app)
    app.add_middleware(BodyLimits, largest=shop.settings.largest_body, slowest=shop.settings.slowest_body)
    app.add_middleware(Measured, metrics=app.state.metrics)
    refuse_routes_without_rule(app)
    return app
