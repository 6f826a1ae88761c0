"""Forgetting: roll back to the last checkpoint that has not seen what is erased, and train on from there."""

from erasable.models import Effort
from erasable.training import CheckpointStore, Earlier, Knowledge, State, train_chain


def forget(state: State, after: Knowledge, store: CheckpointStore, effort: Effort) -> State:
    """Return the state that knows only what an erasure leaves; new checkpoints are in the store beside the old ones.

    The caller makes the new state current first, and only then destroys the old checkpoints.
    """
    return train_chain(after, store, effort, Earlier.of(state))
