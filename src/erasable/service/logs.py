"""Logs: one JSON object a line on standard error; facts about requests and processes, never about people."""

import json
import sys
from datetime import UTC, datetime


def log(event: str, **facts: object) -> None:
    """Write down that something happened; nothing that names a person may be given."""
    line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **facts}
    sys.stderr.write(json.dumps(line, ensure_ascii=True) + "\n")
    sys.stderr.flush()
