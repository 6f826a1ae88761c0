"""Arrays with a row for each item, cut into blocks of items and joined again; where blocks lie is decided elsewhere."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.errors import WrongUse

BLOCK_BYTES = 2**20
"""About how large a block is; blocks of any size are read, so this may change at any time."""

Arrays = Mapping[str, NDArray[Any]]


def cut(arrays: Arrays) -> Iterator[tuple[int, Arrays]]:
    """Yield the first item of each block and its rows, in the order of the items; without items there is one block."""
    counts = {len(array) for array in arrays.values()}
    if len(counts) > 1:
        raise WrongUse(f"arrays with {sorted(counts)} rows: what lies in blocks has a row for each item")
    size = max(1, BLOCK_BYTES // max(1, sum(map(_row_bytes, arrays.values()))))
    for first in range(0, max(1, *counts) if counts else 0, size):
        yield first, {name: array[first : first + size] for name, array in arrays.items()}


def joined(blocks: Sequence[Arrays]) -> Arrays:
    """Return whole arrays from the blocks that they were cut into; a single one is not copied."""
    if len(blocks) == 1:
        return blocks[0]
    return {name: np.concatenate([block[name] for block in blocks]) for name in (blocks[0] if blocks else ())}


def is_same(block: Arrays, other: Arrays) -> bool:
    """Whether two blocks have the same arrays, to the byte."""
    if shapes(block) != shapes(other):
        return False
    return all(np.array_equal(_bytes_of(array), _bytes_of(other[name])) for name, array in block.items())


def shapes(block: Arrays) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the types and shapes of one row, which are those of all blocks of a checkpoint."""
    return {name: (array.dtype.str, array.shape[1:]) for name, array in block.items()}


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return an array's bytes: as numbers, zeros of both signs would be equal."""
    return np.frombuffer(np.ascontiguousarray(array).data, np.uint8) if array.size else np.empty(0, np.uint8)


def _row_bytes(array: NDArray[Any]) -> int:
    return array.itemsize * math.prod(array.shape[1:])
