"""HTTP: one shape for errors, limits on bodies, strict JSON, and who may use which route."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from fastapi import FastAPI, Path, Response
from fastapi import Request as HttpRequest
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from erasable.errors import (
    DiskFull,
    ErasableError,
    NotAllowed,
    NoToken,
    Suppressed,
    UnknownInteraction,
    UnknownUser,
    WorkspaceBusy,
    WorkspaceError,
    http_status,
)
from erasable.requests.request import DISK_FULL
from erasable.requests.tokens import Caller, Role
from erasable.service.settings import REMEDIES, log_failure
from erasable.wording import listed

if TYPE_CHECKING:
    from erasable.service._service import Service

MEDIA_TYPE = "application/problem+json"
RequestId = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="The id of a request.")]
_TITLES: dict[type, str] = {Suppressed: "Suppressed"}
"""The title of a problem, where the phrase of its status says too little."""
_HEADERS: dict[type, dict[str, str]] = {
    NoToken: {"WWW-Authenticate": "Bearer"},
    WorkspaceBusy: {"Retry-After": "10"},
}
_INSTEAD: dict[type, str] = {
    Suppressed: "this user has asked to be erased and is not served: the request is among the erasure requests",
    UnknownUser: "nothing is held about this user: check the id, exactly as in the data",
    UnknownInteraction: "the user has no such interaction: check the item",
    WorkspaceBusy: "the workspace is being changed just now: try again soon",
    **REMEDIES,
    DiskFull: f"{DISK_FULL} and try again",
    WorkspaceError: "the workspace can't be used: look at the service's output (standard error)",
}
"""What is said instead of an error's own message, which may name people or paths of this machine."""


def service_of(request: HttpRequest) -> "Service":
    """Return the service behind an HTTP request."""
    service: Service = request.app.state.service
    return service


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
"""The problems that any route may answer with, for OpenAPI."""


def answer_problems(app: FastAPI) -> None:
    """Answer every error of an application in one shape."""
    app.add_exception_handler(ErasableError, _of_ours)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_routing)
    app.add_exception_handler(Exception, _of_anything)


async def _of_ours(request: HttpRequest, error: Exception) -> JSONResponse:
    status = http_status(error) if isinstance(error, ErasableError) else 500
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log_failure("request failed", error)
    headers = next((_HEADERS[kind] for kind in type(error).__mro__ if kind in _HEADERS), None)
    return problem(status, in_answer(error), headers=headers, title=_TITLES.get(type(error)))


def in_answer(error: Exception) -> str:
    """Return an error's message, or a replacement where it may name people or paths of this machine."""
    return next(
        (_INSTEAD[kind] for kind in type(error).__mro__ if kind in _INSTEAD),
        error.of_command if isinstance(error, ErasableError) else str(error),
    )


async def _of_validation(request: HttpRequest, error: Exception) -> JSONResponse:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    faults = [Fault(place=_place(one["loc"]), message=one["msg"].removeprefix("Value error, ")) for one in found]
    as_json = request.headers.get("content-type", "application/json").startswith("application/json")
    detail = "correct what is named" if as_json else "send Content-Type: application/json"
    return problem(422, f"the request does not fit: {detail}", faults)


def _place(parts: Sequence[int | str]) -> str:
    """Return the place of a fault; where a list or an object is taken, pydantic names the kind it tried as well."""
    return ".".join(str(part) for part in parts if not str(part).startswith(("list[", "dict[")))


