"""Limits on what comes in: how large a body may be, and how long it may take to arrive."""

import asyncio
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from erasable.service.problems import problem


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, detail: str) -> None:
        self.status = status
        self.detail = detail


class BodyLimits:
    """Reads the whole body before anything else happens, so that a slow or a large one ends here."""

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
    """Return what gives a body that was read already."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
