"""The rating scale, declared or recognised once and then frozen; and the settings of the data."""

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict, Field, field_validator

from erasable.errors import DataRefused, Said, WrongUse, option

_HIGHEST = 1e12  # documents hold the scale as canonical JSON, which is exact for whole numbers below 2^53 only
_REMEDY = Said("give the scale with rating_scale=(LOW, HIGH)", "give the scale with --rating-scale LOW HIGH")


@dataclass(frozen=True)
class RatingScale:
    """The lowest and the highest possible rating; 1 and 1 for implicit feedback.

    >>> str(RatingScale(0.5, 5))
    '0.5–5'
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        # A stage's name covers the scale, and in JSON 5 and 5.0 differ.
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        if not (isfinite(self.low) and isfinite(self.high)) or self.high > _HIGHEST:
            raise WrongUse(option("rating_scale"), f" needs two finite numbers up to {_HIGHEST:g}, such as 1 5")
        if not 0 <= self.low <= self.high or self.high == 0:
            raise WrongUse(
                option("rating_scale"),
                " needs LOW HIGH from 0 up, HIGH above 0 and not below LOW, such as 1 5: shift ratings that go below 0",
            )

    def contains(self, rating: ArrayLike) -> bool:
        """Whether every rating is on the scale."""
        return not np.any(self.outside(np.asarray(rating)))

    def check(self, rating: ArrayLike) -> None:
        """Refuse ratings outside the scale, naming the first such row, counted from 1."""
        ratings = np.atleast_1d(np.asarray(rating, dtype=np.float32))
        outside = self.outside(ratings)
        if np.any(outside):
            row = int(np.argmax(outside))
            raise DataRefused(
                f"row {row + 1}: rating {ratings[row]:g} lies outside the scale {self}: correct it, or drop the row"
            )

    def outside(self, rating: np.ndarray) -> np.ndarray:
        """Return a mask of the ratings outside the scale."""
        # Ratings are float32: 0.7 must not fall below a lowest rating of 0.7.
        return ~((rating >= np.float32(self.low)) & (rating <= np.float32(self.high)))

    def __str__(self) -> str:
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g}–{self.high:g}"


KNOWN_SCALES = (
    RatingScale(1, 1),
    RatingScale(0, 1),
    RatingScale(1, 5),
    RatingScale(0.5, 5),
    RatingScale(0, 5),
    RatingScale(1, 10),
    RatingScale(0, 10),
)


def recognise_scale(rating: ArrayLike) -> RatingScale:
    """Return the first known scale that contains the ratings."""
    ratings = np.asarray(rating, dtype=np.float32)
    if not ratings.size:
        raise DataRefused("there is no rating to recognise a scale from: ", _REMEDY)
    ends = np.array([ratings.min(), ratings.max()])
    if ends[0] < 0:
        raise DataRefused(f"ratings from {ends[0]:g} to {ends[1]:g} go below 0: shift them so that none does")
    found = next((scale for scale in KNOWN_SCALES if scale.contains(ends)), None)
    if found is None:
        raise DataRefused(f"ratings from {ends[0]:g} to {ends[1]:g} fit no known scale: ", _REMEDY)
    return found


class DataSettings(BaseModel):
    """Holdout, filter and rating scale."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    holdout: float = Field(0.0, ge=0, lt=1)
    """The share of interactions kept out of training for `evaluate`."""

    min_interactions: int = Field(0, ge=0)
    """Drop users and items with fewer interactions, repeatedly (a k-core); frozen unless the policy is regroup."""

    rating_scale: tuple[float, float] | None = None
    """The lowest and the highest rating there can be; recognised from the data if not given."""

    @field_validator("rating_scale")
    @classmethod
    def _makes_sense(cls, value: tuple[float, float] | None) -> tuple[float, float] | None:
        if value is not None:
            RatingScale(*value)  # refuses what makes no sense
        return value
