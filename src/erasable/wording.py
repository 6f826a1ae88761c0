"""Numbers, ratios, times and lists in words, for the command, the web pages and certificates.

Nothing here depends on the locale, as names from `strftime` would: a certificate's page is the same everywhere.
"""

from collections.abc import Iterable
from datetime import date, datetime, timedelta

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MEASURES = {"hr": "Hit rate", "ndcg": "NDCG", "recall": "Recall"}
_UNITS = (("day", timedelta(days=1)), ("hour", timedelta(hours=1)), ("minute", timedelta(minutes=1)))


def counted(number: int, one: str, several: str | None = None) -> str:
    """Return a number with its noun, in singular or plural.

    >>> counted(1, "group"), counted(1200, "user"), counted(2, "person", "people")
    ('1 group', '1,200 users', '2 people')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def percentage(ratio: float) -> str:
    """Return a ratio in per cent.

    >>> [percentage(ratio) for ratio in (0.0, 0.0001, 0.6249, 1.0, 12.5)]
    ['0 %', 'under 0.1 %', '62.5 %', '100 %', '1,250 %']
    """
    return "under 0.1 %" if 0 < ratio < 0.0005 else f"{f'{100 * ratio:,.1f}'.removesuffix('.0')} %"


def duration(seconds: float) -> str:
    """Return a duration.

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


def day(time: date) -> str:
    """Return a date.

    >>> day(datetime(2026, 11, 6, 9, 5))
    '6 November 2026'
    """
    return f"{time.day} {_MONTHS[time.month - 1]} {time.year}"


def moment(time: datetime) -> str:
    """Return a date and time in UTC.

    >>> moment(datetime(2026, 11, 6, 9, 5))
    '6 November 2026, 09:05 UTC'
    """
    return f"{day(time)}, {time:%H:%M} UTC"


def weekday(time: date) -> str:
    """Return a date with its weekday.

    >>> weekday(datetime(2026, 11, 6))
    'Friday, 6 November 2026'
    """
    return f"{_WEEKDAYS[time.weekday()]}, {day(time)}"


def relative(time: datetime, now: datetime) -> str:
    """Return the distance of a time from now, in the largest unit that fits.

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


def listed(names: Iterable[str], last: str = "and") -> str:
    """Return names as a list in a sentence.

    >>> listed(["officer"]), listed(["application", "officer", "operator"], "or")
    ('officer', 'application, officer or operator')
    """
    *first, final = names
    return f"{', '.join(first)} {last} {final}" if first else final


def measure(name: str) -> str:
    """Return the name of a measure in words.

    >>> measure("hr@10"), measure("loss")
    ('Hit rate in the first 10', 'loss')
    """
    kind, _, cutoff = name.partition("@")
    return f"{_MEASURES[kind]} in the first {cutoff}" if kind in _MEASURES and cutoff else name


def in_steps(value: float, grain: float | None = None) -> str:
    """Return a measure with as many decimals as the step it is rounded to, or four.

    >>> in_steps(0.62, 0.02), in_steps(0.5, 0.5), in_steps(1.0, 1.0), in_steps(0.6131)
    ('0.62', '0.5', '1', '0.6131')
    """
    decimals = next((places for places in range(4) if grain and round(grain, places) == grain), 4)
    return f"{value:.{decimals}f}"


def change(before: float | None, after: float | None, grain: float | None = None) -> str:
    """Return the change of a measure, with its sign; empty if it was not measured both times.

    >>> change(0.62, 0.6, 0.02), change(0.6, 0.62, 0.02), change(0.6, 0.6), change(None, 0.6)
    ('−0.02', '+0.02', 'none', '')
    """
    if before is None or after is None:
        return ""
    moved = round(after - before, 4)
    sign = "+" if moved > 0 else "−"
    return f"{sign}{in_steps(abs(moved), grain)}" if moved else "none"


def sentence(text: str) -> str:
    """Return a text with its first letter capitalised.

    >>> sentence("waits for Ann")
    'Waits for Ann'
    """
    return text[:1].upper() + text[1:]
