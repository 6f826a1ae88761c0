"""What all pages share: headers, protection of forms, templates, words for states and events, errors, signing in."""

import hmac
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, Any, cast
from urllib.parse import quote

from fastapi import APIRouter, Depends, FastAPI, Form, Response
from fastapi import Request as HttpRequest
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from erasable.errors import NotAllowed, NoToken
from erasable.proof.coarse import duration_in_words, share_in_words
from erasable.requests.request import Event, RequestState
from erasable.requests.tokens import Caller
from erasable.service._http import OPEN_PAGES, PAGES, VISIT_COOKIE, Problem, rule_of, service_of
from erasable.wording import (
    counted,
    day,
    duration,
    in_steps,
    listed,
    measure,
    moment,
    percentage,
    relative,
    sentence,
    weekday,
)

STATES_IN_WORDS: Mapping[RequestState, str] = {
    "received": "just received",
    "suppressed": "waits for its batch; the person is not used for recommendations any more",
    "erasing": "being erased",
    "certifying": "erased; the files are being searched and the erasure certified",
    "erased": "erased, searched and certified",
    "rejected": "rejected",
    "withdrawn": "taken back",
    "on hold": "on hold; the person is not used for recommendations meanwhile",
    "failed": "failed",
}
STATES_SERVED_WITHOUT: Mapping[RequestState, str] = {
    **STATES_IN_WORDS,
    "suppressed": "waits for its batch; the person is served without the items asked for",
    "on hold": "on hold; the person is served without the items asked for meanwhile",
}
"""The same for a request about some items, while the person is served from a row without them."""
STEPS_IN_WORDS = {
    "forgetting": "Training again without the person",
    "scanning": "Searching the files for what was erased",
    "certifying": "Issuing certificates",
    "evaluating": "Measuring how well it recommends",
    "replaying": "Training again from what is left, to compare every byte",
    "learning": "Learning what came in",
    "comparing": "Comparing the export with what is held",
    "saving": "Saving",
}
_SENTENCES = {
    "received": "Received: {scope}",
    "joined": "Asked for again; joined with this request: {scope}",
    "accepted": "Accepted: there is data to erase",
    "suppressed": "What was asked for is left out of recommendations",
    "erasing": "Erasing began, {batch}{again}",
    "certifying": "Data erased; who asked is forgotten here; searching what is left",
    "verifying": "Data erased; who asked is forgotten here; searching what is left",
    "erased": "Certified: {files} searched, nothing found",
    "rejected": "Rejected: {reason}",
    "withdrawn": "Taken back",
    "on hold": "Put on hold{because}",
    "failed": "Failed: {reason} ({retry})",
    "deadlines set": "Came in before deadlines were recorded; today's apply",
    "extended": "Extended by two months{because}",
    "resumed": "Resumed: the worker had ended before it was done",
    "retry asked": "Asked for another attempt",
    "revealed": "Looked at who asked",
    "named": "Named the person in a reason, which was refused",
    "token created": "Created the token {token} for the role {role}",
    "token revoked": "Revoked the token {token}",
    "token renamed": "Gave the token {token} another label",
    "verification asked": "Asked for a verification",
    "verification begun": "Verification began",
    "planned": "Planned {batch}{again}",
    "verification ended": "Verification ended: {reason}",
    "learning": "Began to learn what came in",
    "learned more": "Learned {interactions} more interactions, {users} new users{left_out}",
    "learning failed": "Learning what came in failed: {reason}",
    "upgraded": "Trained again on the updated machine: {adopted} checkpoints with equal bytes, {trained} with new ones",
    "sync asked": "Asked for a sync with the export",
    "sync begun": "The sync with the export began",
    "synced": "Made equal to the export: learned {users_added} new users, {interactions_added} new and "
    "{interactions_changed} changed interactions; forgot {users_forgotten} people and {interactions_forgotten} "
    "interactions of others{left_out}",
    "sync refused": "The sync with the export was refused: {reason}",
    "sync failed": "The sync with the export failed: {reason}",
    "server restarts": "A server restarted, because people were erased",
    "upgrade failed": "Training again on the updated machine failed: {reason}",
}


def event_in_words(event: Event) -> str:
    """Return an event as a sentence; an event that is unknown here keeps its own name."""
    sentence = _SENTENCES.get(event.name, event.name)
    given = {name: value for name, value in event.facts.items() if value is not None}
    return sentence.format_map(defaultdict(lambda: "not given", {**given, **_worded(event.facts)}))


