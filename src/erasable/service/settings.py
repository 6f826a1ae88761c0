"""What can be set about the service."""

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from erasable.models.settings import wrong_setting

_LEAST_LIMIT = 10


class ServiceSettings(BaseModel):
    """How requests are taken, carried out and answered."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    batch_window: float = Field(default=7, ge=0, le=28)
    """Within how many days a request is carried out, together with others; 0 is at once."""
    alarm_day: int = Field(default=21, ge=1, le=28)
    """On which day after its receipt an open request raises an alarm."""
    limit_day: int = Field(default=28, ge=1, le=28)
    """By which day after its receipt a request has to be carried out, before the legal month ends."""
    daily_share: float = Field(default=0.01, ge=0, le=1)
    """What share of the people one token may ask to be erased in a day; further requests wait for an officer."""
    lease_seconds: float = Field(default=30, gt=0, le=3600)
    """How long a worker may be silent before another takes its place."""
    attempts: int = Field(default=6, ge=1, le=1000)
    """How often an erasure that fails is tried before it waits for someone to look at it."""
    retry_seconds: float = Field(default=60, ge=0, le=86_400)
    """How long to wait after the first failure; four times as long after each further one."""
    learn_seconds: float = Field(default=60, ge=0, le=86_400)
    """How long interactions that come in are collected before they are learned."""
    restart_seconds: float = Field(default=0, ge=0, le=86_400)
    """Within how many seconds after erasures the server starts anew, with nothing of them in memory; 0 is never."""
    largest_body: int = Field(default=1_000_000, ge=1_000)
    """How many bytes the body of a request may have."""
    slowest_body: float = Field(default=10, gt=0)
    """Within how many seconds the whole of a request has to arrive."""

    @property
    def window(self) -> timedelta:
        """The batch window."""
        return timedelta(days=self.batch_window)

    @model_validator(mode="after")
    def _alarm_comes_first(self) -> Self:
        if self.alarm_day > self.limit_day or self.batch_window > self.limit_day:
            raise ValueError("the alarm and the batch window come before the limit: give a smaller one")
        return self

    def daily_limit(self, people: int) -> int:
        """Return how many people one token may ask to be erased in a day, without an officer.

        >>> [DEFAULT_SETTINGS.daily_limit(people) for people in (60, 1_000, 1_001, 50_000)]
        [10, 10, 11, 500]
        """
        return max(_LEAST_LIMIT, math.ceil(self.daily_share * people))


DEFAULT_SETTINGS = ServiceSettings()


def settings_from(given: Mapping[str, Any]) -> ServiceSettings:
    """Return the settings that were given, or say which of them makes no sense."""
    try:
        return ServiceSettings(**given)
    except ValidationError as error:
        raise wrong_setting(error) from None
