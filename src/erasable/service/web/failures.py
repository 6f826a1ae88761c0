"""Errors on pages: the words and the status of the API's problems, as a page; who is not signed in signs in first."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import cast
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse

from erasable.errors import NoToken
from erasable.service.problems import Problem
from erasable.service.web.headers import is_page
from erasable.service.web.pages import page

_Handler = Callable[[Request, Exception], Awaitable[Response]]


def answer_problems_as_pages(app: FastAPI) -> None:
    """Have every error of a page shown as a page; the API's stay as they are."""
    for kind, handler in list(app.exception_handlers.items()):
        app.exception_handlers[kind] = _as_page(cast(_Handler, handler))


def _as_page(handler: _Handler) -> _Handler:
    async def answer(request: Request, error: Exception) -> Response:
        if not _is_looked_at(request):
            return await handler(request, error)
        if isinstance(error, NoToken):
            return RedirectResponse(f"/login?next={quote(_page_to_return_to(request))}", HTTPStatus.SEE_OTHER)
        told = await handler(request, error)
        problem = Problem.model_validate_json(bytes(told.body))
        return page(request, "problem.html", {"problem": problem}, told.status_code)

    return answer


def _is_looked_at(request: Request) -> bool:
    """Whether someone looks at it with a browser: at a page of ours, or at an address that there is not."""
    if request.scope.get("route") is not None:
        return is_page(request.scope)
    return "text/html" in request.headers.get("accept", "")


def _page_to_return_to(request: Request) -> str:
    """Return the page that was asked for, or the first one if a form was sent."""
    query = f"?{request.url.query}" if request.url.query else ""
    return f"{request.url.path}{query}" if request.method == "GET" else "/"
