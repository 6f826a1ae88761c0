"""What the suites share: the model under test, small tables, chains in memory, and the comparison of two chains."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable import chain
from erasable.chain.arrangement import arrange, grown
from erasable.chain.chain import Earlier, train_chain
from erasable.chain.checkpoints import MemoryStore
from erasable.chain.dataset import (
    Dataset,
    State,
)
from erasable.chain.plan import Erasure
from erasable.chain.scoring import Scoring
from erasable.chain.settings import Config
from erasable.data.catalogue import Catalogue, k_core
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions, RatingScale, Subject, recognise_scale
from erasable.data.item_features import ItemFeatures
from erasable.grouping.points import ALONE
from erasable.models.base import Arrays, Effort, Model, Parameters, Scores, Stage, prepared_by
from erasable.seeding import child_key, id_keys


def table(rows: Mapping[str, Iterable[str] | Mapping[str, float]], catalogue: Iterable[str] = ()) -> Interactions:
    """Write a table as {user: items} or {user: {item: rating}}; the catalogue may hold more items."""
    ratings = {user: dict(has) if isinstance(has, Mapping) else dict.fromkeys(has, 1.0) for user, has in rows.items()}
    users = sorted(user for user, has in ratings.items() if has)
    items = sorted({*catalogue, *(item for has in ratings.values() for item in has)})
    cells = [
        (u, i, ratings[user][item])
        for u, user in enumerate(users)
        for i, item in enumerate(items)
        if item in ratings[user]
    ]
    columns = np.array(cells, dtype=np.float64).reshape(len(cells), 3)
    return Interactions(Ids.of(users), Ids.of(items), *columns.T)


def made_up(seed: int, users: int = 12, items: int = 9) -> Interactions:
    """Make up a table with ratings: user u0000 has every item, u0001 has one, the last item is u0000's alone."""
    names = [f"i{number:03d}" for number in range(items)]
    has = {"u0000": names, "u0001": names[:1]}
    for number in range(2, users):
        user = f"u{number:04d}"
        has[user] = some_of(names[:-1], 1 + child_key(seed, "count", user) % (items - 2), seed, user)
    return table({user: {item: rating_of(seed, user, item) for item in own} for user, own in has.items()})


