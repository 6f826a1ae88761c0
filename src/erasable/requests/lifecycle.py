"""The life of a request: its states, which may follow which, and by when what has to happen."""

import calendar
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, Protocol, get_args

from erasable.errors import Refused

RequestState = Literal[
    "received",
    "suppressed",
    "erasing",
    "certifying",
    "erased",
    "rejected",
    "withdrawn",
    "on hold",
    "failed",
]
STATES: tuple[RequestState, ...] = get_args(RequestState)
ENDED: frozenset[RequestState] = frozenset({"erased", "rejected", "withdrawn"})
WAITING: frozenset[RequestState] = frozenset({"received", "suppressed", "on hold"})
"""Nothing was begun yet: more can be asked for, and all can be taken back."""
BEGUN: frozenset[RequestState] = frozenset({"erasing", "certifying", "failed"})
FORGOTTEN: frozenset[RequestState] = ENDED | {"certifying"}
"""Who asked is not kept in these."""
NOTHING_HELD = "nothing is held of what was asked for"
"""Why a request is rejected at once; in requests of format 1 the one reason that nobody typed in."""

_FOLLOWING: dict[RequestState | None, frozenset[RequestState]] = {
    None: frozenset({"received"}),
    "received": frozenset({"suppressed", "rejected"}),
    "suppressed": frozenset({"erasing", "on hold", "withdrawn", "rejected"}),
    "on hold": frozenset({"suppressed", "withdrawn", "rejected"}),
    "erasing": frozenset({"certifying", "erased", "failed", "rejected", "suppressed"}),  # given back: nothing is erased
    "certifying": frozenset({"erased", "failed"}),
    "failed": frozenset({"erasing", "certifying", "failed", "erased", "rejected", "suppressed"}),
    **dict.fromkeys(ENDED, frozenset()),
}
_REMEDIES: dict[RequestState, str] = {
    "withdrawn": "it can be withdrawn until erasing begins",
    "on hold": "only a request that waits can be put on hold",
    "suppressed": "only a request that is on hold can be released",
}
_BEFORE_FORMAT_3: Mapping[str, RequestState] = {"accepted": "suppressed", "verifying": "certifying"}


def state_of(status: str) -> RequestState:
    """Return the state that a row names; up to format 2 some had other names.

    >>> state_of("verifying"), state_of("erased")
    ('certifying', 'erased')
    """
    found: RequestState = _BEFORE_FORMAT_3.get(status, status)  # type: ignore[arg-type]
    return found


def refuse_unless_may_follow(before: RequestState | None, after: RequestState) -> None:
    """Refuse a change that the lifecycle does not allow."""
    if after not in _FOLLOWING[before]:
        remedy = _REMEDIES.get(after, "look at its events")
        raise Refused(f"a request that is {before or 'unknown'} can't become {after}: {remedy}")


_EXTENSION_MONTHS = 2
_LONGEST_LEAD = timedelta(days=1)


class Terms(Protocol):
    """Within which time requests are carried out; the settings of the service are such."""

    @property
    def batch_window(self) -> float:
        """Within how many days a request is carried out; 0 is at once."""

    @property
    def alarm_day(self) -> int:
        """On which day after its receipt an open request raises an alarm."""

    @property
    def limit_day(self) -> int:
        """By which day after its receipt a request has to be carried out."""


@dataclass(frozen=True)
class KeptTerms:
    """The terms in force when a request came in; they are kept with it, whatever is set later."""

    batch_window: float = 7
    alarm_day: int = 21
    limit_day: int = 28

    @staticmethod
    def of(terms: Terms) -> "KeptTerms":
        """Return terms as they are now."""
        return KeptTerms(terms.batch_window, terms.alarm_day, terms.limit_day)


AT_ONCE = KeptTerms(batch_window=0)
"""What comes by command or from the library is due at once."""


@dataclass(frozen=True)
class Deadlines:
    """By when what has to happen to a request, in universal time."""

    begin: datetime
    """When its batch is begun: early enough to be tried again."""
    erase_by: datetime
    """The end of the batch window."""
    alarm: datetime
    limit: datetime
    legal: datetime
    """The end of the legal month, or of the two more if it was extended (GDPR Art. 12(3))."""

    @staticmethod
    def of(received: datetime, terms: Terms, extended: bool = False) -> "Deadlines":
        """Return the deadlines of a request; extending it moves the alarm, the limit and the legal one alike."""
        month, legal = legal_deadline(received), legal_deadline(received, extended)
        window = timedelta(days=terms.batch_window)
        return Deadlines(
            begin=received + window - min(_LONGEST_LEAD, window / 4),
            erase_by=received + window,
            alarm=received + timedelta(days=terms.alarm_day) + (legal - month),
            limit=min(legal, received + timedelta(days=terms.limit_day) + (legal - month)),
            legal=legal,
        )


def legal_deadline(received: datetime, extended: bool = False) -> datetime:
    """Return the end of the last day on which the law allows an answer (GDPR Art. 12(3))."""
    day = months_later(received.date(), 1 + _EXTENSION_MONTHS if extended else 1)
    return datetime.combine(day, time(23, 59, 59), UTC)


def months_later(day: date, months: int) -> date:
    """Return the same date some months later, or the last day of that month if it has no such date.

    >>> months_later(date(2026, 1, 31), 1), months_later(date(2026, 12, 5), 1)
    (datetime.date(2026, 2, 28), datetime.date(2027, 1, 5))
    """
    years, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = calendar.monthrange(years, month + 1)[1]
    return date(years, month + 1, min(day.day, last))
