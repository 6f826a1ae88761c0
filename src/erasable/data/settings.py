"""What can be set about the data before anything is learned from it."""

from pydantic import BaseModel, ConfigDict, Field, field_validator

from erasable.data.rating_scale import RatingScale


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
