"""Which requests a list shows: filters, their order, and their pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlencode

from erasable.requests import Request
from erasable.requests.lifecycle import STATES, RequestState
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
        return [request_id for request_id in self._ids_in_states(shop) if part in request_id]

    def _ids_in_states(self, shop: Shop) -> list[str]:
        states, now = self.states or STATES, shop.clock()
        if self.only in ("open", "soon", "overdue"):
            return [request_id for request_id, state in shop.history.urgent_ids(self.only, now) if state in states]
        newest = [request_id for _, request_id in shop.history.ids(states, _EVERY)]
        if self.only == "late":
            late = _late(shop)
            return [request_id for request_id in newest if request_id in late]
        return newest


def _late(shop: Shop) -> set[str]:
    """Return those that are open after the legal time, or were erased after it."""
    now = shop.clock()
    erased = shop.history.some([request_id for _, request_id in shop.history.ids(["erased"], _EVERY)])
    still = {request_id for request_id, _ in shop.history.urgent_ids("late", now)}
    return still.union(one.request_id for one in erased if one.late(shop.settings, now))


@dataclass(frozen=True)
class ListPage:
    """One page of a list."""

    requests: Sequence[Request]
    number: int
    total: int

    @staticmethod
    def of(shop: Shop, wanted: WantedRequests, number: int) -> "ListPage":
        """Return a page of the requests that are wanted; beyond the last page, the last."""
        if wanted.only == "all" and not wanted.text.strip():  # most often, and however many there are
            counts, states = shop.history.counts(), wanted.states or STATES
            total = sum(counts.get(state, 0) for state in states)
            number = min(number, max(1, -(-total // PAGE_SIZE)))
            newest = shop.history.ids(states, PAGE_SIZE, skipped=(number - 1) * PAGE_SIZE)
            return ListPage(in_order(shop, [request_id for _, request_id in newest]), number, total)
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


def in_order(shop: Shop, ids: Sequence[str]) -> list[Request]:
    """Return requests in the order of their ids."""
    found = {filed.request_id: filed for filed in shop.history.some(ids)}
    return [found[request_id] for request_id in ids]
