"""NMF (He et al., "Neural Collaborative Filtering", 2017) in the paper's sizes: its gradient, and how a row is solved.

The gradient over one tile of a batch is written out by hand. With α a user's row and β an item's (the paper's "Choice
of Recommendation Models"), ⊙ the product by element:

    first = relu(α·user_in + β·item_in + first_bias)        second = relu(first·hidden + second_bias)
    logit = product_out·(α ⊙ β) + hidden_out·second + bias_out        score = 1 / (1 + exp(−logit))

A row holds two embeddings, one for the product and one for the layers. The user's half of the first layer is computed
once for each unit. Matrix products use BLAS (`np.dot` in compiled code); the other loops are fused. Sums across a row
are written in lanes, since the compiler may not reorder them (see `seeding.compiled`).
"""

import threading
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.models._batches import (
    Batch,
    Floats,
    ParameterTable,
    Positives,
    Rates,
    Sizes,
    Tile,
    sample_units,
    tile_of,
    transpose,
    units_in_batch,
    update_lane,
)
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
from erasable.models._threads import TaskCounts, finish_task, take_task
from erasable.models.base import Arrays, Scores
from erasable.models.machine import cosines
from erasable.models.settings import Settings
from erasable.seeding.compiled import compiled

WIDTH = 16
ROW = 2 * WIDTH  # a row holds the part for the product, then the part for the layers
FIRST = 64
SECOND = 32
SHAPES = {
    "user_in": (WIDTH, FIRST),
    "item_in": (WIDTH, FIRST),
    "first_bias": (FIRST,),
    "hidden": (FIRST, SECOND),
    "second_bias": (SECOND,),
    "product_out": (WIDTH,),
    "hidden_out": (SECOND,),
    "bias_out": (1,),
}
_ITEM_IN = WIDTH * FIRST
_FIRST_BIAS = _ITEM_IN + WIDTH * FIRST
_HIDDEN = _FIRST_BIAS + FIRST
_SECOND_BIAS = _HIDDEN + FIRST * SECOND
_PRODUCT_OUT = _SECOND_BIAS + SECOND
_HIDDEN_OUT = _PRODUCT_OUT + WIDTH
_BIAS_OUT = _HIDDEN_OUT + SECOND


class NmfNetwork(NamedTuple):
    """The arrays of the network, as views into one flat vector (in the order of SHAPES)."""

    user_in: Floats
    item_in: Floats
    first_bias: Floats
    hidden: Floats
    second_bias: Floats
    product_out: Floats
    hidden_out: Floats
    bias_out: Floats


class NmfBuffers(NamedTuple):
    """One thread's buffers for a tile: a row for each unit (user_…) or for each sample."""

    user_product: Floats
    user_rows: Floats
    user_first: Floats
    user_back: Floats
    item_product: Floats
    item_rows: Floats
    item_back: Floats
    first: Floats
    first_gradients: Floats
    second: Floats
    item_in_transposed: Floats
    hidden_transposed: Floats
    lanes: Floats


@compiled
def nmf_network(flat: Floats) -> NmfNetwork:
    """Return named views into a flat network vector."""
    return NmfNetwork(
        flat[:_ITEM_IN].reshape(WIDTH, FIRST),
        flat[_ITEM_IN:_FIRST_BIAS].reshape(WIDTH, FIRST),
        flat[_FIRST_BIAS:_HIDDEN],
        flat[_HIDDEN:_SECOND_BIAS].reshape(FIRST, SECOND),
        flat[_SECOND_BIAS:_PRODUCT_OUT],
        flat[_PRODUCT_OUT:_HIDDEN_OUT],
        flat[_HIDDEN_OUT:_BIAS_OUT],
        flat[_BIAS_OUT:],
    )


@compiled
def nmf_buffers(units: int, samples: int) -> NmfBuffers:
    """Allocate buffers for tiles of up to this many units and samples."""
    return NmfBuffers(
        np.empty((units, WIDTH), np.float32),
        np.empty((units, WIDTH), np.float32),
        np.empty((units, FIRST), np.float32),
        np.empty((units, WIDTH), np.float32),
        np.empty((samples, WIDTH), np.float32),
        np.empty((samples, WIDTH), np.float32),
        np.empty((samples, WIDTH), np.float32),
        np.empty((samples, FIRST), np.float32),
        np.empty((samples, FIRST), np.float32),
        np.empty((samples, SECOND), np.float32),
        np.empty((FIRST, WIDTH), np.float32),
        np.empty((SECOND, FIRST), np.float32),
        np.empty(WIDTH, np.float32),
    )


