"""Which requests a list shows: filters, their order, and their pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlencode

from erasable.service.filed import Filed
from erasable.service.lifecycle import STATES, RequestState
from erasable.service.overview import overview
from erasable.service.shop import Shop

Only = Literal["all", "open", "soon", "overdue", "late"]
PAGE_SIZE = 25
_EVERY = 2**53


@dataclass(frozen=True)
class WantedRequests:
    """Filters of a list."""

    states: tuple[RequestState, ...] = ()
    """One of these; any if there are none."""
    only: Only = "all"
    text: str = ""
    """What the id contains."""

    def query(self, **more: int) -> str:
        """Return the filters as an address carries them."""
        chosen = [("state", state) for state in self.states] + [("only", self.only), ("text", self.text)]
        return urlencode([*((name, value) for name, value in chosen if value not in ("", "all")), *more.items()])

    def ids(self, shop: Shop) -> list[str]:
        """Return the ids of all that fit: newest first, or most urgent first if only open ones are wanted."""
        part = self.text.strip().lower()
        ids = [request_id for request_id in self._ids_in_states(shop) if part in request_id]
        return _late(shop, ids) if self.only == "late" else ids

    def _ids_in_states(self, shop: Shop) -> list[str]:
        if self.only in ("all", "late"):
            return [request_id for _, request_id in shop.requests.ids(self.states or STATES, _EVERY)]
        return [one.request_id for one in self._urgent(shop) if one.state in (self.states or STATES)]

    def _urgent(self, shop: Shop) -> Sequence[Filed]:
        found = overview(shop)
        return {"open": found.open, "soon": found.due_soon, "overdue": found.overdue}.get(self.only, ())


def _late(shop: Shop, ids: Sequence[str]) -> list[str]:
    """Return those that are open after the legal time, or were erased after it."""
    now = shop.clock()
    return [filed.request_id for filed in in_order(shop, ids) if filed.late(shop.settings, now)]


@dataclass(frozen=True)
class ListPage:
    """One page of a list."""

    requests: Sequence[Filed]
    number: int
    total: int

    @staticmethod
    def of(shop: Shop, wanted: WantedRequests, number: int) -> "ListPage":
        """Return a page of the requests that are wanted; beyond the last page, the last."""
        ids = wanted.ids(shop)
        number = min(number, max(1, -(-len(ids) // PAGE_SIZE)))
        shown = ids[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
        return ListPage(in_order(shop, shown), number, len(ids))

    @property
    def first(self) -> int:
        """The place of its first request in the whole list."""
        return (self.number - 1) * PAGE_SIZE + 1

    @property
    def last(self) -> int:
        """The place of its last request in the whole list."""
        return self.first + len(self.requests) - 1


def in_order(shop: Shop, ids: Sequence[str]) -> list[Filed]:
    """Return requests in the order of their ids."""
    found = {filed.request_id: filed for filed in shop.requests.some(ids)}
    return [found[request_id] for request_id in ids]
