"""Connections: whoever opens one has to send the head of a request soon, and not too much of it."""

import asyncio
from asyncio.events import TimerHandle

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_LARGEST_HEAD = 65_536


class _Impatient(HttpToolsProtocol):
    """Closes a connection on which the head of a request does not arrive; uvicorn itself would wait forever."""

    seconds: float
    _timer: TimerHandle | None = None
    _size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Take what has come, unless a head has become too large."""
        super().data_received(data)
        if self._timer is not None:
            self._size += len(data)
            if self._size > _LARGEST_HEAD:
                self._give_up()

    def on_message_begin(self) -> None:
        """Wait for the whole of a head of which the first byte has come."""
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        """Wait no more: the limits of the body are another's."""
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        if self._timer is None:
            self._timer, self._size = self.loop.call_later(self.seconds, self._give_up), 0

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


def impatient(seconds: float) -> type[asyncio.Protocol]:
    """Return the protocol that closes a connection on which a head takes longer than this."""
    return type("Impatient", (_Impatient,), {"seconds": seconds})
