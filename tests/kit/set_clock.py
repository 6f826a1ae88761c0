"""A clock for tests."""

from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)


class SetClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        """Return what it shows."""
        return self.now

    def pass_days(self, days: float) -> None:
        """Move it on."""
        self.now += timedelta(days=days)
