"""Errors as answers: one shape for all (RFC 9457), without what came in, which may name people."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from erasable.errors import (
    DiskFull,
    ErasableError,
    Suppressed,
    UnknownInteraction,
    UnknownUser,
    WorkspaceBusy,
    WorkspaceError,
    http_status,
)
from erasable.requests.request import DISK_FULL
from erasable.service.logs import REMEDIES, log_failure

MEDIA_TYPE = "application/problem+json"
_TITLES: dict[type, str] = {Suppressed: "Suppressed"}
"""What kind of problem it is, where the status does not say it."""
_INSTEAD: dict[type, str] = {
    Suppressed: "this user has asked to be erased and is not served: the request is among the erasure requests",
    UnknownUser: "nothing is held about this user: check the id, exactly as in the data",
    UnknownInteraction: "the user has no such interaction: check the item",
    WorkspaceBusy: "the workspace is being changed just now: try again soon",
    **REMEDIES,
    DiskFull: f"{DISK_FULL} and try again",
    WorkspaceError: "the workspace can't be used: look at the log of the service",
}


class Fault(BaseModel):
    """What is wrong with one part of a request."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    place: str
    """Where, such as body.user_id."""
    message: str


class Problem(BaseModel):
    """Why a request was not answered as asked."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    status: int
    title: str
    """What kind of problem it is."""
    detail: str
    """What is wrong, and what to do."""
    faults: list[Fault] = []


def problem(
    status: int,
    detail: str,
    faults: Sequence[Fault] = (),
    headers: dict[str, str] | None = None,
    title: str | None = None,
) -> JSONResponse:
    """Return an answer that says what is wrong; its title is that of the status, unless another is given."""
    content = Problem(status=status, title=title or HTTPStatus(status).phrase, detail=detail, faults=list(faults))
    return JSONResponse(content.model_dump(), status, headers, MEDIA_TYPE)


RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {}}}
    for status in (400, 401, 403, 404, 405, 408, 409, 413, 422, 500, 503, 507)
}
"""The problems that any route may answer with, as OpenAPI has them."""


def answer_problems(app: FastAPI) -> None:
    """Have every error of an application answered in the one shape."""
    app.add_exception_handler(ErasableError, _of_ours)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_routing)
    app.add_exception_handler(Exception, _of_anything)


async def _of_ours(request: Request, error: Exception) -> JSONResponse:
    status = http_status(error) if isinstance(error, ErasableError) else 500
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log_failure("request failed", error)
    headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else None
    return problem(status, in_answer(error), headers=headers, title=_TITLES.get(type(error)))


def in_answer(error: Exception) -> str:
    """Return what an error says, unless that may name people or places of this machine."""
    return next(
        (_INSTEAD[kind] for kind in type(error).__mro__ if kind in _INSTEAD),
        error.of_command if isinstance(error, ErasableError) else str(error),
    )


async def _of_validation(request: Request, error: Exception) -> JSONResponse:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    faults = [Fault(place=".".join(map(str, one["loc"])), message=one["msg"]) for one in found]
    as_json = request.headers.get("content-type", "application/json").startswith("application/json")
    detail = "correct what is named" if as_json else "send Content-Type: application/json"
    return problem(422, f"the request does not fit: {detail}", faults)


async def _of_routing(request: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = {"Allow": ", ".join(_allowed(request))} if status == HTTPStatus.METHOD_NOT_ALLOWED else None
    details = {404: "there is no such address: /docs lists them", 405: "this address takes another method: see /docs"}
    return problem(status, details.get(status, "the request can't be read: correct it"), headers=headers)


def _allowed(request: Request) -> list[str]:
    """Return every method that an address takes; a route knows only its own."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    found = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in found for method in route.methods or ()})


async def _of_anything(request: Request, error: Exception) -> JSONResponse:
    log_failure("request failed", error)
    return problem(500, "something went wrong here: look at the log of the service")