@compiled
def nmf_gradient(network: NmfNetwork, users: Floats, items: Floats, tile: Tile, buffers: NmfBuffers) -> None:
    """Write the gradients of a tile's summed loss: for each unit's user, each sample's item, and the network."""
    units, samples = len(tile.users), len(tile.items)
    whole = NmfBuffers(
        buffers.user_product[:units],
        buffers.user_rows[:units],
        buffers.user_first[:units],
        buffers.user_back[:units],
        buffers.item_product[:samples],
        buffers.item_rows[:samples],
        buffers.item_back[:samples],
        buffers.first[:samples],
        buffers.first_gradients[:samples],
        buffers.second[:samples],
        buffers.item_in_transposed,
        buffers.hidden_transposed,
        buffers.lanes,
    )
    gradients = nmf_network(tile.network_gradients)
    tile.network_gradients[:] = 0
    _forward(network, users, items, tile, whole)
    _output(network, gradients, tile, whole)
    _backward(network, gradients, tile, whole)


@compiled
def _forward(network: NmfNetwork, users: Floats, items: Floats, tile: Tile, buffers: NmfBuffers) -> None:
    each = len(tile.items) // len(tile.users)
    for unit in range(len(tile.users)):
        for place in range(WIDTH):
            buffers.user_product[unit, place] = users[tile.users[unit], place]
            buffers.user_rows[unit, place] = users[tile.users[unit], WIDTH + place]
    for sample in range(len(tile.items)):
        for place in range(WIDTH):
            buffers.item_product[sample, place] = items[tile.items[sample], place]
            buffers.item_rows[sample, place] = items[tile.items[sample], WIDTH + place]
    np.dot(buffers.user_rows, network.user_in, buffers.user_first)
    np.dot(buffers.item_rows, network.item_in, buffers.first)
    for unit in range(len(tile.users)):
        for place in range(FIRST):
            buffers.user_first[unit, place] += network.first_bias[place]
        for sample in range(unit * each, (unit + 1) * each):
            for place in range(FIRST):
                buffers.first[sample, place] = max(
                    buffers.first[sample, place] + buffers.user_first[unit, place], np.float32(0)
                )
    np.dot(buffers.first, network.hidden, buffers.second)


@compiled
def _output(network: NmfNetwork, gradients: NmfNetwork, tile: Tile, buffers: NmfBuffers) -> None:
    """Score each sample and backpropagate its error to the rows and the second layer, which then holds gradients."""
    each = len(tile.items) // len(tile.users)
    zero = np.float32(0)
    lanes, second = buffers.lanes, buffers.second
    for unit in range(len(tile.users)):
        user = buffers.user_product[unit]
        user_gradients = tile.user_gradients[unit]
        for place in range(WIDTH):
            user_gradients[place] = 0
        for sample in range(unit * each, (unit + 1) * each):
            item = buffers.item_product[sample]
            item_gradients = tile.item_gradients[sample]
            for place in range(SECOND):
                second[sample, place] = max(second[sample, place] + network.second_bias[place], zero)
            for place in range(WIDTH):
                lanes[place] = (
                    network.product_out[place] * user[place] * item[place]
                    + network.hidden_out[place] * second[sample, place]
                    + network.hidden_out[WIDTH + place] * second[sample, WIDTH + place]
                )
            for place in range(8):
                lanes[place] += lanes[place + 8]
            for place in range(4):
                lanes[place] += lanes[place + 4]
            logit = ((lanes[0] + lanes[2]) + (lanes[1] + lanes[3])) + network.bias_out[0]
            score = np.float32(1) / (np.float32(1) + np.exp(-logit))
            error = (score - tile.targets[sample]) * tile.weights[sample]
            gradients.bias_out[0] += error
            for place in range(WIDTH):
                product = error * network.product_out[place]
                gradients.product_out[place] += error * user[place] * item[place]
                user_gradients[place] += product * item[place]
                item_gradients[place] = product * user[place]
            for place in range(SECOND):
                value = second[sample, place]
                passed = error * network.hidden_out[place] if value > zero else zero
                gradients.hidden_out[place] += error * value
                gradients.second_bias[place] += passed
                second[sample, place] = passed


