"""NMF (He et al., "Neural Collaborative Filtering", 2017) in the paper's sizes, and how it solves a user's row."""

import threading
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from erasable.models._batches import Floats
from erasable.models._embedding_model import (
    ITEM_ROWS,
    USER_ROWS,
    Course,
    EmbeddingModel,
    OwnData,
    StepBuffers,
    StepSettings,
    begin_row,
    blocks,
    sample_step,
    step_buffers,
    step_row,
    steps_of_user,
)
from erasable.models._nmf_kernel import FIRST, ROW, SECOND, SHAPES, WIDTH, nmf_batches
from erasable.models.base import Arrays, Scores, Settings
from erasable.seeding.compiled import compiled


class FixedNmf(NamedTuple):
    """The shared parameters that solving a row reads, with each item's part of the product and of the first layer."""

    products: Floats
    firsts: Floats
    user_in: Floats
    user_in_transposed: Floats
    hidden: Floats
    hidden_transposed: Floats
    second_bias: Floats
    hidden_out: Floats
    bias_out: Floats


class LayerBuffers(NamedTuple):
    """Buffers for the layers, a row for each sample of a step, and for the user's half of the first one."""

    first: Floats
    first_gradients: Floats
    second: Floats
    user_first: Floats
    lanes: Floats


def fixed_nmf(shared: Arrays) -> FixedNmf:
    """Return the parameters that solving a row reads; copies, since numba would compile again for read-only arrays."""
    items = shared["item"]
    return FixedNmf(
        items[:, :WIDTH] * shared["product_out"],
        items[:, WIDTH:] @ shared["item_in"] + shared["first_bias"],
        shared["user_in"].copy(),
        shared["user_in"].T.copy(),
        shared["hidden"].copy(),
        shared["hidden"].T.copy(),
        shared["second_bias"].copy(),
        shared["hidden_out"].copy(),
        shared["bias_out"].copy(),
    )


@compiled
def layer_buffers(samples: int) -> LayerBuffers:
    """Allocate buffers for steps of up to this many samples."""
    return LayerBuffers(
        np.empty((samples, FIRST), np.float32),
        np.empty((samples, FIRST), np.float32),
        np.empty((samples, SECOND), np.float32),
        np.empty(FIRST, np.float32),
        np.empty(WIDTH, np.float32),
    )


@compiled
def nmf_row_gradients(
    fixed: FixedNmf, row: Floats, samples: tuple[NDArray[np.int32], Floats], buffers: LayerBuffers, gradients: Floats
) -> None:
    """Write the gradient of the summed loss over one user's samples with respect to that user's row."""
    items, targets = samples
    first, first_gradients = buffers.first[: len(items)], buffers.first_gradients[: len(items)]
    second = buffers.second[: len(items)]
    _forward(fixed, row, items, first, buffers.user_first)
    np.dot(first, fixed.hidden, second)
    _pass_errors(fixed, row, (items, targets), second, buffers.lanes, gradients)
    np.dot(second, fixed.hidden_transposed, first_gradients)
    _backward(fixed, first, first_gradients, buffers.user_first, gradients)


@compiled
def _forward(fixed: FixedNmf, row: Floats, items: NDArray[np.int32], first: Floats, user_first: Floats) -> None:
    user_first[:] = 0
    for place in range(WIDTH):
        for unit in range(FIRST):
            user_first[unit] += row[WIDTH + place] * fixed.user_in[place, unit]
    for sample in range(len(items)):
        item = fixed.firsts[items[sample]]
        for unit in range(FIRST):
            first[sample, unit] = max(item[unit] + user_first[unit], np.float32(0))


