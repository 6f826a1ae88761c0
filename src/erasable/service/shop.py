"""The shop: everything that the routes of one service work with."""

from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Request

from erasable.operations import DiskHome, Live
from erasable.service.answers import Answers
from erasable.service.clock import Clock, universal_time
from erasable.service.intake import Intake
from erasable.service.reception import Reception
from erasable.service.requests import Requests
from erasable.service.settings import DEFAULT_SETTINGS, ServiceSettings
from erasable.service.tokens import Tokens
from erasable.store.ledger import Ledger


@dataclass(frozen=True)
class Shop:
    """One workspace that is served."""

    folder: Path
    home: DiskHome
    ledger: Ledger
    live: Live
    settings: ServiceSettings = DEFAULT_SETTINGS
    clock: Clock = universal_time
    requests: Requests = field(init=False)
    tokens: Tokens = field(init=False)
    answers: Answers = field(init=False)
    intake: Intake = field(init=False)
    reception: Reception = field(init=False)

    def __post_init__(self) -> None:
        parts = {
            "requests": Requests(self.ledger),
            "tokens": Tokens(self.ledger),
            "answers": Answers(self.ledger),
            "intake": Intake(self.ledger),
            "reception": Reception(self.ledger, self.live, self.clock, self.settings),
        }
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    @staticmethod
    def open(folder: Path, settings: ServiceSettings = DEFAULT_SETTINGS, clock: Clock = universal_time) -> "Shop":
        """Open a workspace for serving; whoever has asked to be erased is not served from the beginning."""
        home = DiskHome(folder)
        live = Live(home)
        shop = Shop(folder, home, Ledger.open(folder), live, settings, clock)
        shop.reception.follow()
        return shop


def shop_of(request: Request) -> Shop:
    """Return the shop that a request is about."""
    shop: Shop = request.app.state.shop
    return shop
