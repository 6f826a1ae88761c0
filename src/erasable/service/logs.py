"""Logs: one JSON object a line on standard error; facts about requests and processes, never about people."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime


def log(event: str, **facts: object) -> None:
    """Write down that something happened; nothing that names a person may be given."""
    line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **facts}
    sys.stderr.write(json.dumps(line, ensure_ascii=True) + "\n")
    sys.stderr.flush()


def log_failure(event: str, error: BaseException) -> None:
    """Write down an error by its kind and where it was raised; what it says may name people."""
    frames = traceback.extract_tb(error.__traceback__)
    log(event, error=type(error).__name__, where=[f"{frame.filename}:{frame.lineno}" for frame in frames[-5:]])


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