@compiled
def _pass_errors(
    fixed: FixedNmf,
    row: Floats,
    samples: tuple[NDArray[np.int32], Floats],
    second: Floats,
    lanes: Floats,
    gradients: Floats,
) -> None:
    """Score each sample and backpropagate to the row's product and the second layer, which then holds gradients."""
    items, targets = samples
    zero = np.float32(0)
    gradients[:] = 0
    for sample in range(len(items)):
        product = fixed.products[items[sample]]
        for unit in range(SECOND):
            second[sample, unit] = max(second[sample, unit] + fixed.second_bias[unit], zero)
        for place in range(WIDTH):
            lanes[place] = (
                product[place] * row[place]
                + fixed.hidden_out[place] * second[sample, place]
                + fixed.hidden_out[WIDTH + place] * second[sample, WIDTH + place]
            )
        for place in range(8):
            lanes[place] += lanes[place + 8]
        for place in range(4):
            lanes[place] += lanes[place + 4]
        logit = ((lanes[0] + lanes[2]) + (lanes[1] + lanes[3])) + fixed.bias_out[0]
        error = np.float32(1) / (np.float32(1) + np.exp(-logit)) - targets[sample]
        for place in range(WIDTH):
            gradients[place] += error * product[place]
        for unit in range(SECOND):
            second[sample, unit] = error * fixed.hidden_out[unit] if second[sample, unit] > zero else zero


@compiled
def _backward(fixed: FixedNmf, first: Floats, first_gradients: Floats, user_first: Floats, gradients: Floats) -> None:
    user_first[:] = 0
    for sample in range(len(first)):
        for unit in range(FIRST):
            user_first[unit] += first_gradients[sample, unit] if first[sample, unit] > 0 else np.float32(0)
    for unit in range(FIRST):
        for place in range(WIDTH):
            gradients[WIDTH + place] += user_first[unit] * fixed.user_in_transposed[unit, place]


@compiled(nogil=True)
def nmf_rows(run: tuple[int, int], data: OwnData, course: Course, fixed: FixedNmf, rows: Floats) -> None:
    """Solve the rows of a run of users, one after another, in place."""
    buffers: StepBuffers = step_buffers(run, data, course, ROW)
    layers = layer_buffers(len(buffers.items))
    for user in range(run[0], run[1]):
        begin_row(buffers, rows[user])
        steps = steps_of_user(data, user, course)
        for step in range(steps):
            count, share = sample_step(buffers, data, user, step, course)
            samples = (buffers.items[:count], buffers.targets[:count])
            nmf_row_gradients(fixed, buffers.table.rows[0], samples, layers, buffers.gradients)
            step_row(buffers, count, share, (step, steps), course)
        rows[user] = buffers.table.rows[0]


_BLOCK = 4096


class _BlockBuffers(threading.local):
    """Buffers for one block of items, kept by each thread: allocating them for each call took a third of the time."""

    def __init__(self) -> None:
        self.first = np.empty((_BLOCK, FIRST), np.float32)
        self.second = np.empty((_BLOCK, SECOND), np.float32)


class PreparedNmf:
    """The items' half of the first layer, computed once, and the parameters for solving rows, when first needed."""

    def __init__(self, shared: Arrays) -> None:
        self.shared = shared
        self.products = np.ascontiguousarray(shared[ITEM_ROWS][:, :WIDTH])
        self.firsts = shared[ITEM_ROWS][:, WIDTH:] @ shared["item_in"] + shared["first_bias"]
        self.parts = blocks(len(self.products), _BLOCK)
        self.buffers = _BlockBuffers()

    @cached_property
    def fixed(self) -> FixedNmf:
        """The shared parameters that solving a row reads."""
        return fixed_nmf(self.shared)


class NMFSettings(StepSettings):
    """The settings of NMF."""


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
    batch_kernel = nmf_batches
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
        """Return the logits: the sigmoid would not change the order."""
        shared, buffers, own = prepared.shared, prepared.buffers, row[USER_ROWS]
        # relu(x + c) = max(x, −c) + c, and the constant goes through the next product: half the passes over memory.
        first_part = own[WIDTH:] @ shared["user_in"]
        second_part = first_part @ shared["hidden"] + shared["second_bias"]
        scores: Scores = prepared.products @ (own[:WIDTH] * shared["product_out"])
        scores += shared["bias_out"] + second_part @ shared["hidden_out"]
        for part in prepared.parts:
            first, second = buffers.first[: part.stop - part.start], buffers.second[: part.stop - part.start]
            np.maximum(prepared.firsts[part], -first_part, out=first)
            np.dot(first, shared["hidden"], out=second)
            np.maximum(second, -second_part, out=second)
            scores[part] += second @ shared["hidden_out"]
        return scores

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return the sigmoid of the scores."""
        return expit(scores.astype(np.float64))
