"""Checkpoints: the parameters after a stage, what a link of the chain records of it, and stores of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from erasable.models.base import Parameters

_SHARED, _ROWS = "shared.", "rows."
ARRAY_NAMES = _SHARED, _ROWS
"""The prefixes of the array names in a checkpoint."""
ORIGIN = "origin"
_UNKNOWN: Mapping[str, str] = {}


@dataclass(frozen=True)
class Link:
    """One trained stage of a chain: its checkpoint, its parent, and what training it from scratch costs."""

    fingerprint: str
    parent: str
    samples: int
    seconds: float
    environment: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    """The numeric environment in which training it again gives the same bytes."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The parameters after a stage, named by the fingerprint of everything that made them."""

    fingerprint: str
    parent: str
    parameters: Parameters
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The numeric environment that made it."""
    by_item: tuple[str, ...] = ()
    """The shared arrays to store in blocks of items (`Model.by_item`)."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays by name, sorted."""
        named = {_SHARED + name: array for name, array in self.parameters.shared.items()}
        named |= {_ROWS + name: array for name, array in self.parameters.rows.items()}
        return dict(sorted(named.items()))

    def arrays_by_item(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store in blocks of items, under the names that `arrays` gives them."""
        return {_SHARED + name: self.parameters.shared[name] for name in sorted(self.by_item)}

    @staticmethod
    def from_arrays(
        fingerprint: str,
        parent: str,
        arrays: Mapping[str, NDArray[Any]],
        environment: Mapping[str, str] = _UNKNOWN,
        by_item: Iterable[str] = (),
    ) -> "Checkpoint":
        """Build a checkpoint from the result of `arrays` and the names in `arrays_by_item`."""
        shared = {name.removeprefix(_SHARED): array for name, array in arrays.items() if name.startswith(_SHARED)}
        rows = {name.removeprefix(_ROWS): array for name, array in arrays.items() if name.startswith(_ROWS)}
        in_blocks = tuple(sorted(name.removeprefix(_SHARED) for name in by_item))
        return Checkpoint(fingerprint, parent, Parameters(shared, rows), environment, in_blocks)


class CheckpointStore(Protocol):
    """Keeps checkpoints by fingerprint."""

    def get(self, fingerprint: str) -> Checkpoint:
        """Return a checkpoint that is kept."""

    def put(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint."""

    def __contains__(self, fingerprint: str) -> bool:
        """Whether a checkpoint is kept."""


class MemoryStore:
    """Keeps checkpoints in memory; they are frozen, so sharing them is safe."""

    def __init__(self) -> None:
        self._kept: dict[str, Checkpoint] = {}

    def get(self, fingerprint: str) -> Checkpoint:
        """Return a checkpoint that is kept."""
        return self._kept[fingerprint]

    def put(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint."""
        self._kept[checkpoint.fingerprint] = checkpoint

    def __contains__(self, fingerprint: str) -> bool:
        """Whether a checkpoint is kept."""
        return fingerprint in self._kept

    def copy(self) -> "MemoryStore":
        """Return a copy of the store; it shares the checkpoints, which are frozen."""
        store = MemoryStore()
        store._kept = dict(self._kept)
        return store

    def keep_only(self, fingerprints: Iterable[str]) -> None:
        """Destroy all other checkpoints."""
        self._kept = {name: self._kept[name] for name in set(fingerprints) & set(self._kept)}