def _worded(facts: Mapping[str, Any]) -> dict[str, str]:
    return {
        "batch": f"in a batch of {counted(facts.get('requests', 1), 'request')}",
        "again": _again(facts["stages_rerun"], facts["stages_total"]) if facts.get("stages_total") else "",
        "files": counted(facts.get("files_searched", 0), "file"),
        "retry": _retry(facts.get("retry_at")),
        "because": f": {facts['reason']}" if facts.get("reason") else "",
        "left_out": "; left out what is on the do-not-learn list" if facts.get("left_out") else "",
    }


def _again(rerun: int, total: int) -> str:
    if total == 1:
        return "; the model to be rebuilt" if rerun else "; the model stays as it is"
    return f"; {rerun} of {counted(total, 'stage')} to run again"


def _retry(retry_at: str | None) -> str:
    return f"tried again {moment(datetime.fromisoformat(retry_at))}" if retry_at else "waits for someone to look at it"


_SOURCES = "style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'"
_CLOSED = "base-uri 'none'; frame-ancestors 'none'"
HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; {_SOURCES}; {_CLOSED}",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_NOT_KEPT = (("Cache-Control", "no-store"),)
"""Answers of the API are not to be cached either."""
CERTIFICATE_POLICY = f"default-src 'none'; style-src 'unsafe-inline'; {_CLOSED}"
"""For certificates, which bring their own style and nothing else."""


class PageHeaders:
    """Adds the headers to every answer, also files and redirects; a route's own headers stay."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, with the headers."""

        async def adding(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items() if is_page(scope) else _NOT_KEPT:
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, adding if scope["type"] == "http" else send)


def is_page(scope: Scope) -> bool:
    """Whether the route is a page, or a file that belongs to one."""
    route = scope.get("route")
    rule = rule_of(route) if route is not None else None
    return rule is not None and rule.pages


_OWN = (None, "same-origin", "none")


def form_token(request: HttpRequest) -> str:
    """Return the token that the forms of this visit carry; empty without a visit."""
    secret = request.cookies.get(VISIT_COOKIE, "")
    return hmac.new(secret.encode("utf-8", "replace"), b"form", "sha256").hexdigest() if secret else ""


async def refuse_other_sites(request: HttpRequest) -> None:
    """Refuse a form that another site's page sent."""
    origin = request.headers.get("origin", "null")
    host = request.headers.get("host")
    foreign = origin not in ("null", f"http://{host}", f"https://{host}")
    if foreign or request.headers.get("sec-fetch-site") not in _OWN:
        raise NotAllowed("the form came from another site: open the page here and send it again")


async def refuse_foreign_forms(request: HttpRequest, token: Annotated[str, Form(alias="form_token")] = "") -> None:
    """Refuse a form without the token of this visit; a missing visit is refused elsewhere."""
    await refuse_other_sites(request)
    if not hmac.compare_digest(token.encode("utf-8", "replace"), form_token(request).encode()):
        raise NotAllowed("the form is from another session: open the page again and send it again")


