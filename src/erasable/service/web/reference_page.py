"""The page that documents the API, made from its own description."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from erasable.requests.tokens import Caller
from erasable.service.access import OPEN_PAGES
from erasable.service.problems import RESPONSES
from erasable.service.web.api_reference import documented_routes
from erasable.service.web.pages import page

router = APIRouter(include_in_schema=False)


@router.get("/docs")
def show_reference(request: Request, caller: Annotated[Caller | None, Depends(OPEN_PAGES)]) -> Response:
    """Show every route of the API."""
    facts = {"subjects": documented_routes(request.app), "problems": _problems(), "api_version": request.app.version}
    return page(request, "reference.html", facts)


def _problems() -> dict[int | str, str]:
    """Return the statuses that any route may answer a problem with, and what they are called."""
    return {status: described["description"] for status, described in RESPONSES.items()}