async def _of_routing(request: HttpRequest, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = {"Allow": ", ".join(_allowed(request))} if status == HTTPStatus.METHOD_NOT_ALLOWED else None
    details = {404: "there is no such address: /docs lists them", 405: "this address takes another method: see /docs"}
    return problem(status, details.get(status, "the request can't be read: correct it"), headers=headers)


def _allowed(request: HttpRequest) -> list[str]:
    """Return every method that an address takes; a route knows only its own."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    found = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in found for method in route.methods or ()})


async def _of_anything(request: HttpRequest, error: Exception) -> JSONResponse:
    log_failure("request failed", error)
    return problem(500, "internal error: look at the service's output (standard error)")


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, detail: str) -> None:
        self.status = status
        self.detail = detail


class BodyLimits:
    """Reads the whole body before anything else happens, so that a slow or large one is refused here."""

    def __init__(self, app: ASGIApp, largest: int, slowest: float) -> None:
        self._app = app
        self._largest = largest
        self._slowest = slowest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with its body in one piece."""
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        try:
            body = await asyncio.wait_for(self._read(scope, receive), self._slowest)
        except TimeoutError:
            await self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time", scope, receive, send)
        except _Refused as refused:
            await self._refuse(refused.status, refused.detail, scope, receive, send)
        else:
            await self._app(scope, _replayed(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > self._largest:
            raise self._too_large()
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Refused(HTTPStatus.BAD_REQUEST, "the body is incomplete")
            part = message.get("body", b"")
            size += len(part)
            if size > self._largest:
                raise self._too_large()
            parts.append(part)
            more = message.get("more_body", False)
        return b"".join(parts)

    def _too_large(self) -> _Refused:
        return _Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {self._largest} bytes: send less at a time"
        )

    async def _refuse(self, status: HTTPStatus, detail: str, scope: Scope, receive: Receive, send: Send) -> None:
        await problem(status, detail, headers={"Connection": "close"})(scope, receive, send)


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first gives a body already read."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class StrictRoute(APIRoute):
    """A route that refuses unknown query parameters, and ambiguous JSON: repeated names, NaN and infinity."""

    def get_route_handler(self) -> Callable[[HttpRequest], Coroutine[Any, Any, Response]]:
        """Return the handler."""
        answer, known = super().get_route_handler(), query_parameters(self)

        async def answer_strictly(request: HttpRequest) -> Response:
            refuse_unknown_parameters(request, known)
            return await answer(_StrictRequest(request.scope, request.receive))

        return answer_strictly


def query_parameters(route: APIRoute) -> tuple[str, ...]:
    """Return the names of the query parameters that a route takes."""
    return tuple(field.alias for field in route.dependant.query_params)


def refuse_unknown_parameters(request: HttpRequest, known: Sequence[str], advice: str = "leave it out") -> None:
    """Refuse query parameters that a route does not take: whoever sends one expects that it counts."""
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        message = f"this address takes {listed(known) if known else 'no query parameters'}: {advice}"
        raise RequestValidationError([{"loc": ("query", name), "msg": message} for name in unknown])


class _StrictRequest(HttpRequest):
    async def json(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        return json.loads(await self.body(), object_pairs_hook=_named_once, parse_constant=_refuse_constant)


def _named_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        raise ValueError("a name comes twice")
    return named


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError("not a JSON number")


VISIT_COOKIE = "erasable_visit"
_SCHEME = "bearer "
_NOBODY = "say who you are: send Authorization: Bearer TOKEN (erasable token create makes one)"
_UNKNOWN = "the token is not known, or was revoked: take another (erasable token create makes one)"


class AccessRule:
    """A dependency of a route that admits callers of some roles, or anyone."""

    def __init__(self, *roles: Role, pages: bool = False) -> None:
        self.roles = frozenset(roles)
        self.pages = pages

    async def __call__(self, request: HttpRequest) -> Caller | None:
        """Return who asks, or refuse."""
        caller = caller_of(request, self.pages)
        request.state.caller = caller
        if not self.roles:
            return caller
        if caller is None:
            given = request.headers.get("authorization") and not self.pages
            raise NoToken(_UNKNOWN if given else _NOBODY)
        if caller.role not in self.roles:
            allowed = " or ".join(sorted(self.roles))
            raise NotAllowed(f"the role {caller.role} may not do this: take a token with the role {allowed}")
        return caller


MAY_KNOW: frozenset[Role] = frozenset({"officer", "operator"})
"""The roles that may learn who has asked to be erased; others get the same answer as about an unknown user."""
ANYONE = AccessRule()
RECOMMENDING = AccessRule("application", "operator")
SUBMITTING = AccessRule("application", "officer", "operator")
OFFICE = AccessRule("officer", "operator")
OPERATING = AccessRule("operator")
ANY_ROLE = AccessRule("application", "officer", "operator")
PAGES = AccessRule("officer", "operator", pages=True)
"""Pages accept only the cookie of a visit, which a request from another site's page does not carry."""
OPEN_PAGES = AccessRule(pages=True)


def may_know(caller: Caller | None) -> bool:
    """Whether a caller may learn who has asked to be erased."""
    return caller is not None and caller.role in MAY_KNOW


def caller_of(request: HttpRequest, pages: bool) -> Caller | None:
    """Return who asks, by the token in the header, or on pages by the cookie of the visit."""
    tokens = service_of(request).tokens
    if pages:
        secret = request.cookies.get(VISIT_COOKIE)
        return tokens.visitor(secret) if secret else None
    header = request.headers.get("authorization", "")
    return tokens.caller(header[len(_SCHEME) :].strip()) if header[: len(_SCHEME)].lower() == _SCHEME else None


def rule_of(route: BaseRoute) -> AccessRule | None:
    """Return the rule of a route, if it has one."""
    if not isinstance(route, APIRoute):
        return None
    rules = [one.call for one in route.dependant.dependencies if isinstance(one.call, AccessRule)]
    return rules[0] if len(rules) == 1 else None


def routes_of(app: FastAPI) -> Iterator[BaseRoute]:
    """Yield every route of an application."""
    for route in app.routes:
        yield from route.routes if isinstance(route, Mount) else (route,)


def refuse_routes_without_rule(app: FastAPI) -> None:
    """Refuse an application with a route whose access rule was forgotten."""
    for route in routes_of(app):
        if rule_of(route) is None:
            raise ValueError(f"the route {getattr(route, 'path', route)} has no rule: give it one of service/_http.py")
