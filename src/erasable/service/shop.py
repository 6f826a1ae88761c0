"""The shop: everything that the routes of one service work with."""

from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Request

from erasable.errors import DiskFull
from erasable.operations import DiskHome, Live
from erasable.operations.meanwhile import NOT_SERVED, SERVED_WITHOUT, Meanwhile, can_serve_without
from erasable.requests import Request as Submitted
from erasable.requests.answers import Answers
from erasable.requests.database import Database
from erasable.requests.decisions import Decisions
from erasable.requests.history import History
from erasable.requests.intake import Intake
from erasable.requests.opening import open_database
from erasable.requests.queue import Queue
from erasable.requests.request import DISK_FULL, SOME
from erasable.requests.tokens import Tokens
from erasable.service.clock import Clock, universal_time
from erasable.service.reception import Reception
from erasable.service.settings import DEFAULT_SETTINGS, ServiceSettings
from erasable.store.files import refuse_if_full

_LEAST_ROOM = 1_000_000  # bytes; a queue's log may have room for a few more requests, but no erasure has


@dataclass(frozen=True)
class Shop:
    """One workspace that is served."""

    folder: Path
    home: DiskHome
    queue: Queue
    live: Live
    settings: ServiceSettings = DEFAULT_SETTINGS
    clock: Clock = universal_time
    decisions: Decisions = field(init=False)
    tokens: Tokens = field(init=False)
    answers: Answers = field(init=False)
    intake: Intake = field(init=False)
    reception: Reception = field(init=False)

    def __post_init__(self) -> None:
        parts = {
            "decisions": Decisions(self.queue),
            "tokens": Tokens(self.database),
            "answers": Answers(self.database),
            "intake": Intake(self.database),
            "reception": Reception(self.queue, self.live, self.clock, self.settings),
        }
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    @property
    def database(self) -> Database:
        """Where the queue lies."""
        return self.queue.database

    @property
    def history(self) -> History:
        """What is told of requests."""
        return self.queue.history

    def suppressed(self) -> frozenset[str]:
        """Return who is not served because of an open request, and whose data may still be there."""
        return self.live.not_served(self.queue.asked())

    def places(self, filed: Submitted) -> tuple[str, ...]:
        """Return where something of the person is still found, if that keeps a request from being certified."""
        return self.live.places.get(filed.request_id, ()) if filed.state == "failed" else ()

    def meanwhile(self, filed: Submitted, user: str | None = None) -> Meanwhile | None:
        """Say what an open request means for the person, whom the queue is asked for if need be; None if it ended."""
        if not filed.open:
            return None
        if filed.scope != SOME or not can_serve_without(self.live.knowledge):
            return NOT_SERVED
        users = [user] if user is not None else [one.user for one in self.queue.subjects([filed.request_id])]
        return NOT_SERVED if any(map(self.live.withholds, users)) else SERVED_WITHOUT

    def problem(self) -> str | None:
        """Say what keeps the service from its work; None if nothing does."""
        try:
            refuse_if_full(self.folder, _LEAST_ROOM)
        except DiskFull:
            return DISK_FULL
        return None

    @staticmethod
    def open(folder: Path, settings: ServiceSettings = DEFAULT_SETTINGS, clock: Clock = universal_time) -> "Shop":
        """Open a workspace for serving; whoever has asked to be erased is not served from the beginning."""
        home = DiskHome(folder)
        live = Live(home)
        queue = Queue(open_database(folder), settings)
        queue.migrate(clock())
        shop = Shop(folder, home, queue, live, settings, clock)
        shop.reception.follow()
        return shop


def shop_of(request: Request) -> Shop:
    """Return the shop that a request is about."""
    shop: Shop = request.app.state.shop
    return shop
