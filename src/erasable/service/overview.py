"""The state of the service at a glance: what is open, what is late, what needs someone's hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from erasable.service.filed import Filed
from erasable.service.lifecycle import RequestState
from erasable.service.settings import ServiceSettings
from erasable.service.shop import Shop

_SOON = timedelta(days=7)


@dataclass(frozen=True)
class Overview:
    """Open requests, by how urgent they are; one may be in several lists."""

    counts: Mapping[RequestState, int]
    open: Sequence[Filed]
    due_soon: Sequence[Filed]
    """To be erased within seven days."""
    alarming: Sequence[Filed]
    """Past the day of the alarm, and not past the limit."""
    overdue: Sequence[Filed]
    """Past the limit."""
    late: Sequence[Filed]
    """Past the legal time."""
    over_limit: Sequence[Filed]
    """On hold because a token asked for more people in a day than it may."""
    failed: Sequence[Filed]
    stuck: Sequence[Filed]
    """Failed, and not tried again until someone asks for it."""

    @property
    def needs_action(self) -> Sequence[Filed]:
        """What somebody has to look at, most urgent first."""
        urgent = (*self.overdue, *self.stuck, *self.alarming, *self.over_limit)
        return list({one.request_id: one for one in urgent}.values())


def overview(shop: Shop) -> Overview:
    """Return the state of the service now."""
    requests, now = shop.requests.open_requests(), shop.clock()
    return Overview(
        counts=shop.requests.counts(),
        open=requests,
        due_soon=[one for one in requests if _erase_by(one, shop.settings) <= now + _SOON],
        alarming=[one for one in requests if is_alarming(one, shop.settings, now)],
        overdue=[one for one in requests if is_overdue(one, shop.settings, now)],
        late=[one for one in requests if one.late(shop.settings, now)],
        over_limit=[one for one in requests if one.over_limit],
        failed=[one for one in requests if one.state == "failed"],
        stuck=[one for one in requests if one.state == "failed" and one.retry_at is None],
    )


def is_overdue(filed: Filed, settings: ServiceSettings, now: datetime) -> bool:
    """Whether a request is open past its limit."""
    return filed.open and now > filed.deadlines(settings).limit


def is_alarming(filed: Filed, settings: ServiceSettings, now: datetime) -> bool:
    """Whether a request is open past the day of the alarm, and not past its limit."""
    return filed.open and filed.deadlines(settings).alarm < now <= filed.deadlines(settings).limit


def _erase_by(filed: Filed, settings: ServiceSettings) -> datetime:
    return filed.deadlines(settings).erase_by
