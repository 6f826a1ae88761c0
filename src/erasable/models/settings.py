"""What can be set about a model and its training steps."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

ModelName = Literal["nmf", "dmf", "ease", "als"]
CLOSED_FORMS: tuple[ModelName, ...] = ("ease", "als")
USUAL_REGULARISATION = {"ease": 500.0, "als": 20.0}
USUAL_RATES = {"nmf": 0.001, "dmf": 0.005}  # the paper's 0.001 leaves dmf far behind (docs/decisions)


class ModelSettings(BaseModel):
    """The model, and how its gradient steps are taken."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: ModelName = "als"
    """The model: als or ease (closed forms), nmf or dmf (trained by steps); nmf if groups or steps are set."""

    batch: int = Field(2048, ge=1, le=1_000_000)
    """How many samples, positives and their negatives, one step looks at."""

    negatives: int = Field(4, ge=0, le=100)
    """How many items that the user has not are sampled for each interaction, anew in each epoch."""

    learning_rate: float | None = Field(None, gt=0, le=1)
    """Adam's step size; 0.001 for nmf and 0.005 for dmf if not given."""

    row_epochs: int = Field(3, ge=1, le=10_000)
    """How often solving a personal row goes through the user's own interactions (nmf and dmf)."""

    factors: int = Field(64, ge=1, le=1024)
    """How many numbers stand for a user and for an item in als."""

    regularisation: float | None = Field(None, gt=0, le=1e12)
    """What keeps the weights of ease and als small; 500 for ease and 20 for als if not given."""

    @model_validator(mode="after")
    def _usual_values(self) -> Self:
        if self.regularisation is None:
            object.__setattr__(self, "regularisation", USUAL_REGULARISATION.get(self.model, 1.0))
        if self.learning_rate is None:
            object.__setattr__(self, "learning_rate", USUAL_RATES.get(self.model, 0.001))
        return self
