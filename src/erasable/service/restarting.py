"""Starting a server anew after erasures: what was freed in its memory still reads as it did, and goes with the process.

The process replaces itself and keeps its number and its listening socket, where whoever asks meanwhile waits. Servers
that share a queue do so one after the other.
"""

import ctypes
import os
import secrets
import socket
import sys
import time
from contextlib import suppress
from datetime import timedelta

import pyarrow as pa

from erasable.requests.database import Connection
from erasable.requests.queue import SERVICE
from erasable.service.shop import Shop

RESTARTS = "server restarts"
_PARTS = 1_000
_TURN = timedelta(seconds=15)  # a server takes 2 to 5 seconds to answer again


class Restart:
    """Says when a server has to start anew: at a random moment within the time that is set for it, and in turn."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._before = shop.live.erasures
        self._moment: float | None = None

    def is_due(self) -> bool:
        """Whether someone was erased since this server started, and its moment has come."""
        seconds = self._shop.settings.restart_seconds
        if not seconds or self._shop.live.erasures == self._before:
            return False
        if self._moment is None:
            self._moment = time.monotonic() + seconds * secrets.randbelow(_PARTS) / _PARTS
        return time.monotonic() >= self._moment

    def take_turn(self) -> bool:
        """Write down that a server starts anew, unless another has just done so; say whether it was written."""
        shop = self._shop

        def take(connection: Connection) -> bool:
            last, now = shop.history.last_event(RESTARTS), shop.clock()
            if last is not None and now - last.at < _TURN:
                return False
            shop.queue.note(None, RESTARTS, SERVICE, now)
            return True

        return shop.database.change(take)


def replace_process(place: str, listening: socket.socket) -> None:
    """Run the service anew in place of this process, which keeps nothing but its number and the socket."""
    listening.set_inheritable(True)
    # With -P, as at first: nothing is imported from the working folder.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "erasable.service", place])  # noqa: S606 - ourselves


def reap_children() -> None:
    """Wait for the children of the process that this one has replaced, which have ended: nobody else does."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def give_back_memory() -> None:
    """Give what is free back to the system: so much less of whoever was erased is left to be read."""
    # No gc.collect(): it holds everyone up for 90 ms, and found next to nothing more.
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):  # another C library has no such function
        ctypes.CDLL(None).malloc_trim(0)