def checkerboard() -> tuple[Interactions, list[list[int]]]:
    """Return a table in which users have the items of their own colour, and two items of each user left out of it.

    Everyone has them in another order.
    """
    users, items = 200, 40
    liked = [[item for item in range(items) if item % 2 == user % 2] for user in range(users)]
    left_out = [[liked[user][(user // 2 + shift) % 20] for shift in (0, 3)] for user in range(users)]
    kept = [[item for item in liked[user] if item not in left_out[user]] for user in range(users)]
    rows = table({f"u{user:03d}": [f"i{item:02d}" for item in kept[user]] for user in range(users)})
    return timed(rows, 0), left_out


def timed(rows: Interactions, seed: int) -> Interactions:
    """Make up times; some are equal, and some unknown."""
    users, items = rows.users.texts(), rows.items.texts()
    pairs = zip(rows.user_index.tolist(), rows.item_index.tolist(), strict=True)
    drawn = np.array([child_key(seed, "time", users[user], items[item]) % 16 for user, item in pairs], np.float64)
    return replace(rows, time=np.where(drawn == 0, np.nan, drawn))


def rating_of(seed: int, user: str, item: str) -> float:
    """Make up a rating from 1 to 5."""
    return float(1 + child_key(seed, "rating", user, item) % 5)


def some_of(texts: Sequence[str], count: int, seed: int, purpose: str) -> list[str]:
    """Draw some texts, in random order."""
    return [texts[place] for place in np.argsort(id_keys(seed, purpose, texts), kind="stable")[:count]]


def as_rows(interactions: Interactions) -> set[tuple[str, str, float]]:
    """Return the rows as (user, item, rating)."""
    users, items = interactions.users.texts(), interactions.items.texts()
    columns = (interactions.user_index, interactions.item_index, interactions.rating)
    return {(users[u], items[i], float(r)) for u, i, r in zip(*columns, strict=True)}


def stage(
    interactions: Interactions,
    *,
    epochs: int = 1,
    seed: int = 0,
    position: int = 0,
    scale: RatingScale | None = None,
) -> Stage:
    """Return a stage; if no scale is given, it is recognised from the ratings."""
    return Stage(interactions, scale or recognise_scale(interactions.rating), epochs, seed, position)


Content = dict[str, tuple[str, tuple[int, ...], bytes]]


class Suite:
    """The model under test, and what the tests need to know about it."""

    model: ClassVar[Model]
    """The model, with small settings."""
    rounded_anew: ClassVar[frozenset[str]] = frozenset()
    """Shared arrays in which new items may change the last bits of known values."""
    left_in_between: ClassVar[float] = 0.1
    """The share of someone's influence that `provisional` may leave in the scores of others (`Subtracts`)."""
    other_values: ClassVar[Mapping[str, Any]] = {}
    """Another value for a setting, where the suite finds none by itself."""

    def made_anew(self) -> Model:
        """Return a new model with the same settings."""
        return type(self.model)(**self.model.settings.model_dump())

    def learned(self, rows: Interactions) -> Parameters:
        """Train with the model's own settings."""
        epochs, passes = (getattr(self.model.settings, name, 1) for name in ("epochs", "row_epochs"))
        trained = self.model.train(self.model.start(rows.items, 0), stage(rows, epochs=epochs), Effort())
        own = trained.rows or represent(self.model, trained.shared, stage(rows, epochs=passes), Effort())
        return Parameters(trained.shared, own)


def train(model: Model, rows: Interactions, threads: int = 1, start: Arrays | None = None, **facts: Any) -> Parameters:  # noqa: ANN401 - those of a stage
    """Train one stage, from scratch if no start is given, and solve the rows if training gives none."""
    start = model.start(rows.items, facts.get("seed", 0)) if start is None else start
    at = stage(rows, **facts)
    trained = model.train(start, at, Effort(threads))
    return Parameters(trained.shared, trained.rows or represent(model, trained.shared, at, Effort(threads)))


def represent(model: Model, shared: Arrays, people: Stage, effort: Effort) -> Arrays:
    """Return the rows of people under shared parameters, which are prepared first."""
    return model.represent(prepared_by(model, shared), people, effort)


def scorer(model: Model, shared: Arrays) -> Callable[[Arrays, NDArray[np.int32]], Scores]:
    """Return a function that scores items for a row and the user's items; shared parameters are prepared once."""
    prepared = prepared_by(model, shared)
    return lambda row, owned: model.score(prepared, row, owned)


def scores(model: Model, parameters: Parameters, rows: Interactions) -> list[Scores]:
    """Return everyone's scores, in the order of the users."""
    score = scorer(model, parameters.shared)
    return [score(row_at(parameters.rows, user), rows.items_at(user)) for user in range(len(rows.users))]


def contents(arrays: Arrays) -> Content:
    """Return type, shape and bytes of every array."""
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


def contents_of(parameters: Parameters) -> Content:
    """Return the same for shared parameters and rows."""
    return contents({**parameters.shared, **parameters.rows})


def row_at(rows: Arrays, user: int) -> dict[str, NDArray[Any]]:
    """Return one user's row."""
    return {name: array[user] for name, array in rows.items()}


def bytes_by_user(rows: Arrays, users: Iterable[str]) -> dict[str, dict[str, bytes]]:
    """Return the bytes of everyone's rows, by id."""
    return {user: {name: array[place].tobytes() for name, array in rows.items()} for place, user in enumerate(users)}


@dataclass(frozen=True)
class LearnedChain:
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
        """Everyone's group under the policy fixed; None if learning computes groups again."""
        known = self.state.dataset
        decided = known.config.policy == "fixed"
        return {user: place for place, group in enumerate(known.groups) for user in group.users} if decided else None

    def rows(self) -> dict[str, dict[str, bytes]]:
        """Return the bytes of everyone's row as served: trained in a stage, or solved now."""
        scoring = Scoring(self.state, self.store)
        found: dict[str, dict[str, bytes]] = {}
        for group in self.state.dataset.groups:
            own = scoring.rows([self.state.dataset.find(user) for user in group.users])
            for user, row in zip(group.users, own, strict=True):
                found[user] = {name: array.tobytes() for name, array in row.items()}
        return found


def dataset(
    data: Interactions,
    config: Config,
    positions: Mapping[str, int] | None,
    scale: RatingScale,
    declared: bool = False,
) -> Dataset:
    """Arrange a table into groups; items follow the users, or the table's list of items is declared.

    Where features are learned from, some items have them, also two that nobody has.
    """
    frame = Dataset.of_nobody(config, Catalogue.from_items(data.items) if declared else None, scale)
    if config.features is not None:
        frame = replace(frame, features=ItemFeatures.chosen(_attributes(), [*config.features]))
    if config.min_interactions:
        core = k_core(data, config.min_interactions) if len(data) else data
        frame, data = replace(frame, kept_items=frozenset(core.items)), core.with_items(data.items)
    return arrange(data, frame, ALONE, positions)


def _attributes() -> pa.Table:
    """Return attributes of every second item, and of two that nobody has."""
    items = [*(f"i{number:03d}" for number in range(0, 12, 2)), "new0", "new1"]
    kinds = [f"k{number % 3}" for number in range(len(items))]
    makers = [None if number == 2 else f"m{number // 4}|m9" for number in range(len(items))]
    return pa.table({"item_id": items, "kind": kinds, "maker": makers})


def positions_of(data: Interactions, config: Config) -> dict[str, int]:
    """Return each user's position under the config's grouping."""
    groups = dataset(data, config, None, RatingScale(1, 1)).groups
    return {user: position for position, group in enumerate(groups) for user in group.users}


def learn(
    data: Interactions,
    config: Config,
    positions: Mapping[str, int] | None = None,
    scale: RatingScale | None = None,
    declared: bool = False,
) -> LearnedChain:
    """Learn a chain from a table, in the given groups or those of the config's grouping."""
    store = MemoryStore()
    known = dataset(data, config, positions, scale or RatingScale(1, 1), declared)
    return LearnedChain(train_chain(known, store, Effort()), store)


def after(state: State, requests: Sequence[Subject]) -> Dataset:
    """Return the dataset without what is requested to be erased."""
    return Erasure.of(requests).apply(state.dataset)


def forget(learned: LearnedChain, requests: Sequence[Subject], threads: int = 1) -> LearnedChain:
    """Forget; the old checkpoints stay in the store."""
    state = chain.forget(learned.state, after(learned.state, requests), learned.store, Effort(threads))
    return LearnedChain(state, learned.store)


def learn_more(learned: LearnedChain, coming: Interactions, threads: int = 1) -> LearnedChain:
    """Learn more; the old checkpoints stay in the store."""
    after = grown(learned.state.dataset, coming, ALONE)
    state = train_chain(after, learned.store, Effort(threads), Earlier.of(learned.state))
    return LearnedChain(state, learned.store)


def assert_same(learned: LearnedChain, scratch: LearnedChain) -> None:
    """Assert the same names, the same bytes of every checkpoint and everyone's row, the same holdout and cost."""
    assert learned.names == scratch.names
    assert learned.contents() == scratch.contents()
    assert learned.rows() == scratch.rows()
    one, other = learned.state.dataset, scratch.state.dataset
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
    "features": {"strategy": "retrain", "features": {"kind": 2, "maker": 1}},
    "features and anchors": {"strategy": "retrain", "features": "kind", "anchors": 0.5},
    "features in a chain": {"strategy": "laser", "groups": 3, "features": "kind"},
}


def ways_of(model: Model) -> list[str]:
    """Return the ways to learn a model: its strategies, with trained or solved rows."""
    return [name for name, way in _WAYS.items() if way["strategy"] in model.strategies and _bears(model, way)]


def config_of(model: Model, way: str, **settings: object) -> Config:
    """Return the configuration of a way to learn a model, with two epochs, which are enough to compare bytes."""
    given = model.settings.model_dump(exclude_unset=True)
    few = {"epochs": 2} if "epochs" in type(model.settings).model_fields else {}
    return Config(model=type(model), seed=1, **{**given, **few, **_WAYS[way], **settings})


def _bears(model: Model, way: Mapping[str, object]) -> bool:
    """Whether a model can be learned this way: sisa, and the choice of rows, need rows that are trained."""
    if "features" in way and not model.uses_features:
        return False
    return model.trains_rows or (way["strategy"] != "sisa" and "rows" not in way)
