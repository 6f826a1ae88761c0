"""The FastAPI application: API routes, pages, access rules, body limits, and one shape for errors."""

from importlib.metadata import version

from fastapi import FastAPI

from erasable.service._http import BodyLimits, answer_problems, refuse_routes_without_rule
from erasable.service._service import Service
from erasable.service.api import _routes as routes
from erasable.service.api import _status as status
from erasable.service.api._status import Metrics, MetricsMiddleware
from erasable.service.web import _overview as overview
from erasable.service.web import _pages as pages
from erasable.service.web import _receipt_page as receipt_page
from erasable.service.web import _reference as reference
from erasable.service.web import _request_list as request_list
from erasable.service.web import _request_page as request_page
from erasable.service.web._overview import LogWatch
from erasable.service.web._pages import PageHeaders, answer_problems_as_pages

_ABOUT = "Recommendations from a model that can forget, and requests to be forgotten."
_PAGES = (overview, request_list, request_page, receipt_page, reference, pages)


def add_pages(app: FastAPI) -> None:
    """Add the pages; `answer_problems` comes first."""
    app.state.log_watch = LogWatch(app.state.service.storage)
    for part in _PAGES:
        app.router.routes.extend(part.router.routes)
    answer_problems_as_pages(app)
    app.add_middleware(PageHeaders)


def make_application(service: Service) -> FastAPI:
    """Return the application of a service."""
    app = FastAPI(
        title="erasable",
        version=version("erasable"),
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.service = service
    app.state.metrics = Metrics()
    for router in (*routes.ROUTERS, status.router):
        app.router.routes.extend(router.routes)
    answer_problems(app)
    add_pages(app)
    app.add_middleware(BodyLimits, largest=service.settings.largest_body, slowest=service.settings.slowest_body)
    app.add_middleware(MetricsMiddleware, metrics=app.state.metrics)
    refuse_routes_without_rule(app)
    return app
