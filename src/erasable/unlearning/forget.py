"""Forgetting: drop the data, roll back to the last checkpoint that has not seen it, and train on from there."""

from collections.abc import Sequence

from erasable.models import Effort
from erasable.training import CheckpointStore, State, train_chain
from erasable.unlearning.request import Erasure, Request


def forget(state: State, requests: Sequence[Request], store: CheckpointStore, effort: Effort) -> State:
    """Return the state that never knew what is erased; the new checkpoints are in the store beside the old ones.

    The caller makes the new state current first, and only then destroys the old checkpoints.
    """
    return train_chain(Erasure.of(requests).apply(state.knowledge), store, effort, trained=state.chain)
