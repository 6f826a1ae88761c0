"""A whole chain from a table in memory, and what two chains must share to be the same; no files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from erasable import unlearning
from erasable.data import Catalogue, Interactions, RatingScale, k_core
from erasable.grouping import ALONE
from erasable.models import Effort
from erasable.training import Config, Knowledge, MemoryStore, State, arrange, train_chain
from erasable.unlearning import Erasure, Request


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


def knowledge(data: Interactions, config: Config, positions: Mapping[str, int] | None, scale: RatingScale) -> Knowledge:
    """Put a table into groups, with its own item list as the catalogue."""
    frame = Knowledge(config, Catalogue.from_items(data.items), scale, (), data)
    if config.min_interactions:
        core = k_core(data, config.min_interactions) if len(data) else data
        frame, data = replace(frame, kept_items=frozenset(core.items)), core.with_items(data.items)
    return arrange(data, frame, ALONE, positions)


def positions_of(data: Interactions, config: Config) -> dict[str, int]:
    """Return each user's position as the config's grouping decides it."""
    groups = knowledge(data, config, None, RatingScale(1, 1)).groups
    return {user: position for position, group in enumerate(groups) for user in group.users}


def learn(
    data: Interactions,
    config: Config,
    positions: Mapping[str, int] | None = None,
    scale: RatingScale | None = None,
) -> Learned:
    """Learn a chain from a table; groups as given, else as the config's grouping decides."""
    store = MemoryStore()
    known = knowledge(data, config, positions, scale or RatingScale(1, 1))
    return Learned(train_chain(known, store, Effort()), store)


def after(state: State, requests: Sequence[Request]) -> Knowledge:
    """Return what is known without what is asked for."""
    return Erasure.of(requests).apply(state.knowledge)


def forget(learned: Learned, requests: Sequence[Request], threads: int = 1) -> Learned:
    """Forget; the old checkpoints stay in the store."""
    state = unlearning.forget(learned.state, after(learned.state, requests), learned.store, Effort(threads))
    return Learned(state, learned.store)
