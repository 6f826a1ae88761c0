"""What can be set about the chain; `Config` joins it with the settings of data, groups and model."""

import math
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from erasable.data.settings import DataSettings
from erasable.errors import WrongUse
from erasable.grouping import GroupingSettings
from erasable.models import CLOSED_FORMS, ModelSettings

Strategy = Literal["laser", "sisa", "retrain"]
Aggregate = Literal["mean", "own"]
PresetName = Literal["paper"]
PRESETS: Mapping[PresetName, Mapping[str, Any]] = {
    "paper": {"model": "nmf", "strategy": "laser", "grouping": "cbkm", "groups": 8, "order": "easy", "rows": "stage"},
}
"""Settings that belong together: paper is LASER as it was published."""
RowsFrom = Literal["stage", "solved"]
OF_CHAINS = {
    *GroupingSettings.model_fields,
    *("batch", "negatives", "learning_rate", "row_epochs"),
    *("strategy", "aggregate", "epochs", "epoch_budget"),
}
"""Settings of models that are trained by steps."""
OF_CLOSED_FORMS = {"factors", "regularisation"}
"""Settings of models that are solved at once."""
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

    rows: RowsFrom | None = None
    """Where personal rows come from: the stage that trained them, or solved from the own data after the last stage."""

    anchors: float = Field(1.0, gt=0, le=1)
    """The share of users, by a hash of seed and id, whose data shape shared parameters; the others have a row only."""

    risk_threshold: float | None = None
    """From which risk on (--risk-column) users go into a group of their own: last, or with rows only if solved."""

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

    @model_validator(mode="before")
    @classmethod
    def _imply_model(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take the model that has what is set: groups, batches and the like mean one that is trained by steps."""
        if not OF_CHAINS & given.keys() or OF_CLOSED_FORMS & given.keys():
            return given
        return {"model": "nmf", **given}

    @model_validator(mode="after")
    def _implied(self) -> Self:
        self._imply_strategy()
        self._imply_rows()
        self._imply_policy()
        return self

    def _imply_strategy(self) -> None:
        if self.model in CLOSED_FORMS:
            if "strategy" in self.model_fields_set and self.strategy != "retrain":
                raise ValueError(
                    f"{self.model} is solved at once, so it has no groups to train in turn or apart: leave out "
                    f"--strategy {self.strategy}, or choose --model nmf"
                )
            self._set("strategy", "retrain")
        if self.strategy == "sisa":
            self._set("aggregate", self.aggregate or "mean")
        elif self.aggregate is not None:
            raise ValueError("only the strategy sisa has several models: leave out --aggregate")
        if self.strategy == "retrain":
            self._set("groups", 1)

    def _imply_rows(self) -> None:
        needed = self.anchors < 1 or self.model == "als"
        if self.rows is None:
            self._set("rows", "solved" if needed else "stage")
        if self.rows == "stage" and needed:
            raise ValueError("users who are no anchors, and those of als, have solved rows: leave out --rows stage")
        if self.rows == "solved" and self.strategy == "sisa":
            raise ValueError(
                "sisa has several models and rows are solved for one: leave out --rows and --anchors, or --strategy"
            )
        if self.risk_threshold is not None and self.rows == "stage" and self.strategy == "retrain":
            laser = "" if self.model in CLOSED_FORMS else ", or --strategy laser"
            raise ValueError(f"all are trained at once, so nobody can go last: give --anchors below 1{laser}")
        if self.risk_threshold is not None and self.policy == "regroup":
            raise ValueError("risk is not kept, so groups by it can't be decided anew: leave out --policy regroup")

    def _imply_policy(self) -> None:
        if self.grouping == "independent" and self.policy == "fixed":
            self._set("policy", "independent")
        if self.grouping == "given" and self.policy == "regroup":
            raise ValueError("groups that are given can't be decided anew: leave out --policy regroup")
        if self.policy == "independent" and self.grouping != "independent":
            raise ValueError(
                "the policy independent needs the grouping independent: give --grouping independent, or leave it out"
            )
        if self.grouping == "independent" and self.order != "number":
            raise ValueError("groups that are independent have the order number: leave out --order")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @classmethod
    def of(cls, settings: Mapping[str, Any], preset: str | None = None) -> Self:
        """Build a configuration, on top of a preset if one is named; a wrong value is refused in its option's words."""
        if preset is not None and preset not in PRESETS:
            raise WrongUse(f"there is no preset {preset!r}: choose one of {', '.join(PRESETS)}")
        below: Mapping[str, Any] = next((values for name, values in PRESETS.items() if name == preset), {})
        try:
            return cls(**{**below, **settings})
        except ValidationError as error:
            raise wrong_setting(error) from None

    @property
    def stage_epochs(self) -> int:
        """Return how many epochs each stage gets."""
        return self.epochs if self.epoch_budget == "full" else math.ceil(self.epochs / self.groups)

    def stage_facts(self) -> dict[str, object]:
        """Return what of the configuration a stage depends on, and nothing else."""
        relevant = set(ModelSettings.model_fields) - {"row_epochs"}
        return {**self.model_dump(include=relevant), "epochs": self.stage_epochs}

    def row_facts(self) -> dict[str, object]:
        """Return what of the configuration a solved row depends on beside the shared parameters."""
        return self.model_dump(include=set(ModelSettings.model_fields))
