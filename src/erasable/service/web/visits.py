"""Signing in with a token, and out again."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from erasable.requests.tokens import Caller
from erasable.service.access import OPEN_PAGES, PAGES, VISIT_COOKIE
from erasable.service.shop import shop_of
from erasable.service.web.own_site import refuse_foreign_forms, refuse_other_sites
from erasable.service.web.pages import page

router = APIRouter(include_in_schema=False)
_UNKNOWN = "Nobody has this token, or it was revoked: check it, or ask an operator for another."
_APPLICATION = (
    "This is the token of an application, which recommends and submits by the API: the pages take the token of an "
    "officer or an operator."
)


@router.get("/login")
def show_login(
    request: Request,
    caller: Annotated[Caller | None, Depends(OPEN_PAGES)],
    next: str = "/",  # noqa: A002
) -> Response:
    """Ask for a token."""
    return page(request, "login.html", {"next": next, "refused": None})


@router.post("/login", dependencies=[Depends(refuse_other_sites)])
def sign_in(
    request: Request,
    caller: Annotated[Caller | None, Depends(OPEN_PAGES)],
    token: Annotated[str, Form(max_length=200)],
    next: Annotated[str, Form()] = "/",  # noqa: A002
) -> Response:
    """Begin a visit."""
    shop = shop_of(request)
    visitor = shop.tokens.caller(token.strip())
    if visitor is None:
        return page(request, "login.html", {"next": next, "refused": _UNKNOWN}, HTTPStatus.UNAUTHORIZED)
    if visitor.role not in PAGES.roles:
        return page(request, "login.html", {"next": next, "refused": _APPLICATION}, HTTPStatus.FORBIDDEN)
    answer = RedirectResponse(next if _is_local(next) else "/", HTTPStatus.SEE_OTHER)
    secret, secure = shop.tokens.begin_visit(visitor), request.url.scheme == "https"
    answer.set_cookie(VISIT_COOKIE, secret, httponly=True, samesite="strict", secure=secure)
    return answer


@router.post("/logout", dependencies=[Depends(refuse_foreign_forms)])
def sign_out(request: Request, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """End a visit."""
    shop_of(request).tokens.end_visit(request.cookies[VISIT_COOKIE])
    answer = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
    answer.delete_cookie(VISIT_COOKIE)
    return answer


def _is_local(address: str) -> bool:
    """Whether an address is a path of ours; browsers take two slashes, or backslashes, for another host."""
    return address.startswith("/") and address[1:2] != "/" and "\\" not in address and address.isprintable()
