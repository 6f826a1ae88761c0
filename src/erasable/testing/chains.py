"""A whole chain from a table in memory, and what two chains must share to be the same; no files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from erasable import unlearning
from erasable.data import Catalogue, Interactions, RatingScale, k_core
from erasable.grouping import ALONE
from erasable.models import Effort, Model
from erasable.testing.suite import Content
from erasable.training import Config, Earlier, Knowledge, MemoryStore, Scoring, State, arrange, grown, train_chain
from erasable.unlearning import Erasure, Subject


@dataclass(frozen=True)
class Learned:
    """A state with the store that holds its checkpoints."""

    state: State
    store: MemoryStore

    @property
    def names(self) -> list[str]:
        """The fingerprints along the chain."""
        return [link.fingerprint for link in self.state.chain]

    def contents(self) -> list[Content]:
        """Return type, shape and bytes of every array of every checkpoint, in the order of the chain."""
        return [
            {
                name: (array.dtype.str, array.shape, array.tobytes())
                for name, array in self.store.get(link).arrays().items()
            }
            for link in self.names
        ]

    @property
    def positions(self) -> dict[str, int] | None:
        """Everyone's group, where it was decided once; otherwise learning decides it anew."""
        known = self.state.knowledge
        decided = known.config.policy == "fixed"
        return {user: place for place, group in enumerate(known.groups) for user in group.users} if decided else None

    def rows(self) -> dict[str, dict[str, bytes]]:
        """Return the bytes of everyone's row as it is served: trained in a stage, or solved now."""
        scoring = Scoring(self.state, self.store)
        found: dict[str, dict[str, bytes]] = {}
        for position, group in enumerate(self.state.knowledge.groups):
            own = scoring.rows([(position, row) for row in range(len(group.users))])
            for user, row in zip(group.users, own, strict=True):
                found[user] = {name: array.tobytes() for name, array in row.items()}
        return found


def knowledge(
    data: Interactions,
    config: Config,
    positions: Mapping[str, int] | None,
    scale: RatingScale,
    declared: bool = False,
) -> Knowledge:
    """Put a table into groups; items follow the people, or the table's own list of items is declared."""
    frame = Knowledge(config, Catalogue.from_items(data.items) if declared else None, scale, (), data)
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
    declared: bool = False,
) -> Learned:
    """Learn a chain from a table; groups as given, else as the config's grouping decides."""
    store = MemoryStore()
    known = knowledge(data, config, positions, scale or RatingScale(1, 1), declared)
    return Learned(train_chain(known, store, Effort()), store)


def after(state: State, requests: Sequence[Subject]) -> Knowledge:
    """Return what is known without what is asked for."""
    return Erasure.of(requests).apply(state.knowledge)


def forget(learned: Learned, requests: Sequence[Subject], threads: int = 1) -> Learned:
    """Forget; the old checkpoints stay in the store."""
    state = unlearning.forget(learned.state, after(learned.state, requests), learned.store, Effort(threads))
    return Learned(state, learned.store)


def learn_more(learned: Learned, coming: Interactions, threads: int = 1) -> Learned:
    """Learn more; the old checkpoints stay in the store."""
    after = grown(learned.state.knowledge, coming, ALONE)
    state = train_chain(after, learned.store, Effort(threads), Earlier.of(learned.state))
    return Learned(state, learned.store)


def assert_same(learned: Learned, scratch: Learned) -> None:
    """Demand the same names, the same bytes of every checkpoint and of everyone's row, the same holdout and cost."""
    assert learned.names == scratch.names
    assert learned.contents() == scratch.contents()
    assert learned.rows() == scratch.rows()
    one, other = learned.state.knowledge, scratch.state.knowledge
    assert [group.digest() for group in one.groups] == [group.digest() for group in other.groups]
    assert one.held_out.digest() == other.held_out.digest()
    assert one.items == other.items
    assert [link.samples for link in learned.state.chain] == [link.samples for link in scratch.state.chain]


_WAYS: Mapping[str, Mapping[str, object]] = {
    "chain": {"strategy": "laser", "groups": 3},
    "independent groups": {"strategy": "laser", "groups": 3, "grouping": "independent"},
    "regrouped": {"strategy": "laser", "groups": 3, "policy": "regroup"},
    "models apart": {"strategy": "sisa", "groups": 3},
    "all at once": {"strategy": "retrain"},
    "solved rows": {"strategy": "laser", "groups": 3, "rows": "solved"},
    "anchors": {"strategy": "laser", "groups": 2, "anchors": 0.5},
    "anchors all at once": {"strategy": "retrain", "anchors": 0.5},
    "hardly an anchor": {"strategy": "retrain", "anchors": 0.0001},
}


def ways_of(model: Model) -> list[str]:
    """Return the ways in which a model can be learned: its strategies, with rows that it trains or solves."""
    return [name for name, way in _WAYS.items() if way["strategy"] in model.strategies and _bears(model, way)]


def config_of(model: Model, way: str, **settings: object) -> Config:
    """Return the configuration of a way to learn a model; two epochs are enough to compare bytes."""
    given = model.settings.model_dump(exclude_unset=True)
    few = {"epochs": 2} if "epochs" in type(model.settings).model_fields else {}
    return Config(model=type(model), seed=1, **{**given, **few, **_WAYS[way], **settings})


def _bears(model: Model, way: Mapping[str, object]) -> bool:
    """Whether rows come from where the way wants them: a model for each group needs rows that are trained."""
    return model.trains_rows or (way["strategy"] != "sisa" and "rows" not in way)
