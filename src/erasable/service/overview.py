"""The state of the service at a glance: what is open, what is late, what needs someone's hand."""

from collections.abc import Sequence
from dataclasses import dataclass

from erasable.requests import Request
from erasable.requests.history import Totals
from erasable.service.shop import Shop

SHOWN = 50
"""How many requests that need someone's hand are shown at most."""


@dataclass(frozen=True)
class Overview:
    """How many requests there are, and the most urgent of those that need someone's hand."""

    totals: Totals
    needs_action: Sequence[Request]
    """Past the limit, past the day of the alarm, failed for good, or beyond the limit of a token; first limit first."""


def overview(shop: Shop) -> Overview:
    """Return the state of the service now."""
    now = shop.clock()
    totals = shop.history.totals(now)
    urgent = shop.history.urgent_ids("action", now, SHOWN) if totals.urgent["action"] else []
    found = {one.request_id: one for one in shop.history.some([request_id for request_id, _ in urgent])}
    return Overview(totals, [found[request_id] for request_id, _ in urgent])
