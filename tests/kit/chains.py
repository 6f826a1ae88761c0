"""A whole chain from a table in memory, and what two chains must share to be the same; no files."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from erasable.data import Catalogue, Interactions, RatingScale, split_holdout
from erasable.grouping import assign_positions
from erasable.models import Effort
from erasable.training import Config, Knowledge, MemoryStore, State, train_chain


@dataclass(frozen=True)
class Learned:
    """A state with the store that holds its checkpoints."""

    state: State
    store: MemoryStore

    @property
    def names(self) -> list[str]:
        """The fingerprints along the chain."""
        return [link.fingerprint for link in self.state.chain]

    def contents(self) -> list[dict[str, tuple[str, tuple[int, ...], bytes]]]:
        """Return type, shape and bytes of every array of every checkpoint, in the order of the chain."""
        return [
            {
                name: (array.dtype.str, array.shape, array.tobytes())
                for name, array in self.store.get(link).arrays().items()
            }
            for link in self.names
        ]


def positions_of(data: Interactions, config: Config) -> dict[str, int]:
    """Return each user's position as the config's grouping decides it."""
    return dict(zip(data.users.texts(), assign_positions(data, config, config.seed).tolist(), strict=True))


def knowledge(data: Interactions, config: Config, positions: Mapping[str, int], scale: RatingScale) -> Knowledge:
    """Put a table into groups, with its own item list as the catalogue."""
    train, held_out = split_holdout(data, config.holdout, config.seed)
    place = np.array([positions[user] for user in train.users.texts()], dtype=np.int64)
    groups = tuple(train.select(place[train.user_index] == position) for position in range(config.groups))
    return Knowledge(config, Catalogue.from_items(data.items), scale, groups, held_out)


def learn(
    data: Interactions,
    config: Config,
    positions: Mapping[str, int] | None = None,
    scale: RatingScale | None = None,
) -> Learned:
    """Learn a chain from a table; groups as given, else as the config's grouping decides."""
    store = MemoryStore()
    groups = positions_of(data, config) if positions is None else positions
    known = knowledge(data, config, groups, scale or RatingScale(1, 1))
    return Learned(train_chain(known, store, Effort()), store)
