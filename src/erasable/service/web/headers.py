"""Headers of pages: nothing from elsewhere is loaded, nothing is kept, nothing is told to other sites."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from erasable.service.access import rule_of

_SOURCES = "style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'"
_CLOSED = "base-uri 'none'; frame-ancestors 'none'"
HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; {_SOURCES}; {_CLOSED}",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
CERTIFICATE_POLICY = f"default-src 'none'; style-src 'unsafe-inline'; {_CLOSED}"
"""For certificates, which carry their style with them and nothing else."""


class PageHeaders:
    """Adds the headers to every answer of a page's route, files and redirects too; what a route has set stays."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, with the headers."""

        async def adding(message: Message) -> None:
            if message["type"] == "http.response.start" and is_page(scope):
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, adding if scope["type"] == "http" else send)


def is_page(scope: Scope) -> bool:
    """Whether what was asked for is a page, or a file that belongs to one."""
    route = scope.get("route")
    rule = rule_of(route) if route is not None else None
    return rule is not None and rule.pages
