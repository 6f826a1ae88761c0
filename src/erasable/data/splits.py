"""Splits: which of a person's own interactions are held out; decided by own rows and declared values alone."""

from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, Self

import numpy as np
from pydantic import field_validator, model_validator

from erasable.data.catalogue import split_holdout
from erasable.data.interactions import DataSettings, Interactions
from erasable.data.values import time_of_text

SplitName = Literal["random", "leave-last-out", "time"]
"""Which interactions are held out: `SplitSettings` says what each means."""


@dataclass(frozen=True)
class Split:
    """Divides interactions into training and holdout, person by person.

    Two people never influence each other's split, so it can be computed again for one of them.
    """

    seed: int
    rate: float = 0.0
    """The share of a random split."""
    name: SplitName = "random"
    since: float = np.inf
    """The time from which a split by time holds out."""

    @property
    def needs_time(self) -> bool:
        """Whether interactions without times can't be split."""
        return self.name != "random"

    def of(self, interactions: Interactions) -> tuple[Interactions, Interactions]:
        """Return (training, held out); every person keeps at least one interaction in training."""
        if self.name == "random":
            return split_holdout(interactions, self.rate, self.seed)
        order = interactions.by_time()
        owned = np.diff(interactions.user_starts)
        held = np.zeros(len(interactions), bool)
        if self.name == "leave-last-out":
            held[order[interactions.user_starts[1:][owned > 1] - 1]] = True
        elif interactions.time is not None:
            held = interactions.time >= self.since
            held[order[interactions.user_starts[:-1]]] = False
        return interactions.select(~held), interactions.select(held)


class SplitSettings(DataSettings):
    """What of the data is learned from, and what is held out."""

    split: SplitName = "random"
    """What is held out: a random share (--holdout), each person's latest interaction, or all since --split-time."""

    split_time: str | None = None
    """Hold out what is at or after this date or time (UTC if no zone is given), or number if times are numbers."""

    @field_validator("split_time", mode="before")
    @classmethod
    def _is_a_time(cls, value: Any) -> str | None:  # noqa: ANN401 - whatever is given
        if value is None:
            return None
        text = value.isoformat() if hasattr(value, "isoformat") else str(value).strip()
        try:
            moment = time_of_text(text)
        except ValueError:
            moment = np.nan
        if not isfinite(moment) or isinstance(value, bool):
            raise ValueError(
                f"{text!r} is no date: write 2026-01-31, 2026-01-31T12:00:00+01:00, or a number as in the data"
            )
        return text

    @model_validator(mode="before")
    @classmethod
    def _by_time(cls, given: Any) -> Any:  # noqa: ANN401 - pydantic's own
        """Take a time alone for a split by time."""
        if isinstance(given, dict) and given.get("split_time") is not None and "split" not in given:
            return {**given, "split": "time"}
        return given

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.split == "time" and self.split_time is None:
            raise ValueError('`split="time"` needs a date: give `split_time="2026-01-31"`')
        if self.split != "time" and self.split_time is not None:
            raise ValueError(f'`split="{self.split}"` has no date: leave out `split_time`, or `split`')
        if self.split != "random" and self.holdout:
            raise ValueError(f'`split="{self.split}"` holds out no share: leave out `holdout`')
        return self

    def splitting(self, seed: int) -> Split:
        """Return the split under a seed."""
        since = np.inf if self.split_time is None else time_of_text(self.split_time)
        return Split(seed, self.holdout, self.split, since)
