"""The time, as the service takes it; tests put another clock in its place."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def universal_time() -> datetime:
    """Return the time now."""
    return datetime.now(UTC)
