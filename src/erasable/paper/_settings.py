"""The settings of the paper's experiments: methods, requests and the users they name, and the grid."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from erasable.chain.dataset import Dataset
from erasable.data.interactions import Interactions
from erasable.evaluation.protocols import PROTOCOLS, Protocol
from erasable.grouping.registry import MOST_GROUPS
from erasable.seeding import child_key, id_keys

MethodName = Literal[
    "Retrain", "C-SISA", "C-SISA own", "L-Rand", "L-BKM", "L-CBKM", "L-CBKM hard", "L-Near", "L-CLPA", "L-CGMM"
]

METHODS: Mapping[MethodName, Mapping[str, Any]] = {
    "Retrain": {"strategy": "retrain"},
    "C-SISA": {"strategy": "sisa", "aggregate": "mean", "grouping": "random"},
    "C-SISA own": {"strategy": "sisa", "aggregate": "own", "grouping": "random"},
    "L-Rand": {"strategy": "laser", "grouping": "random"},
    "L-BKM": {"strategy": "laser", "grouping": "bkm"},
    "L-CBKM": {"strategy": "laser", "grouping": "cbkm"},
    "L-CBKM hard": {"strategy": "laser", "grouping": "cbkm", "order": "hard"},
    "L-Near": {"strategy": "laser", "grouping": "cbkm-near"},
    "L-CLPA": {"strategy": "laser", "grouping": "clpa"},
    "L-CGMM": {"strategy": "laser", "grouping": "cgmm"},
}
RequestName = Literal[
    "learn", "rand@2.5", "rand@5", "top@2.5", "top@5", "one", "first group@5", "random group@5", "last group@5"
]


def method_settings(method: MethodName, groups: int) -> dict[str, Any]:
    """Return the settings of a method; with one group every method is the same as Retrain."""
    if method == "Retrain" or groups == 1:
        return dict(METHODS["Retrain"])
    return {**METHODS[method], "groups": groups}


def users_to_forget(dataset: Dataset, request: RequestName) -> list[str]:
    """Return the users that a request names; the choice depends only on the seed, the ids and the ratings.

    rand@K and top@K are K per cent of all users, at random or those with most ratings; one is a single random user; the
    others are K per cent of the users of the first, a random or the last group of the chain.
    """
    kind, _, share = request.partition("@")
    if kind == "learn":
        return []
    users, ratings = _users(dataset) if kind in ("rand", "top", "one") else _group(dataset, kind)
    count = 1 if kind == "one" else max(1, round(float(share) / 100 * len(users)))
    keys = id_keys(dataset.config.seed, "experiment request", users)
    order = np.lexsort((keys, -ratings)) if kind == "top" else np.argsort(keys, kind="stable")
    return [users[place] for place in order[:count].tolist()]


def _users(dataset: Dataset) -> tuple[list[str], NDArray[np.int64]]:
    everyone = Interactions.merge([*dataset.groups, dataset.held_out])
    return everyone.users.texts(), np.diff(everyone.user_starts)


def _group(dataset: Dataset, kind: str) -> tuple[list[str], NDArray[np.int64]]:
    last = len(dataset.groups) - 1
    random = child_key(dataset.config.seed, "experiment group") % (last + 1)
    group = dataset.groups[{"first group": 0, "random group": random, "last group": last}[kind]]
    return group.users.texts(), np.diff(group.user_starts)


class ExperimentSettings(BaseModel):
    """The grid of an experiment and the training of its chains; no setting is chosen by looking at test data."""

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
