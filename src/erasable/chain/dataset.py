"""The dataset that learning starts from, checkpoints and their store, and the state: a dataset with its chain."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from erasable.chain.settings import Config
from erasable.data.catalogue import Catalogue, over_own_items, split_holdout
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions, RatingScale
from erasable.errors import UnknownUser
from erasable.grouping.groups import Cohesion
from erasable.grouping.registry import anchors_among
from erasable.models.base import Arrays, Parameters

_SHARED, _ROWS = "shared.", "rows."
ARRAY_NAMES = _SHARED, _ROWS
"""The prefixes of the array names in a checkpoint."""
ORIGIN = "origin"
_UNKNOWN: Mapping[str, str] = {}


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


@dataclass(frozen=True, eq=False)
class KnownItems:
    """The items that a stage knows, in the order of its numbering, and the place of each among all items."""

    ids: Ids
    places: NDArray[np.int64]
    total: int
    """How many items there are in all."""

    @classmethod
    def among(cls, items: Ids, places: NDArray[np.int64]) -> "KnownItems":
        """Return the items at some places in the list of all items."""
        return cls(items if _is_whole(places, len(items)) else items.take(places), places, len(items))

    def over(self, rows: Interactions) -> Interactions:
        """Return the rows whose items are known, numbered as the stage numbers them."""
        return rows if self._is_whole else rows.renumbered(self.ids, self._numbers)

    def numbers_of(self, owned: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the stage's numbers of the items that it knows, ascending."""
        if self._is_whole:
            return owned
        found = self._numbers[owned]
        return np.sort(found[found >= 0]).astype(np.int32)

    def among_all(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a score for each of all items, −∞ for those that the stage does not know."""
        if self._is_whole:
            return scores
        found = np.full(self.total, -np.inf, dtype=np.float32)
        found[self.places] = scores
        return found

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def _is_whole(self) -> bool:
        return _is_whole(self.places, self.total)

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        """The stage's number of each of all items, −1 if it does not know the item."""
        numbers = np.full(self.total, -1, dtype=np.int64)
        numbers[self.places] = np.arange(len(self.places))
        return numbers


def items_brought(stages: Iterable[Interactions], items: Ids, apart: bool) -> tuple[KnownItems, ...]:
    """Return the items each stage knows without a declared catalogue: those of its learners and of earlier stages.

    Items are numbered in the order in which stages bring them, by id within a stage. Stages that are `apart` (sisa)
    know only their own. The list of all items is sorted.
    """
    brought = np.zeros(len(items), dtype=bool)
    known, found = np.empty(0, dtype=np.int64), list[KnownItems]()
    for learners in stages:
        had = np.zeros(len(items), dtype=bool)
        had[learners.item_index] = True
        if apart:
            known = np.flatnonzero(had)
        else:
            known = np.concatenate([known, np.flatnonzero(had & ~brought)])
            brought |= had
        found.append(KnownItems.among(items, known))
    return tuple(found)


def items_listed(stages: Iterable[Interactions], catalogue: Catalogue, apart: bool) -> tuple[KnownItems, ...]:
    """Return the items each stage knows of a declared catalogue: the first version that holds all it needs.

    A catalogue that was extended later has several versions.
    """
    largest, found = -1, list[KnownItems]()
    for learners in stages:
        last = int(np.max(learners.item_index, initial=-1))
        largest = last if apart else max(largest, last)
        count = next(items for items in catalogue.versions if items > largest)
        found.append(KnownItems.among(catalogue.items, np.arange(count)))
    return tuple(found)


def _is_whole(places: NDArray[np.int64], total: int) -> bool:
    return len(places) == total and bool(np.array_equal(places, np.arange(total)))


@dataclass(frozen=True)
class Link:
    """One trained stage of a chain: its checkpoint, its parent, and what training it from scratch costs."""

    fingerprint: str
    parent: str
    samples: int
    seconds: float
    environment: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    """The numeric environment in which training it again gives the same bytes."""


@dataclass(frozen=True)
class RowsName:
    """The name of some rows: their digest, and the digest of the items that number them.

    The digests have no salt, so a guess could be tested against them: they stay in memory and are never shown.
    """

    rows: str = field(repr=False)
    items: str = field(repr=False)


@dataclass(frozen=True, eq=False)
class Dataset:
    """What learning starts from: the surviving data in groups, with everything that was declared or frozen.

    Entry p of `groups` holds the training interactions of the group at position p; nothing else records which group a
    user belongs to. Item numbers refer to `items` throughout; each stage also has its own numbering.
    """

    config: Config
    catalogue: Catalogue | None
    """The declared catalogue; None if items follow the users. What 0.1 froze counts as declared."""
    scale: RatingScale
    groups: Sequence[Interactions]
    held_out: Interactions
    kept_items: frozenset[str] | None = field(default=None, repr=False)
    """The items that the filter kept, if there was one."""
    cohesion: tuple[Cohesion | None, ...] = ()
    """The paper's ρ of each group, by position, where it is known; empty if it was never computed."""

    @property
    def solves_rows(self) -> bool:
        """Whether user rows are solved when needed, instead of trained in the stages."""
        return self.config.rows == "solved"

    @property
    def stages(self) -> int:
        """How many groups shape shared parameters; where rows are solved, later groups only have rows."""
        return min(self.config.groups, len(self.groups)) if self.solves_rows else len(self.groups)

    @property
    def items(self) -> Ids:
        """All items: the declared ones, or those of all interactions, held out or not, in the order of UTF-8 bytes."""
        return self.held_out.items

    def known(self, position: int) -> KnownItems:
        """Return the items that shared parameters know after the stage at a position."""
        return self._known[position]

    @cached_property
    def known_to_some(self) -> NDArray[np.bool_]:
        """Which of all items some stage knows; the others have no score."""
        found = np.zeros(len(self.items), dtype=bool)
        for position in range(self.stages):
            found[self.known(position).places] = True
        return found

    def learners(self, position: int) -> Interactions:
        """Return the interactions that the stage at a position learns from, in the stage's numbering of items."""
        return self.known(position).over(self.learners_over_all(position))

    def learners_name(self, position: int) -> RowsName:
        """Return the name of these interactions; they are hashed only once."""
        if position not in self._names:
            learners = self.learners(position)
            self._names[position] = RowsName(learners.digest(), learners.items.digest())
        return self._names[position]

    @cached_property
    def _names(self) -> dict[int, RowsName]:
        return {}

    def learners_over_all(self, position: int) -> Interactions:
        """Return the same interactions, numbered by all items."""
        return self._of_anchors(self.groups[position].timeless)

    def lessons_of(self, users: Collection[str]) -> Interactions:
        """Return those interactions of some users that shaped shared parameters."""
        held = [self.groups[position].of_users(users) for position in range(self.stages)]
        return Interactions.merge([self._of_anchors(part) for part in held])

    def lessons_without(self, users: Collection[str]) -> Interactions:
        """Return the interactions of everyone else that shaped shared parameters."""
        held = [self.learners_over_all(position).without(users) for position in range(self.stages)]
        return held[0] if len(held) == 1 else Interactions.merge(held)

    @cached_property
    def _known(self) -> tuple[KnownItems, ...]:
        if self.catalogue is not None and len(self.catalogue.versions) == 1:  # without reading any group
            return (KnownItems.among(self.items, np.arange(len(self.items))),) * self.stages
        stages = map(self.learners_over_all, range(self.stages))
        apart = self.config.strategy == "sisa"
        if self.catalogue is None:
            return items_brought(stages, self.items, apart)
        return items_listed(stages, self.catalogue, apart)

    def _of_anchors(self, rows: Interactions) -> Interactions:
        anchors = anchors_among(rows.users, self.config.anchors, self.config.seed)
        return rows if anchors.all() else rows.select(anchors[rows.user_index])

    @property
    def users(self) -> int:
        """How many users there are."""
        return sum(len(group.users) for group in self.groups)

    @property
    def interactions(self) -> int:
        """How many interactions there are, held out or not."""
        return sum(map(len, self.groups)) + len(self.held_out)

    def find(self, user: str) -> tuple[int, int]:
        """Return the position of a user's group and the user's row in it."""
        for position, group in enumerate(self.groups):
            row = int(group.users.positions([user])[0])
            if row >= 0:
                return position, row
        raise UnknownUser(f"nothing is held about the user {user!r}: check the id, exactly as in the data")

    def items_of(self, user: str) -> frozenset[str]:
        """Return the ids of a user's items, held out or not."""
        position, row = self.find(user)
        numbers = [self.groups[position].items_at(row)]
        place = int(self.held_out.users.positions([user])[0])
        if place >= 0:
            numbers.append(self.held_out.items_at(place))
        return frozenset(self.items[number] for part in numbers for number in part.tolist())

    def data_of(self, users: Collection[str]) -> Interactions:
        """Return all interactions of some users, held out or not."""
        positions = {self.find(user)[0] for user in users}
        parts = [self.held_out, *(self.groups[position] for position in sorted(positions))]
        return Interactions.merge([part.of_users(users) for part in parts])

    def without(self, users: Collection[str], pairs: Collection[tuple[str, str]]) -> "Dataset":
        """Return the dataset as if it had never held these users and (user, item) pairs."""
        hit = {*users, *(user for user, _ in pairs)}
        positions = {user: self.find(user)[0] for user in hit}
        return self.revised(positions, self.data_of(hit).without(users=users, pairs=pairs))

    def revised(self, positions: Mapping[str, int], rows: Interactions) -> "Dataset":
        """Return the dataset in which some users have exactly these rows, each in the group at a position.

        Their rows are split into training and holdout, which depends on each user's own interactions alone. All
        cohesion is dropped: it was computed from the removed data too, so a guess about that data could be tested
        against it.
        """
        training, held_out = split_holdout(rows, self.config.holdout, self.config.seed)
        groups = list(self.groups)
        nobody = self.held_out.select(np.zeros(len(self.held_out), dtype=bool))
        groups += [nobody] * (max(positions.values(), default=-1) + 1 - len(groups))
        for position in set(positions.values()):
            members = [user for user, place in positions.items() if place == position]
            left = groups[position].without(users=members)
            coming = training.of_users(members)
            groups[position] = Interactions.merge([left, coming]) if len(coming) else left
        while len(groups) > self.config.groups and not len(groups[-1]):
            groups.pop()  # an empty group that was added later must leave no trace
        left = self.held_out.without(users=list(positions))
        held_out = Interactions.merge([left, held_out]) if len(held_out) else left
        return replace(self, groups=tuple(groups), held_out=held_out, cohesion=()).tidied()

    def over(self, items: Ids) -> "Dataset":
        """Return the same dataset, its rows numbered by a longer list of items."""
        *groups, held_out = (
            part if part.items == items else part.with_items(items) for part in (*self.groups, self.held_out)
        )
        return replace(self, groups=tuple(groups), held_out=held_out)

    def following(self) -> "Dataset":
        """Return the same dataset without a declared catalogue: items follow the users."""
        return replace(self, catalogue=None).tidied()

    def tidied(self) -> "Dataset":
        """Return the same dataset without items that nobody has, unless they are declared."""
        if self.catalogue is not None:
            return self
        *groups, held_out = over_own_items([*self.groups, self.held_out])
        return replace(self, groups=tuple(groups), held_out=held_out)


@dataclass(frozen=True, eq=False)
class State:
    """A trained recommender: its dataset, and the chain of stages trained on it."""

    dataset: Dataset
    chain: tuple[Link, ...]
    recorded: tuple[Link, ...] = ()
    """The chain under the names in this version's records and certificates, if an earlier release wrote them."""

    @property
    def named(self) -> tuple[Link, ...]:
        """The chain under the names in this version's records and certificates."""
        return self.recorded or self.chain

    def untrained(self) -> "State":
        """Return the same dataset without any stage, to be trained by the installed revision of the model."""
        config = self.dataset.config.of_this_revision()
        return State(replace(self.dataset, config=config), ())

    @property
    def stages(self) -> tuple[Link, ...]:
        """The links that shaped shared parameters."""
        return self.chain

    @property
    def environment(self) -> dict[str, str]:
        """The numeric environment that made the checkpoints; if there are several, every value."""
        values: dict[str, dict[str, None]] = {}
        for link in self.chain:
            for name, value in link.environment.items():
                values.setdefault(name, {})[value] = None
        return {name: " and ".join(said) for name, said in values.items()}

    @property
    def scoring_links(self) -> tuple[Link, ...]:
        """The links that scoring needs: a chain with solved rows scores with its last stage only."""
        if self.dataset.config.strategy == "sisa" or not self.dataset.solves_rows:
            return self.chain
        return self.chain[-1:]

    def trained_rows(self, checkpoints: CheckpointStore, position: int) -> Arrays:
        """Return the user rows in the checkpoint of a group's stage; empty if rows are not trained."""
        if self.dataset.solves_rows or not self.dataset.config.learner.has_rows:
            return {}
        return checkpoints.get(self.chain[position].fingerprint).parameters.rows
