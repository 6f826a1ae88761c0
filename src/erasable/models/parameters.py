"""What a stage leaves behind: shared parameters, which many users shaped, and the personal rows of its own users."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Parameters:
    """Named arrays, read-only; in each of `rows` row n belongs to user n of the stage's interactions."""

    shared: Arrays
    rows: Arrays

    def __post_init__(self) -> None:
        for part in (self.shared, self.rows):
            for array in part.values() if isinstance(part, Mapping) else ():
                if isinstance(array, np.ndarray):  # whatever else a model may give is refused with its name
                    array.setflags(write=False)

    def all_finite(self) -> bool:
        """Whether every number is finite."""
        return all(np.isfinite(array).all() for array in (*self.shared.values(), *self.rows.values()))


def frozen(arrays: Arrays) -> Arrays:
    """Return the same arrays, which nobody can write into any more."""
    for array in arrays.values():
        array.setflags(write=False)
    return arrays


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: compiled code would be compiled again for an array that can be written."""
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view
