"""DMF (Xue et al., "Deep Matrix Factorization Models", 2017) in the paper's sizes: start and scores; not gradients."""

import math
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from erasable.models.dmf_kernel import CLAMP, FIRST, SHAPES, SMALLEST_NORM, WIDTH, dmf_shift
from erasable.models.dmf_rows import FixedDmf, dmf_rows, fixed_dmf
from erasable.models.embedding_model import ITEM_ROWS, USER_ROWS, EmbeddingModel, StepSettings, blocks
from erasable.models.model import Scores
from erasable.models.parameters import Arrays
from erasable.models.settings import Settings

_BLOCK = 4096
_ROW_DEVIATION = 0.1
_FAN_IN = {"user_first": WIDTH, "item_first": WIDTH, "user_second": FIRST, "item_second": FIRST}


class PreparedDmf:
    """The items' directions, computed once; and all that solving a row wants, when one is first solved."""

    def __init__(self, shared: Arrays) -> None:
        self.shared = shared
        self.directions = _item_directions(shared)

    @cached_property
    def fixed(self) -> FixedDmf:
        """The shared parameters as a row that is solved sees them."""
        return fixed_dmf(self.shared, self.directions)


class DMFSettings(StepSettings):
    """What can be set about DMF."""

    learning_rate: float = Field(0.005, gt=0, le=1)  # the paper's 0.001 leaves dmf far behind (docs/decisions)
    """Adam's step size."""


class DMF(EmbeddingModel):
    """A tower of two layers for each side; the score is the cosine of their outputs.

    Parameters
    ----------
    **settings
        Those of `DMFSettings`: `epochs`, `batch`, `negatives`, `learning_rate`, `row_epochs`.

    Examples
    --------
    >>> DMF().settings.learning_rate
    0.005
    """

    name: ClassVar[str] = "dmf"
    settings_class: ClassVar[type[Settings]] = DMFSettings
    width = WIDTH
    shapes = SHAPES
    shift = dmf_shift
    row_kernel = dmf_rows
    row_rate = 0.02
    row_pull = 10.0

    def deviation(self, name: str) -> float:
        """Return 0.1 for rows and He et al.'s (2015) for layers: from the paper's N(0, 0.01²) nothing is learned."""
        if name in self.shapes:
            return math.sqrt(2 / _FAN_IN[name]) if name in _FAN_IN else 0.0
        return _ROW_DEVIATION

    def prepare(self, shared: Arrays) -> PreparedDmf:
        """Go through the items' tower."""
        return PreparedDmf(shared)

    def score(self, prepared: PreparedDmf, row: Arrays, owned: NDArray[np.int32]) -> Scores:
        """Score by the cosine."""
        scores: Scores = prepared.directions @ _direction(prepared.shared, "user", row[USER_ROWS][None, :])[0]
        return scores

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return the cosines, clamped away from 0 and 1 as in training."""
        return np.clip(scores.astype(np.float64), CLAMP, 1 - CLAMP)


def _item_directions(shared: Arrays) -> NDArray[np.float32]:
    rows = shared[ITEM_ROWS]
    if not len(rows):
        return _direction(shared, "item", rows)
    return np.concatenate([_direction(shared, "item", rows[part]) for part in blocks(len(rows), _BLOCK)])


def _direction(shared: Arrays, side: str, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    first = np.maximum(rows @ shared[f"{side}_first"] + shared[f"{side}_first_bias"], 0)
    output = np.maximum(first @ shared[f"{side}_second"] + shared[f"{side}_second_bias"], 0)
    norms = np.maximum(np.sqrt((output * output).sum(axis=1, keepdims=True)), SMALLEST_NORM)
    return (output / norms).astype(np.float32, copy=False)
