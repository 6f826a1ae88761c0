"""What can be set about a model and its training steps."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

ModelName = Literal["nmf", "dmf", "ease", "als"]
USUAL_RATES = {"nmf": 0.001, "dmf": 0.005}  # the paper's 0.001 leaves dmf far behind (docs/decisions)


class ModelSettings(BaseModel):
    """The model, and how its gradient steps are taken."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: ModelName = "nmf"
    """The model: nmf or dmf (ease and als are not there yet)."""

    batch: int = Field(2048, ge=1, le=1_000_000)
    """How many samples, positives and their negatives, one step looks at."""

    negatives: int = Field(4, ge=0, le=100)
    """How many items that the user has not are sampled for each interaction, anew in each epoch."""

    learning_rate: float | None = Field(None, gt=0, le=1)
    """Adam's step size; 0.001 for nmf and 0.005 for dmf if not given."""

    @model_validator(mode="after")
    def _usual_rate(self) -> Self:
        if self.learning_rate is None:
            object.__setattr__(self, "learning_rate", USUAL_RATES.get(self.model, 0.001))
        return self
