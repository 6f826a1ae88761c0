"""Who may use which route: each has a rule, and an application with a route that has none is not made."""

from collections.abc import Iterator

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Mount

from erasable.errors import NotAllowed, NoToken
from erasable.requests.tokens import Caller, Role
from erasable.service.shop import shop_of

VISIT_COOKIE = "erasable_visit"
_SCHEME = "bearer "
_NOBODY = "say who you are: send Authorization: Bearer TOKEN (erasable token create makes one)"
_UNKNOWN = "the token is not known, or was revoked: take another (erasable token create makes one)"


class Rule:
    """Lets callers of some roles pass, or anyone; used as a dependency of a route."""

    def __init__(self, *roles: Role, pages: bool = False) -> None:
        self.roles = frozenset(roles)
        self.pages = pages

    async def __call__(self, request: Request) -> Caller | None:
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
"""The roles that may learn who has asked to be erased; all others get the answers that anybody unknown would get."""
ANYONE = Rule()
RECOMMENDING = Rule("application", "operator")
SUBMITTING = Rule("application", "officer", "operator")
OFFICE = Rule("officer", "operator")
PAGES = Rule("officer", "operator", pages=True)
"""Pages take the visit of a browser, and nothing else: what another site's page sends has none."""
OPEN_PAGES = Rule(pages=True)


def may_know(caller: Caller | None) -> bool:
    """Whether a caller may learn who has asked to be erased."""
    return caller is not None and caller.role in MAY_KNOW


def caller_of(request: Request, pages: bool) -> Caller | None:
    """Return who asks, by the token in the header, or on pages by the visit in the cookie."""
    tokens = shop_of(request).tokens
    if pages:
        secret = request.cookies.get(VISIT_COOKIE)
        return tokens.visitor(secret) if secret else None
    header = request.headers.get("authorization", "")
    return tokens.caller(header[len(_SCHEME) :].strip()) if header[: len(_SCHEME)].lower() == _SCHEME else None


def rule_of(route: BaseRoute) -> Rule | None:
    """Return the rule of a route, if it has one."""
    if not isinstance(route, APIRoute):
        return None
    rules = [one.call for one in route.dependant.dependencies if isinstance(one.call, Rule)]
    return rules[0] if len(rules) == 1 else None


def routes_of(app: FastAPI) -> Iterator[BaseRoute]:
    """Yield every route of an application."""
    for route in app.routes:
        yield from route.routes if isinstance(route, Mount) else (route,)


def refuse_routes_without_rule(app: FastAPI) -> None:
    """Refuse an application with a route that anybody could use because nobody thought of it."""
    for route in routes_of(app):
        if rule_of(route) is None:
            raise ValueError(f"the route {getattr(route, 'path', route)} has no rule: give it one of access.py")
