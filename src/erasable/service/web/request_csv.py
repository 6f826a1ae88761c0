"""Requests as CSV; who asked is not in it, and no cell is a formula to a spreadsheet."""

import csv
import io
from collections.abc import Iterable
from datetime import datetime

from erasable.requests import Request
from erasable.service.settings import ServiceSettings

COLUMNS = (
    *("id", "state", "scope", "received", "suppressed", "erased"),
    *("begin", "erase_by", "alarm", "limit", "legal", "late", "extended", "reason", "reference"),
)
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def requests_csv(requests: Iterable[Request], settings: ServiceSettings, now: datetime) -> str:
    """Return requests as CSV, one a line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(value) for value in _row(filed, settings, now)] for filed in requests)
    return text.getvalue()


def _row(filed: Request, settings: ServiceSettings, now: datetime) -> tuple[str | datetime | None, ...]:
    deadlines = filed.deadlines(settings)
    return (
        *(filed.request_id, filed.state, filed.scope),
        *(filed.received, filed.when("suppressed"), filed.when("erased")),
        *(deadlines.begin, deadlines.erase_by, deadlines.alarm, deadlines.limit, deadlines.legal),
        "late" if filed.late(settings, now) else None,
        *(filed.extended, filed.reason, filed.reference),
    )


def _cell(value: str | datetime | None) -> str:
    """Return what stands in a cell; text that a spreadsheet would compute gets a quote before it.

    >>> _cell("=1+1"), _cell("waits"), _cell(None)
    ("'=1+1", 'waits', '')
    """
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    text = value or ""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
