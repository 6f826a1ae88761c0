"""What can be set about the paper's experiments: a grid of models, methods, groups, requests and seeds."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from erasable.evaluation import PROTOCOLS, Protocol
from erasable.experiments.methods import MethodName
from erasable.experiments.requests import RequestName
from erasable.grouping import MOST_GROUPS


class ExperimentSettings(BaseModel):
    """The grid of an experiment and how its chains are trained; no choice in it is made by looking at test data."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    models: tuple[Literal["dmf", "nmf"], ...] = Field(("dmf", "nmf"), min_length=1)
    """The models."""

    methods: tuple[MethodName, ...] = ("Retrain", "C-SISA", "C-SISA own", "L-Rand", "L-BKM", "L-CBKM")
    """What is compared in utility; L-Near, L-CLPA and L-CGMM are there too."""

    groups: tuple[Annotated[int, Field(ge=1, le=MOST_GROUPS)], ...] = Field((1, 2, 4, 8, 16), min_length=1)
    """The numbers of groups, the paper's S."""

    requests: tuple[RequestName, ...] = ("learn", "rand@2.5", "rand@5", "top@2.5", "top@5")
    """What is forgotten before utility is measured; learn is nothing."""

    seeds: int = Field(3, ge=1, le=100)
    """How many runs, with the seeds 0, 1, 2 and so on."""

    epochs: int = Field(20, ge=1, le=10_000)
    """The paper's T, the total number of training epochs."""

    epoch_budget: Literal["shared", "full"] = "shared"
    """Whether the groups share the epochs or each gets all of them."""

    batch: int = Field(2048, ge=1, le=1_000_000)
    """How many samples one step looks at."""

    negatives: int = Field(4, ge=0, le=100)
    """How many items that the user has not are sampled for each interaction."""

    learning_rate: float | None = Field(None, gt=0, le=1)
    """Adam's step size; 0.001 for nmf and 0.005 for dmf if not given."""

    holdout: float = Field(0.1, gt=0, lt=1)
    """The share of interactions that is kept for testing."""

    min_interactions: int = Field(0, ge=0)
    """Drop users and items with fewer interactions, repeatedly; the paper's text says 5, its statistics say 0."""

    protocols: tuple[Protocol, ...] = Field(PROTOCOLS, min_length=1)
    """How utility is measured; figures and verdicts are about the first."""

    time_model: Literal["dmf", "nmf"] = "dmf"
    """The model whose running time is measured; the paper's choice is dmf."""

    time_seeds: int = Field(2, ge=1, le=100)
    """With how many seeds running times are measured; the median counts."""

    repeats: int = Field(1, ge=1, le=100)
    """How often each running time is measured with each seed."""

    poisoned: float = Field(3.0, gt=0, le=50)
    """Fake users, in per cent of the users."""
