"""Logs: one JSON object a line on standard error; facts about requests and processes, never about people."""

import json
import logging
import sys
import traceback
from contextlib import suppress
from datetime import UTC, datetime

from erasable.errors import DiskFull, QueueLost, QueueUnreachable, SuppressionUnknown, WorkspaceDamaged
from erasable.requests.request import DISK_FULL

REMEDIES: dict[type, str] = {
    DiskFull: DISK_FULL,
    QueueUnreachable: "the database of requests can't be reached, and it says who has asked to be erased, so nobody is "
    "served: see that it runs, and that this machine may connect to it; all goes on by itself then",
    QueueLost: "the requests are lost, and they say who has asked to be erased, so nobody is served: run erasable "
    "status on the workspace, which says how to bring them back",
    SuppressionUnknown: "who has asked to be erased can't be read, so nobody is served: run erasable status on the "
    "workspace, which says what to do",
    WorkspaceDamaged: "a file of the workspace is missing or damaged: run erasable status on the workspace, which says "
    "which one and what to do",
}
"""What is to be done about errors whose own words may name people or places of this machine."""


def log(event: str, **facts: object) -> None:
    """Write down that something happened; nothing that names a person may be given."""
    line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **facts}
    with suppress(OSError):  # a log that can't be written, on a full disk, must not end what it tells of
        sys.stderr.write(json.dumps(line, ensure_ascii=True) + "\n")
        sys.stderr.flush()


def log_failure(event: str, error: BaseException) -> None:
    """Write down an error by its kind and where it was raised; what it says may name people."""
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{frame.filename}:{frame.lineno}" for frame in frames[-5:]]
    log(event, error=type(error).__name__, **in_words(error), where=where)


def in_words(error: BaseException) -> dict[str, str]:
    """Return what is to be done about an error, as far as that is known without naming anyone."""
    return next(({"reason": REMEDIES[kind]} for kind in type(error).__mro__ if kind in REMEDIES), {})


def log_everything_as_json() -> None:
    """Have what libraries log written in the same way."""
    logging.basicConfig(level=logging.WARNING, handlers=[_AsJson()], force=True)


class _AsJson(logging.Handler):
    """Writes down what a library says, without what it fills in."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            log_failure(str(record.msg), error)
        else:
            log(str(record.msg), logger=record.name)
