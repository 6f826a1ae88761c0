"""The time, as proof writes it: universal, to the second."""

from datetime import UTC, datetime


def now() -> str:
    """Return the time in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
