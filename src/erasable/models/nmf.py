"""NMF (He et al., "Neural Collaborative Filtering", 2017) in the paper's sizes: start and scores; not gradients."""

import threading
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from erasable.models.embedding_model import ITEM_ROWS, USER_ROWS, EmbeddingModel, StepSettings, blocks
from erasable.models.model import Scores
from erasable.models.nmf_kernel import FIRST, ROW, SECOND, SHAPES, WIDTH, nmf_shift
from erasable.models.nmf_rows import FixedNmf, fixed_nmf, nmf_rows
from erasable.models.parameters import Arrays
from erasable.models.settings import Settings

_BLOCK = 4096


class _Room(threading.local):
    """Room for one block of items, kept by each thread: asking the system for it anew took a third of the time."""

    def __init__(self) -> None:
        self.first = np.empty((_BLOCK, FIRST), np.float32)
        self.second = np.empty((_BLOCK, SECOND), np.float32)


class PreparedNmf:
    """The items' half of the first layer, computed once; and all that solving a row wants, when one is first solved."""

    def __init__(self, shared: Arrays) -> None:
        self.shared = shared
        self.products = np.ascontiguousarray(shared[ITEM_ROWS][:, :WIDTH])
        self.firsts = shared[ITEM_ROWS][:, WIDTH:] @ shared["item_in"] + shared["first_bias"]
        self.parts = blocks(len(self.products), _BLOCK)
        self.room = _Room()

    @cached_property
    def fixed(self) -> FixedNmf:
        """The shared parameters as a row that is solved sees them."""
        return fixed_nmf(self.shared)


class NMFSettings(StepSettings):
    """What can be set about NMF."""


class NMF(EmbeddingModel):
    """A product of two embeddings and two layers on two more, joined into one sigmoid.

    Parameters
    ----------
    **settings
        Those of `NMFSettings`: `epochs`, `batch`, `negatives`, `learning_rate`, `row_epochs`.

    Examples
    --------
    >>> NMF(epochs=10, batch=512)
    NMF(epochs=10, batch=512)
    """

    name: ClassVar[str] = "nmf"
    settings_class: ClassVar[type[Settings]] = NMFSettings
    width = ROW
    shapes = SHAPES
    shift = nmf_shift
    row_kernel = nmf_rows
    row_rate = 0.0125
    row_pull = 16.0

    def deviation(self, name: str) -> float:
        """Return the paper's N(0, 0.01²) for weights and rows; biases start at 0."""
        return 0.0 if "bias" in name else 0.01

    def prepare(self, shared: Arrays) -> PreparedNmf:
        """Compute the items' half of the first layer."""
        return PreparedNmf(shared)

    def score(self, prepared: PreparedNmf, row: Arrays, owned: NDArray[np.int32]) -> Scores:
        """Score before the sigmoid, which changes no order."""
        shared, room, own = prepared.shared, prepared.room, row[USER_ROWS]
        # relu(x + c) = max(x, −c) + c, and the constant passes through the next product: half the passes.
        first_part = own[WIDTH:] @ shared["user_in"]
        second_part = first_part @ shared["hidden"] + shared["second_bias"]
        scores: Scores = prepared.products @ (own[:WIDTH] * shared["product_out"])
        scores += shared["bias_out"] + second_part @ shared["hidden_out"]
        for part in prepared.parts:
            first, second = room.first[: part.stop - part.start], room.second[: part.stop - part.start]
            np.maximum(prepared.firsts[part], -first_part, out=first)
            np.dot(first, shared["hidden"], out=second)
            np.maximum(second, -second_part, out=second)
            scores[part] += second @ shared["hidden_out"]
        return scores

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return the sigmoid of the scores."""
        return expit(scores.astype(np.float64))
