"""The clocks of a request: when its batch is due, when to raise an alarm, and the legal month."""

import calendar
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from erasable.service.settings import ServiceSettings

_EXTENSION_MONTHS = 2
_LONGEST_LEAD = timedelta(days=1)


def months_later(day: date, months: int) -> date:
    """Return the same date some months later, or the last day of that month if it has no such date.

    >>> months_later(date(2026, 1, 31), 1), months_later(date(2026, 12, 5), 1)
    (datetime.date(2026, 2, 28), datetime.date(2027, 1, 5))
    """
    years, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = calendar.monthrange(years, month + 1)[1]
    return date(years, month + 1, min(day.day, last))


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
    def of(received: datetime, settings: ServiceSettings, extended: bool = False) -> "Deadlines":
        """Return the deadlines of a request; extending it moves the alarm, the limit and the legal one alike."""
        month, legal = legal_deadline(received), legal_deadline(received, extended)
        erase_by = received + settings.window
        return Deadlines(
            begin=erase_by - min(_LONGEST_LEAD, settings.window / 4),
            erase_by=erase_by,
            alarm=received + timedelta(days=settings.alarm_day) + (legal - month),
            limit=min(legal, received + timedelta(days=settings.limit_day) + (legal - month)),
            legal=legal,
        )


def legal_deadline(received: datetime, extended: bool = False) -> datetime:
    """Return the end of the last day on which the law allows an answer (GDPR Art. 12(3))."""
    day = months_later(received.date(), 1 + _EXTENSION_MONTHS if extended else 1)
    return datetime.combine(day, time(23, 59, 59), UTC)
