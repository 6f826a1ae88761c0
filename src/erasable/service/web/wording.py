"""Times and numbers as the pages word them."""

from datetime import datetime, timedelta

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MEASURES = {"hr": "Hit rate", "ndcg": "NDCG", "recall": "Recall"}
_UNITS = (("day", timedelta(days=1)), ("hour", timedelta(hours=1)), ("minute", timedelta(minutes=1)))


def day(time: datetime) -> str:
    """Return a date; names of strftime would follow the locale.

    >>> day(datetime(2026, 11, 6, 9, 5))
    '6 November 2026'
    """
    return f"{time.day} {_MONTHS[time.month - 1]} {time.year}"


def moment(time: datetime) -> str:
    """Return a date and a time of universal time.

    >>> moment(datetime(2026, 11, 6, 9, 5))
    '6 November 2026, 09:05 UTC'
    """
    return f"{day(time)}, {time:%H:%M} UTC"


def weekday(time: datetime) -> str:
    """Return a date with its weekday.

    >>> weekday(datetime(2026, 11, 6))
    'Friday, 6 November 2026'
    """
    return f"{_WEEKDAYS[time.weekday()]}, {day(time)}"


def relative(time: datetime, now: datetime) -> str:
    """Return how far a time is from now, in the largest unit that fits.

    >>> now = datetime(2026, 11, 6)
    >>> [relative(now + timedelta(hours=hours), now) for hours in (-50, -1, 0, 30, 84)]
    ['2 days ago', '1 hour ago', 'just now', 'in 1 day', 'in 4 days']
    """
    distance = abs(time - now)
    for name, unit in _UNITS:
        if distance >= unit:
            words = counted(int(distance / unit + 0.5), name)
            return f"in {words}" if time > now else f"{words} ago"
    return "just now" if time <= now else "in a moment"


def counted(count: int, one: str, several: str | None = None) -> str:
    """Return a number with what it counts.

    >>> counted(1, "request"), counted(1200, "person", "people")
    ('1 request', '1,200 people')
    """
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def percentage(ratio: float) -> str:
    r"""Return a ratio in per cent.

    >>> [percentage(ratio) for ratio in (0.0, 0.0001, 0.6249)]
    ['0.0\xa0%', 'under 0.1\xa0%', '62.5\xa0%']
    """
    return "under 0.1\xa0%" if 0 < ratio < 0.0005 else f"{100 * ratio:,.1f}\xa0%"


def duration(seconds: float) -> str:
    """Return how long something takes.

    >>> [duration(seconds) for seconds in (0.004, 12.345, 100, 7384)]
    ['under 0.1 s', '12.3 s', '1 min 40 s', '2 h 3 min']
    """
    if seconds < 0.1:
        return "under 0.1 s"
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min {rest} s"


def joined(names: list[str], last: str = "or") -> str:
    """Return names as a sentence lists them.

    >>> joined(["officer"]), joined(["application", "officer", "operator"])
    ('officer', 'application, officer or operator')
    """
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def measure(name: str) -> str:
    """Return a measure in words.

    >>> measure("hr@10"), measure("loss")
    ('Hit rate in the first 10', 'loss')
    """
    kind, _, cutoff = name.partition("@")
    return f"{_MEASURES[kind]} in the first {cutoff}" if kind in _MEASURES and cutoff else name


def sentence(text: str) -> str:
    """Return text with a capital letter at its beginning.

    >>> sentence("waits for Ann")
    'Waits for Ann'
    """
    return text[:1].upper() + text[1:]