_TEMPLATES = Environment(
    loader=PackageLoader("erasable.service.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {
    "counted": counted,
    "day": day,
    "duration": duration,
    "duration_in_words": duration_in_words,
    "event_in_words": event_in_words,
    "from_text": datetime.fromisoformat,
    "in_steps": in_steps,
    "listed": listed,
    "measure": measure,
    "moment": moment,
    "percentage": percentage,
    "relative": relative,
    "sentence": sentence,
    "share_in_words": share_in_words,
    "weekday": weekday,
}
_TEMPLATES.globals |= {
    "states_in_words": STATES_IN_WORDS,
    "states_served_without": STATES_SERVED_WITHOUT,
    "steps_in_words": STEPS_IN_WORDS,
}


def page(
    request: HttpRequest, template: str, facts: Mapping[str, object] | None = None, status: int = 200
) -> HTMLResponse:
    """Return a page made from a template."""
    shown = {
        "caller": getattr(request.state, "caller", None),
        "form_token": form_token(request),
        "here": request.url.path,
        "now": service_of(request).clock(),
        **(facts or {}),
    }
    return HTMLResponse(_TEMPLATES.get_template(template).render(shown), status, dict(HEADERS))


def item_lines(text: str) -> tuple[str, ...] | None:
    """Return the items named one a line; None if there are none.

    >>> item_lines(" a \\r\\n\\r\\nb"), item_lines(" ")
    (('a', 'b'), None)
    """
    return tuple(line.strip() for line in text.splitlines() if line.strip()) or None


_Handler = Callable[[HttpRequest, Exception], Awaitable[Response]]


def answer_problems_as_pages(app: FastAPI) -> None:
    """Show every error of a page as a page; those of the API stay as they are."""
    for kind, handler in list(app.exception_handlers.items()):
        app.exception_handlers[kind] = _as_page(cast(_Handler, handler))


def _as_page(handler: _Handler) -> _Handler:
    async def answer(request: HttpRequest, error: Exception) -> Response:
        if not _is_looked_at(request):
            return await handler(request, error)
        if isinstance(error, NoToken):
            return RedirectResponse(f"/login?next={quote(_page_to_return_to(request))}", HTTPStatus.SEE_OTHER)
        told = await handler(request, error)
        problem = Problem.model_validate_json(bytes(told.body))
        return page(request, "problem.html", {"problem": problem}, told.status_code)

    return answer


def _is_looked_at(request: HttpRequest) -> bool:
    """Whether a browser shows it: one of our pages, or an address that does not exist."""
    if request.scope.get("route") is not None:
        return is_page(request.scope)
    return "text/html" in request.headers.get("accept", "")


def _page_to_return_to(request: HttpRequest) -> str:
    """Return the page that was asked for, or the overview if a form was sent."""
    query = f"?{request.url.query}" if request.url.query else ""
    return f"{request.url.path}{query}" if request.method == "GET" else "/"


router = APIRouter(include_in_schema=False)
_TYPES = {"style.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}
_FILES = {name: (files("erasable.service.web") / "static" / name).read_bytes() for name in _TYPES}
_KEPT = {"Cache-Control": "public, max-age=300"}


@router.get("/static/{name}")
async def static_file(name: str, caller: Annotated[Caller | None, Depends(OPEN_PAGES)]) -> Response:
    """Return a file that pages need."""
    if name not in _FILES:
        raise HTTPException(404)
    return Response(_FILES[name], headers=_KEPT, media_type=_TYPES[name])


_UNKNOWN = "This token is unknown or was revoked: check it, or ask an operator for another."
_APPLICATION = (
    "This token is for an application, which recommends and submits through the API: the pages take the token of an "
    "officer or an operator."
)


@router.get("/login")
def show_login(
    request: HttpRequest,
    caller: Annotated[Caller | None, Depends(OPEN_PAGES)],
    next: str = "/",  # noqa: A002
) -> Response:
    """Ask for a token."""
    return page(request, "login.html", {"next": next, "refused": None})


@router.post("/login", dependencies=[Depends(refuse_other_sites)])
def sign_in(
    request: HttpRequest,
    caller: Annotated[Caller | None, Depends(OPEN_PAGES)],
    token: Annotated[str, Form(max_length=200)],
    next: Annotated[str, Form()] = "/",  # noqa: A002
) -> Response:
    """Begin a visit."""
    service = service_of(request)
    visitor = service.tokens.caller(token.strip())
    if visitor is None:
        return page(request, "login.html", {"next": next, "refused": _UNKNOWN}, HTTPStatus.UNAUTHORIZED)
    if visitor.role not in PAGES.roles:
        return page(request, "login.html", {"next": next, "refused": _APPLICATION}, HTTPStatus.FORBIDDEN)
    answer = RedirectResponse(next if _is_local(next) else "/", HTTPStatus.SEE_OTHER)
    secret, secure = service.tokens.begin_visit(visitor), request.url.scheme == "https"
    answer.set_cookie(VISIT_COOKIE, secret, httponly=True, samesite="strict", secure=secure)
    return answer


@router.post("/logout", dependencies=[Depends(refuse_foreign_forms)])
def sign_out(request: HttpRequest, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """End a visit."""
    service_of(request).tokens.end_visit(request.cookies[VISIT_COOKIE])
    answer = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
    answer.delete_cookie(VISIT_COOKIE)
    return answer


def _is_local(address: str) -> bool:
    """Whether an address is a path of ours; browsers take two slashes, or backslashes, for another host."""
    return address.startswith("/") and address[1:2] != "/" and "\\" not in address and address.isprintable()
