"""The rows of one side of ALS from the rows of the other side, each for itself; alternating lives in `als`.

With y an item's row, Y all of them, w a weight for each item that a user has and λ the regularisation, a user's row is

    x = (YᵀY + λI + Σ w·y·yᵀ)⁻¹ Σ (1 + w)·y          (Hu, Koren and Volinsky 2008, equation 4, with c = 1 + w)

Let S be a root of the part that all users share, S·Sᵀ = (YᵀY + λI)⁻¹, and Z = Y·S. Then x = S·v, where v solves
(I + Σ w·z·zᵀ)·v = Σ (1 + w)·z over the user's own z. The eigenvalues of that matrix lie between 1 and 1 + the largest
w, since ZᵀZ is at most I, so conjugate gradients from 0 reach what 32 bits can tell in a known, small number of steps.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.models.batches import Floats
from erasable.seeding.compiled import compiled

_TILE = 512  # this many rows of 64 numbers stay in the processor's cache
_CONVERGED = np.float32(1e-14)  # of the squared residual: 1e-7 is what 32 bits can tell
_VANISHED = np.float32(1e-30)


class Links(NamedTuple):
    """Who is linked to whom: row n to `others[starts[n] : starts[n + 1]]`, each with a weight."""

    starts: NDArray[np.int64]
    others: NDArray[np.int32]
    weights: Floats


class _Room(NamedTuple):
    """Room for one row's solution: up to a tile of rows of the other side, and vectors."""

    tile: Floats
    products: Floats
    part: Floats
    image: Floats
    direction: Floats
    residual: Floats
    solution: Floats


@compiled
def _room(factors: int) -> _Room:
    return _Room(
        np.empty((_TILE, factors), np.float32),
        np.empty(_TILE, np.float32),
        np.empty(factors, np.float32),
        np.empty(factors, np.float32),
        np.empty(factors, np.float32),
        np.empty(factors, np.float32),
        np.empty(factors, np.float32),
    )


@compiled
def _gather(links: Links, rows: Floats, low: int, high: int, room: _Room) -> None:
    for place in range(low, high):
        row = rows[links.others[place]]
        for factor in range(rows.shape[1]):
            room.tile[place - low, factor] = row[factor]


@compiled
def _begin(links: Links, rows: Floats, low: int, high: int, room: _Room) -> None:
    """Write Σ (1 + w)·z as the first residual and the first direction; a single tile stays gathered."""
    room.solution[:] = 0
    room.residual[:] = 0
    for first in range(low, high, _TILE):
        last = min(high, first + _TILE)
        _gather(links, rows, first, last, room)
        for place in range(last - first):
            confidence = np.float32(1) + links.weights[first + place]
            for factor in range(rows.shape[1]):
                room.residual[factor] += confidence * room.tile[place, factor]
    room.direction[:] = room.residual


@compiled
def _apply(links: Links, rows: Floats, low: int, high: int, room: _Room) -> None:
    """Write (I + Σ w·z·zᵀ)·direction as the image."""
    room.image[:] = room.direction
    for first in range(low, high, _TILE):
        last = min(high, first + _TILE)
        if high - low > _TILE:
            _gather(links, rows, first, last, room)
        tile, products = room.tile[: last - first], room.products[: last - first]
        np.dot(tile, room.direction, products)
        for place in range(last - first):
            products[place] *= links.weights[first + place]
        np.dot(products, tile, room.part)
        for factor in range(rows.shape[1]):
            room.image[factor] += room.part[factor]


@compiled
def _descend(links: Links, rows: Floats, low: int, high: int, steps: int, room: _Room) -> None:
    """Take steps of conjugate gradients from 0 towards the solution; no more once it is reached."""
    square = np.dot(room.residual, room.residual)
    enough = max(square * _CONVERGED, _VANISHED)
    for _ in range(steps):
        if not square > enough:
            return
        _apply(links, rows, low, high, room)
        length = square / np.dot(room.direction, room.image)
        for factor in range(rows.shape[1]):
            room.solution[factor] += length * room.direction[factor]
            room.residual[factor] -= length * room.image[factor]
        before, square = square, np.dot(room.residual, room.residual)
        for factor in range(rows.shape[1]):
            room.direction[factor] = room.residual[factor] + square / before * room.direction[factor]


@compiled(nogil=True)
def solve_rows(share: tuple[int, int], links: Links, rows: Floats, root: Floats, steps: int, solved: Floats) -> None:
    """Solve a share of the rows, from its first to before its last, each alone; `rows` are the others', times S."""
    room = _room(rows.shape[1])
    for number in range(share[0], share[1]):
        low, high = links.starts[number], links.starts[number + 1]
        if low == high:
            solved[number] = 0
            continue
        _begin(links, rows, low, high, room)
        _descend(links, rows, low, high, steps, room)
        np.dot(root, room.solution, solved[number])