@compiled
def _backward(network: NmfNetwork, gradients: NmfNetwork, tile: Tile, buffers: NmfBuffers) -> None:
    each = len(tile.items) // len(tile.users)
    transpose(network.hidden, buffers.hidden_transposed)
    transpose(network.item_in, buffers.item_in_transposed)
    np.dot(buffers.first.T, buffers.second, gradients.hidden)
    np.dot(buffers.second, buffers.hidden_transposed, buffers.first_gradients)
    for unit in range(len(tile.users)):
        for place in range(FIRST):
            buffers.user_first[unit, place] = 0
        for sample in range(unit * each, (unit + 1) * each):
            for place in range(FIRST):
                passed = buffers.first_gradients[sample, place] if buffers.first[sample, place] > 0 else np.float32(0)
                buffers.first_gradients[sample, place] = passed
                buffers.user_first[unit, place] += passed
        for place in range(FIRST):
            gradients.first_bias[place] += buffers.user_first[unit, place]
    np.dot(buffers.item_rows.T, buffers.first_gradients, gradients.item_in)
    np.dot(buffers.user_rows.T, buffers.user_first, gradients.user_in)
    np.dot(buffers.first_gradients, buffers.item_in_transposed, buffers.item_back)
    np.dot(buffers.user_first, network.user_in.T, buffers.user_back)
    for sample in range(len(tile.items)):
        for place in range(WIDTH):
            tile.item_gradients[sample, WIDTH + place] = buffers.item_back[sample, place]
    for unit in range(len(tile.users)):
        for place in range(WIDTH):
            tile.user_gradients[unit, WIDTH + place] = buffers.user_back[unit, place]


@compiled(nogil=True)
def nmf_batches(
    control: NDArray[np.int64],
    counts: TaskCounts,
    order: NDArray[np.int32],
    positives: Positives,
    sizes: Sizes,
    key: np.uint64,
    tables: tuple[ParameterTable, ParameterTable, ParameterTable],
    batch: Batch,
    rates: Rates,
) -> None:
    """Work through the tasks of a run of batches, as one of several threads."""
    users, items, network = tables
    buffers = nmf_buffers(sizes.tile_units, sizes.tile_units * (1 + sizes.negatives))
    number, task = take_task(control, counts)
    while number >= 0:
        units = units_in_batch(order, sizes, number)
        low = task * sizes.tile_units
        high = min(units, low + sizes.tile_units)
        if task >= counts.tiles:
            update_lane(task - counts.tiles, tables, batch, units, sizes, (rates.step[number], rates.root[number]))
        elif low < high:
            sample_units(batch, order, positives, sizes, key, (number, low, high))
            tile = tile_of(batch, task, low, high)
            nmf_gradient(nmf_network(network.rows[0]), users.rows, items.rows, tile, buffers)
        finish_task(control)
        number, task = take_task(control, counts)


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
    _forward_row(fixed, row, items, first, buffers.user_first)
    np.dot(first, fixed.hidden, second)
    _pass_errors(fixed, row, (items, targets), second, buffers.lanes, gradients)
    np.dot(second, fixed.hidden_transposed, first_gradients)
    _backward_row(fixed, first, first_gradients, buffers.user_first, gradients)


@compiled
def _forward_row(fixed: FixedNmf, row: Floats, items: NDArray[np.int32], first: Floats, user_first: Floats) -> None:
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
def _backward_row(
    fixed: FixedNmf, first: Floats, first_gradients: Floats, user_first: Floats, gradients: Floats
) -> None:
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

    def similar(self, shared: Arrays, number: int) -> Scores:
        """Return the cosine between this item's two embeddings, joined, and each item's."""
        return cosines(shared[ITEM_ROWS], number)

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return the sigmoid of the scores."""
        from scipy.special import expit

        return expit(scores.astype(np.float64))
