"""What can be set about the chain; `Config` joins it with the settings of data, groups and model."""

import math
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from erasable.data.settings import DataSettings
from erasable.errors import WrongUse
from erasable.grouping import GroupingSettings
from erasable.models import ModelSettings

Strategy = Literal["laser", "sisa", "retrain"]
Aggregate = Literal["mean", "own"]
Policy = Literal["fixed", "independent", "regroup"]


class ChainSettings(BaseModel):
    """How a model is learned so that it can forget."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    strategy: Strategy = "laser"
    """How to learn: laser (groups in sequence), sisa (a model for each group) or retrain (all at once, a yardstick)."""

    aggregate: Aggregate | None = None
    """What scores under sisa: the mean of all models, or the own group's; mean if not given."""

    epochs: int = Field(20, ge=1, le=10_000)
    """The total number of training epochs, the paper's T."""

    epoch_budget: Literal["shared", "full"] = "shared"
    """Whether the groups share the epochs (the quotient, rounded up, for each) or each gets all of them."""

    policy: Policy = "fixed"
    """How far back exactness goes: fixed (given groups and filter), regroup (decided anew each time) or independent."""

    seed: int = Field(0, ge=0, lt=2**63)
    """The seed of everything random."""


def wrong_setting(error: ValidationError, suffix: str = "") -> WrongUse:
    """Say which option has a wrong value, and why."""
    first = error.errors()[0]
    option = " --" + str(first["loc"][0]).replace("_", "-") + suffix if first["loc"] else ""
    return WrongUse(f"wrong setting{option}: {first['msg'].removeprefix('Value error, ')}")


class Config(DataSettings, GroupingSettings, ModelSettings, ChainSettings):
    """Every setting that decides what is learned."""

    @model_validator(mode="after")
    def _implied(self) -> Self:
        if self.strategy == "sisa":
            object.__setattr__(self, "aggregate", self.aggregate or "mean")
        elif self.aggregate is not None:
            raise ValueError("only the strategy sisa has several models: leave out --aggregate")
        if self.strategy == "retrain":
            object.__setattr__(self, "groups", 1)
        if self.grouping == "independent" and self.policy == "fixed":
            object.__setattr__(self, "policy", "independent")
        if self.grouping == "given" and self.policy == "regroup":
            raise ValueError("groups that are given can't be decided anew: leave out the policy regroup")
        if self.policy == "independent" and self.grouping != "independent":
            raise ValueError("the policy independent needs the grouping independent")
        if self.grouping == "independent" and self.order != "number":
            raise ValueError("groups that are independent have the order number")
        return self

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Build a configuration; a wrong value is refused in the words of its option."""
        try:
            return cls(**settings)
        except ValidationError as error:
            raise wrong_setting(error) from None

    @property
    def stage_epochs(self) -> int:
        """Return how many epochs each stage gets."""
        return self.epochs if self.epoch_budget == "full" else math.ceil(self.epochs / self.groups)

    def stage_facts(self) -> dict[str, object]:
        """Return what of the configuration a stage depends on, and nothing else."""
        return {**self.model_dump(include=set(ModelSettings.model_fields)), "epochs": self.stage_epochs}
