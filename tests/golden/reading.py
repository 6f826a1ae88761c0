"""What an adapter reads of a workspace, whatever version wrote it; an adapter is a module such as `golden.read_0_1`.

An adapter has `call(words)`, which runs the command in this process and raises if it does not end well,
`read(workspace)`, which returns a `Reading`, and `must_equal(version, way, facts, step)`, which says of a way, and of
what a file of an earlier version's digests says of it, whether this version promises the same bytes after a step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

Kind = Literal["shared", "user rows"]


@dataclass(frozen=True, eq=False)
class Trained:
    """An array of a chain: the place of its step in the chain, what it holds, and its name there."""

    position: int
    kind: Kind
    name: str
    array: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Reading:
    """What was learned, read from a workspace."""

    stages: tuple[Trained, ...]
    """What the stages made, in their order: shared parameters, and user rows that a stage trained."""
    solved: tuple[Trained, ...] | None
    """The user rows that were solved, group by group; none where a version keeps no files of them."""
    rows: Mapping[str, Mapping[str, NDArray[Any]]]
    """Every user's own row, trained or solved: the name of the array, the id of the user, the row."""
    every_group_has_every_item: bool
    """Whether each stage learned from people who together have every item of the catalogue."""
