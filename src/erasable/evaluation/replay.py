"""Replay and comparison: train the chain again from its dataset, and compare every byte."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.chain.arrangement import regrouped
from erasable.chain.chain import Earlier, train_chain
from erasable.chain.checkpoints import (
    Checkpoint,
    CheckpointStore,
    Link,
    MemoryStore,
)
from erasable.chain.dataset import State
from erasable.chain.tasks import LOCAL, Executor, label_of
from erasable.grouping.points import GroupingEffort
from erasable.models.base import Effort

_Array = NDArray[Any]
NOT_TRAINED = Link("", "", 0, 0.0)
"""Stands for a stage to train."""


@dataclass(frozen=True)
class Comparison:
    """Whether checkpoints are byte for byte the same.

    Attributes
    ----------
    identical : bool
        Whether no difference was found.
    compared : int
        How many arrays were compared.
    difference : str or None
        The first difference, in words.

    Examples
    --------
    >>> Comparison(identical=True, compared=4).difference is None
    True
    """

    identical: bool
    compared: int
    difference: str | None = None


def replay(
    state: State, effort: Effort, kept: CheckpointStore, positions: Collection[int], executor: Executor = LOCAL
) -> MemoryStore:
    """Train the stages at some positions again from the state's dataset; take the others from the store.

    With all positions, none of the state's checkpoints is used. Under the policy regroup the groups are computed again
    as well.

    Parameters
    ----------
    state : State
        A learned recommender, as a workspace holds it.
    effort : Effort
        Threads and progress.
    kept : CheckpointStore
        The checkpoints of the stages that are not trained again.
    positions : collection of int
        The positions of the stages to train, from 0.
    executor : Executor, optional
        Where the stages are trained; threads of this process if not given.

    Returns
    -------
    MemoryStore
        The checkpoints of all stages.

    Examples
    --------
    >>> import pyarrow as pa, tempfile
    >>> from erasable import Recommender
    >>> from erasable.workspace import Workspace
    >>> table = pa.table({"user": [1, 1, 1, 2, 2, 2, 3, 3, 3], "item": list("abcabdacd")})
    >>> with tempfile.TemporaryDirectory() as place:
    ...     Recommender("ease", holdout=0.4).fit(table).save(f"{place}/shop")
    ...     with Workspace.reading(f"{place}/shop") as workspace:
    ...         state = workspace.state()
    ...         again = replay(state, Effort(), workspace.checkpoints, range(len(state.chain)))
    >>> state.chain[-1].fingerprint in again
    True
    """
    dataset, store = state.dataset, MemoryStore()
    if dataset.config.policy == "regroup":
        dataset = regrouped(dataset, GroupingEffort(effort.threads))
    trained = [link if place not in positions else NOT_TRAINED for place, link in enumerate(state.chain)]
    for link in trained:
        if link is not NOT_TRAINED:
            store.put(kept.get(link.fingerprint))
    train_chain(dataset, store, effort, Earlier(trained), executor)
    return store


def compare(
    state: State, checkpoints: CheckpointStore, replayed: CheckpointStore, positions: Collection[int] | None = None
) -> Comparison:
    """Compare checkpoints with replayed ones: names, and each array's type, shape and bytes.

    Parameters
    ----------
    state : State
        A learned recommender, as a workspace holds it.
    checkpoints : CheckpointStore
        Its checkpoints.
    replayed : CheckpointStore
        What `replay` returned.
    positions : collection of int, optional
        The positions of the stages to compare; all if not given.

    Returns
    -------
    Comparison
        Whether they are the same, or the first difference.

    Examples
    --------
    >>> import pyarrow as pa, tempfile
    >>> from erasable import Recommender
    >>> from erasable.workspace import Workspace
    >>> table = pa.table({"user": [1, 1, 1, 2, 2, 2, 3, 3, 3], "item": list("abcabdacd")})
    >>> with tempfile.TemporaryDirectory() as place:
    ...     Recommender("ease", holdout=0.4).fit(table).save(f"{place}/shop")
    ...     with Workspace.reading(f"{place}/shop") as workspace:
    ...         state = workspace.state()
    ...         again = replay(state, Effort(), workspace.checkpoints, range(len(state.chain)))
    ...         compare(state, workspace.checkpoints, again).identical
    True
    """
    places = range(len(state.chain)) if positions is None else positions
    found = list(_stage_differences(state, checkpoints, replayed, places))
    differences = [difference for difference, _ in found if difference]
    return Comparison(not differences, sum(arrays for _, arrays in found), next(iter(differences), None))


def _stage_differences(
    state: State, checkpoints: CheckpointStore, replayed: CheckpointStore, positions: Collection[int]
) -> Iterator[tuple[str | None, int]]:
    """Yield the first difference of each stage, if any, and how many of its arrays were compared."""
    stages = state.dataset.stages
    if len(state.chain) != stages:
        yield f"there are {stages} steps and {len(state.chain)} checkpoints", 0
    for position in sorted(positions):
        name = state.chain[position].fingerprint
        if name not in checkpoints:
            yield f"{label_of(position)}: its checkpoint {name} is missing", 0
        elif name not in replayed:
            yield f"{label_of(position)}: the data held do not give the checkpoint {name}", 0
        else:
            difference, arrays = _difference(checkpoints.get(name), replayed.get(name))
            yield difference and f"{label_of(position)}: {difference}", arrays


def same_bytes(expected: Checkpoint, replayed: Checkpoint) -> bool:
    """Whether two checkpoints have the same parent and the same arrays, byte for byte."""
    return _difference(expected, replayed)[0] is None


def _difference(expected: Checkpoint, replayed: Checkpoint) -> tuple[str | None, int]:
    if expected.parent != replayed.parent:
        return f"it follows {expected.parent}, replayed {replayed.parent}", 0
    one, other = expected.arrays(), replayed.arrays()
    if one.keys() != other.keys():
        return f"it holds the arrays {', '.join(one)}, replayed {', '.join(other)}", 0
    found = [(name, array_difference(one[name], other[name])) for name in one]
    return next((f"{name} {difference}" for name, difference in found if difference), None), len(found)


def array_difference(expected: _Array, replayed: _Array) -> str | None:
    """Describe how two arrays differ in type, shape or bytes; None if they do not."""
    if (expected.dtype, expected.shape) != (replayed.dtype, replayed.shape):
        return f"is {expected.dtype}{expected.shape}, replayed {replayed.dtype}{replayed.shape}"
    if expected.tobytes() == replayed.tobytes():
        return None
    changed = np.any(_bytes(expected) != _bytes(replayed), axis=1)
    one, other = expected.ravel()[changed], replayed.ravel()[changed]
    apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return f"differs in {int(changed.sum())} of {expected.size} numbers, by at most {np.max(apart):.3g}"


def _bytes(array: _Array) -> NDArray[np.uint8]:
    return np.frombuffer(array.tobytes(), dtype=np.uint8).reshape(array.size, array.itemsize)
