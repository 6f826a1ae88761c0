"""The settings of the service, its clock, and its output: a line of JSON for each event, on standard error."""

import json
import logging
import math
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from erasable.errors import DiskFull, QueueLost, QueueUnreachable, SuppressionUnknown, WorkspaceDamaged
from erasable.models.settings import wrong_setting
from erasable.requests.request import DISK_FULL

Clock = Callable[[], datetime]


def universal_time() -> datetime:
    """Return the time now."""
    return datetime.now(UTC)


_LEAST_LIMIT = 10


class ServiceSettings(BaseModel):
    """How requests are taken, carried out and answered."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    batch_window: float = Field(default=7, ge=0, le=28)
    """Within how many days a request is carried out, together with others; 0 means at once."""
    alarm_day: int = Field(default=21, ge=1, le=28)
    """On which day after its receipt an open request raises an alarm."""
    limit_day: int = Field(default=28, ge=1, le=28)
    """By which day after its receipt a request must be carried out, before the legal month ends."""
    daily_share: float = Field(default=0.01, ge=0, le=1)
    """What share of the people one token may ask to be erased in a day; further requests wait for an officer."""
    lease_seconds: float = Field(default=30, gt=0, le=3600)
    """How long a worker may be silent before another takes its place."""
    attempts: int = Field(default=6, ge=1, le=1000)
    """How often a failing erasure is tried before it waits for someone to look at it."""
    retry_seconds: float = Field(default=60, ge=0, le=86_400)
    """How long to wait after the first failure; four times as long after each further one."""
    learn_seconds: float = Field(default=60, ge=0, le=86_400)
    """How long incoming interactions are collected before they are learned."""
    restart_seconds: float = Field(default=0, ge=0, le=86_400)
    """Within how many seconds after erasures the server restarts, to clear its memory of them; 0 means never."""
    sync: str | None = Field(default=None, min_length=1)
    """An export that the workspace is made equal to every day: a file, folder, pattern or URL, as for erasable sync."""
    sync_at: str = "03:00"
    """At what time of day that begins, in universal time; if the service was down then, when it is back that day."""
    sync_forget_missing: bool = False
    """Whether people and interactions that the export lacks are forgotten, with certificates."""
    sync_items: str | None = Field(default=None, min_length=1)
    """A file with new attributes of items, which each sync reads; where features are learned, it learns from these."""
    sync_catalogue: str | None = Field(default=None, min_length=1)
    """Where items were declared: a file with further ones, which each sync reads."""
    largest_body: int = Field(default=1_000_000, ge=1_000)
    """How many bytes the body of an HTTP request may have."""
    slowest_body: float = Field(default=10, gt=0)
    """Within how many seconds an HTTP request must arrive completely."""

    @property
    def window(self) -> timedelta:
        """The batch window."""
        return timedelta(days=self.batch_window)

    def sync_time(self, now: datetime) -> datetime:
        """Return when the sync of this day begins.

        >>> DEFAULT_SETTINGS.sync_time(datetime(2026, 11, 18, 2, 30, tzinfo=UTC)).isoformat()
        '2026-11-18T03:00:00+00:00'
        """
        hour, minute = map(int, self.sync_at.split(":"))
        return now.astimezone(UTC).replace(hour=hour, minute=minute, second=0, microsecond=0)

    @field_validator("sync_at")
    @classmethod
    def _is_a_time(cls, value: str) -> str:
        if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", value):
            raise ValueError("give hour and minute with two digits each, such as 03:00")
        return value

    @model_validator(mode="after")
    def _alarm_comes_first(self) -> Self:
        if self.alarm_day > self.limit_day or self.batch_window > self.limit_day:
            raise ValueError("the alarm and the batch window come before the limit: give a smaller one")
        return self

    @model_validator(mode="after")
    def _files_are_for_a_sync(self) -> Self:
        if self.sync is None and (self.sync_items or self.sync_catalogue or self.sync_forget_missing):
            raise ValueError("without an export nothing is synced: give `sync` too, or leave out what belongs to it")
        return self

    def daily_limit(self, people: int) -> int:
        """Return how many people one token may ask to be erased in a day, without an officer.

        >>> [DEFAULT_SETTINGS.daily_limit(people) for people in (60, 1_000, 1_001, 50_000)]
        [10, 10, 11, 500]
        """
        return max(_LEAST_LIMIT, math.ceil(self.daily_share * people))


DEFAULT_SETTINGS = ServiceSettings()


def settings_from(given: Mapping[str, Any]) -> ServiceSettings:
    """Return the settings given, or refuse the first that is invalid."""
    try:
        return ServiceSettings(**given)
    except ValidationError as error:
        raise wrong_setting(error) from None


REMEDIES: dict[type, str] = {
    DiskFull: DISK_FULL,
    QueueUnreachable: "the database of requests can't be reached, and it says who has asked to be erased, so nobody is "
    "served: see that it runs, and that this machine may connect to it; work resumes by itself then",
    QueueLost: "the requests are lost, and they say who has asked to be erased, so nobody is served: run erasable "
    "status on the workspace, which says how to bring them back",
    SuppressionUnknown: "who has asked to be erased can't be read, so nobody is served: run erasable status on the "
    "workspace, which says what to do",
    WorkspaceDamaged: "a file of the workspace is missing or damaged: run erasable status on the workspace, which says "
    "which one and what to do",
}
"""What to do about errors whose own message may name people or paths of this machine."""


def log(event: str, **facts: object) -> None:
    """Write an event as a line of JSON to standard error; `facts` must name nobody."""
    line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **facts}
    with suppress(OSError):  # output that can't be written, as on a full disk, must not stop the work
        sys.stderr.write(json.dumps(line, ensure_ascii=True) + "\n")
        sys.stderr.flush()


def log_failure(event: str, error: BaseException) -> None:
    """Write an error by its type and where it was raised; its message may name people."""
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{frame.filename}:{frame.lineno}" for frame in frames[-5:]]
    log(event, error=type(error).__name__, **in_words(error), where=where)


def in_words(error: BaseException) -> dict[str, str]:
    """Return what to do about an error, if that is known without naming anyone."""
    return next(({"reason": REMEDIES[kind]} for kind in type(error).__mro__ if kind in REMEDIES), {})


def log_everything_as_json() -> None:
    """Write what libraries log in the same way."""
    logging.basicConfig(level=logging.WARNING, handlers=[_AsJson()], force=True)


class _AsJson(logging.Handler):
    """Writes a library's message without its arguments, which may name people."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            log_failure(str(record.msg), error)
        else:
            log(str(record.msg), logger=record.name)
