"""The dataset that learning starts from, and the state: a dataset with the chain that was learned from it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.chain.buckets import Bucket, Buckets, Place, dealt
from erasable.chain.checkpoints import CheckpointStore, Link
from erasable.chain.counts import Counts, Rules
from erasable.chain.known_items import KnownItems, items_brought, items_listed
from erasable.chain.settings import Config
from erasable.data.catalogue import Catalogue
from erasable.data.ids import Ids, encode_ids
from erasable.data.interactions import Interactions, RatingScale, differing_rows
from erasable.data.item_features import ItemFeatures
from erasable.errors import UnknownUser
from erasable.grouping.groups import Cohesion
from erasable.grouping.registry import anchors_among
from erasable.models.base import Arrays, Change, Size


@dataclass(frozen=True)
class RowsName:
    """The name of what a stage learns from: digests of its rows, of the items that number them, and of features.

    The digests have no salt, so a guess could be tested against them: they stay in memory and are never shown.
    """

    rows: str = field(repr=False)
    items: str = field(repr=False)
    features: str = field(default="", repr=False)
    """Empty without features."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """What learning starts from: the surviving people in buckets, with everything that was declared or frozen.

    A bucket knows the group of each of its people; nothing else records that. Item numbers refer to `items` throughout;
    each stage also has its own numbering.
    """

    config: Config
    catalogue: Catalogue | None
    """The declared catalogue; None if items follow the users. What 0.1 froze counts as declared."""
    scale: RatingScale
    buckets: Buckets
    group_count: int
    """How many groups there are; the last ones may be empty."""
    kept_items: frozenset[str] | None = field(default=None, repr=False)
    """The items that the filter kept, if there was one."""
    cohesion: tuple[Cohesion | None, ...] = ()
    """The paper's ρ of each group, by position, where it is known; empty if it was never computed."""
    counted: Counts | None = field(default=None, repr=False)
    """The counts, if they are known already."""
    features: ItemFeatures | None = field(default=None, repr=False)
    """The declared features of items; without a catalogue their items are known from the first stage, and kept."""

    @staticmethod
    def of_groups(
        config: Config,
        catalogue: Catalogue | None,
        scale: RatingScale,
        groups: Sequence[Interactions],
        held_out: Interactions,
        kept_items: frozenset[str] | None = None,
        cohesion: tuple[Cohesion | None, ...] = (),
    ) -> "Dataset":
        """Deal the people of some groups out to buckets; entry p holds the training data of the group at position p."""
        everyone = Interactions.merge([*groups]) if groups else held_out
        positions = np.zeros(len(everyone.users), np.int64)
        for position, group in enumerate(groups):
            positions[everyone.users.positions_of(group.users.array)] = position
        parts = dealt(everyone, held_out, positions, config.seed)
        buckets = Buckets.of(parts, held_out.items, config.seed)
        return Dataset(config, catalogue, scale, buckets, len(groups), kept_items, cohesion)

    @staticmethod
    def of_nobody(
        config: Config, catalogue: Catalogue | None, scale: RatingScale, kept_items: frozenset[str] | None = None
    ) -> "Dataset":
        """Return the frame of a dataset, without people; `arrange` puts them in."""
        nobody = no_interactions(catalogue.items if catalogue else Ids.of([]))
        return Dataset.of_groups(config, catalogue, scale, (), nobody, kept_items)

    def with_groups(
        self, groups: Sequence[Interactions] | None = None, held_out: Interactions | None = None
    ) -> "Dataset":
        """Return the dataset with other groups or another holdout."""
        made = Dataset.of_groups(
            self.config,
            self.catalogue,
            self.scale,
            self.groups if groups is None else groups,
            self.held_out if held_out is None else held_out,
            self.kept_items,
        )
        return replace(made, features=self.features)

    def __post_init__(self) -> None:
        if self.config.seed != self.buckets.seed:  # which slots depend on
            object.__setattr__(self, "buckets", self.buckets.dealt_again(self.config.seed))

    def shares_of(self, rating: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return ratings as shares of the highest; where weights are learned, every interaction counts in full."""
        full = self.scale.low if self.config.weighed else self.scale.high
        return np.minimum(rating.astype(np.float64) / full, 1)

    @property
    def solves_rows(self) -> bool:
        """Whether user rows are solved when needed, instead of trained in the stages."""
        return self.config.rows == "solved"

    @property
    def stages(self) -> int:
        """How many groups shape shared parameters; where rows are solved, later groups only have rows."""
        return min(self.config.groups, self.group_count) if self.solves_rows else self.group_count

    @property
    def items(self) -> Ids:
        """All items: the declared ones, or those of all interactions, held out or not, in the order of UTF-8 bytes."""
        return self.buckets.items

    @cached_property
    def counts(self) -> Counts:
        """What is known of all people without reading a bucket."""
        rules = Rules.of(self.config, self.stages)
        known = self.counted
        if known is not None and known.rules == rules:
            return known
        alike = known is not None and known.rules.are_those_of(rules)
        if known is not None and alike and not known.has_people(known.rules.stages, self.stages):
            return known.for_stages(self.stages)
        return Counts.together(Counts.of(bucket, rules) for bucket in self.buckets)

    @cached_property
    def groups(self) -> Sequence[Interactions]:
        """The training interactions of each group, users by id; every bucket is read for it."""
        chosen: list[list[Interactions]] = [[] for _ in range(self.group_count)]
        for bucket in self.buckets:
            for position, group in enumerate(chosen):
                mine = bucket.groups == position
                group.append(bucket.training.select(mine[bucket.training.user_index]))
        return tuple(Interactions.joined(parts).by_id() for parts in chosen)

    @cached_property
    def held_out(self) -> Interactions:
        """The interactions that are not learned from, users by id; every bucket is read for it, if there are any."""
        if not self.counts.held_out:
            return no_interactions(self.items)
        return Interactions.joined([bucket.held_out for bucket in self.buckets]).by_id()

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
        if self.stages > 1:
            return self._learners(position)
        if position not in self._kept_learners:
            self._kept_learners[position] = self._learners(position)
        return self._kept_learners[position]

    def _learners(self, position: int) -> Interactions:
        return self.known(position).over(self.learners_over_all(position))

    @cached_property
    def _kept_learners(self) -> dict[int, Interactions]:
        return {}

    def learners_name(self, position: int) -> RowsName:
        """Return the name of these interactions; no bucket is read if its slots were hashed before."""
        features = self.features_at(position)
        named = () if features is None else (features.digest(),)
        return RowsName(self.counts.name_of_stage(position), self.known(position).ids.digest(), *named)

    def features_at(self, position: int) -> Interactions | None:
        """Return the features that the stage at a position learns from, in its numbering; None if the model uses none.

        A row stands for a value that several items have, and its rating for the weight of the feature.
        """
        weights = self.config.features
        if self.features is None or weights is None or not self.config.learner.uses_features:
            return None
        if position not in self._kept_features:
            self._kept_features[position] = self.features.over(self.known(position).ids, weights)
        return self._kept_features[position]

    @cached_property
    def _kept_features(self) -> dict[int, Interactions]:
        return {}

    def size_of_stage(self, position: int, every_item: bool = False) -> Size:
        """Return the size of what a stage learns from, features included; of the items known there, or of all."""
        known = self.known(position)
        size = self.counts.size_of_stage(position, len(self.items) if every_item else len(known))
        return size.with_features(self.features_at(position), self.counts.learned[position][known.places] > 0)

    def size_of_training(self) -> Size:
        """Return the size of everyone's training data, features included."""
        size, last = self.counts.size_of_training(), self.stages - 1
        return size.with_features(self.features_at(last), self.counts.trained[self.known(last).places] > 0)

    def learners_over_all(self, position: int) -> Interactions:
        """Return the same interactions, numbered by all items: users by slot if the model takes them so, else by id."""
        found = Interactions.joined([self._learners_in(bucket, position) for bucket in self.buckets])
        return found if self.config.learner.by_slot else found.by_id()

    def _learners_in(self, bucket: Bucket, position: int) -> Interactions:
        config, rows = self.config, self.as_learned(bucket.training)
        mine = (bucket.groups == position) & anchors_among(bucket.users, config.anchors, config.seed)
        return rows if mine.all() else rows.select(mine[rows.user_index])

    def as_learned(self, rows: Interactions) -> Interactions:
        """Return rows as the model is given them: in each person's own order if it uses time, else without times."""
        return rows.ordered if self.config.learner.uses_time else rows.timeless

    def change_from(self, before: "Dataset", position: int) -> Change:
        """Return how the learners of a stage differ from those of an earlier dataset; only changed buckets are read."""
        new, old = self.buckets.new_since(before.buckets), before.buckets.new_since(self.buckets)
        after, earlier = (
            known.over(Interactions.joined([data._learners_in(data.buckets[number], position) for number in numbers]))
            if numbers
            else no_interactions(known.ids)
            for data, numbers, known in ((self, new, self.known(position)), (before, old, before.known(position)))
        )
        features = self.features_at(position)
        return Change(*differing_rows(earlier, after), self.learners(position), features=features)

    def lessons_of(self, users: Collection[str]) -> Interactions:
        """Return those interactions of some users that shaped shared parameters."""
        config, people = self.config, Ids.of(dict.fromkeys(users))
        parts = [no_interactions(self.items)]
        for number, places in self.buckets.by_bucket(people).items():
            bucket = self.buckets[number]
            rows = bucket.users.positions_of(people.take(places).array)
            rows = np.sort(rows[(rows >= 0)])
            rows = rows[bucket.groups[rows] < self.stages]
            rows = rows[anchors_among(bucket.users.take(rows), config.anchors, config.seed)]
            parts.append(self.as_learned(bucket.training).at(rows).by_id())
        return Interactions.merge(parts)

    def lessons_without(self, users: Collection[str]) -> Interactions:
        """Return the interactions of everyone else that shaped shared parameters."""
        held = [self.learners_over_all(position).without(users) for position in range(self.stages)]
        return held[0] if len(held) == 1 else Interactions.merge(held)

    @cached_property
    def _known(self) -> tuple[KnownItems, ...]:
        if self.catalogue is not None and len(self.catalogue.versions) == 1:  # without counting anything
            return (KnownItems.among(self.items, np.arange(len(self.items))),) * self.stages
        had, apart = self.counts.learned > 0, self.config.strategy == "sisa"
        if self.catalogue is None:
            return items_brought(had | self.is_declared, self.items, apart)
        return items_listed(had, self.catalogue, apart)

    @cached_property
    def is_declared(self) -> NDArray[np.bool_]:
        """Which of all items are declared with their features: they stay, whoever has them."""
        declared = np.zeros(len(self.items), bool)
        if self.features is not None:
            places = self.items.positions_of(self.features.items.array)
            declared[places[places >= 0]] = True  # a catalogue may lack some
        return declared

    @property
    def users(self) -> int:
        """How many users there are."""
        return self.counts.users

    @property
    def interactions(self) -> int:
        """How many interactions there are, held out or not."""
        return int(self.counts.rows.sum())

    @property
    def data_name(self) -> str:
        """The digest of all interactions, in their groups and in the holdout; it has no salt, and stays in memory."""
        return self.counts.name_of_everything()

    def group_sizes(self) -> list[Size]:
        """Return the size of each group's training data."""
        return [self.counts.size_of_group(position) for position in range(self.group_count)]

    def find(self, user: str) -> Place:
        """Return where a user's data is."""
        place = self.buckets.find(user)
        if place is None:
            raise UnknownUser(f"nothing is held about the user {user!r}: check the id, exactly as in the data")
        return place

    def user_at(self, place: Place) -> str:
        """Return the id of the user at a place."""
        return self.buckets[place.bucket].users[place.row]

    def items_of(self, user: str) -> frozenset[str]:
        """Return the ids of a user's items, held out or not."""
        place = self.find(user)
        held = self.buckets[place.bucket].history(np.array([place.row]))
        return frozenset(held.items.take(held.item_index).texts())

    def data_of(self, users: Collection[str]) -> Interactions:
        """Return all interactions of some users, held out or not, by id; an unknown user is an error."""
        people = Ids.of(dict.fromkeys(users))
        found = self.data_held_of(people)
        if len(found.users) < len(people):
            self.find(next(user for user in people if user not in found.users))
        return found

    def data_held_of(self, people: Ids) -> Interactions:
        """Return the same for those of some users who are known."""
        parts = [no_interactions(self.items)]
        for number, places in self.buckets.by_bucket(people).items():
            bucket = self.buckets[number]
            rows = bucket.users.positions_of(people.take(places).array)
            parts.append(bucket.history(np.sort(rows[rows >= 0])))
        return Interactions.merge(parts)

    def without(self, users: Collection[str], pairs: Collection[tuple[str, str]]) -> "Dataset":
        """Return the dataset as if it had never held these users and (user, item) pairs."""
        hit = {*users, *(user for user, _ in pairs)}
        positions = {user: self.find(user).group for user in hit}
        return self.revised(positions, self.data_of(hit).without(users=users, pairs=pairs))

    def revised(self, positions: Mapping[str, int], rows: Interactions) -> "Dataset":
        """Return the dataset in which some users have exactly these rows, each in the group at a position.

        Their rows are split into training and holdout, which depends on each user's own interactions alone. All
        cohesion is dropped: it was computed from the removed data too, so a guess about that data could be tested
        against it. Only buckets of these users are read; an item that nobody has any more is gone.
        """
        training, held_out = self.config.splitting.of(rows)
        people = Ids.of(positions)
        group_count = max(self.group_count, 1 + max(positions.values(), default=-1))
        wider = replace(self, group_count=group_count, cohesion=(), counted=self.counts)
        groups = np.array([*positions.values()], np.int64)
        new, before, after = dict[int, Bucket](), list[Counts](), list[Counts]()
        for number, places in self.buckets.by_bucket(people).items():
            old, some = self.buckets[number], people.take(places)
            new[number] = _with_people(old, some, groups[places], (training, held_out), self.config.seed)
            before.append(Counts.of(old, wider.counts.rules, hashed=False))
            after.append(Counts.of(new[number], wider.counts.rules))
        counts = wider.counts.changed(Counts.together(before), Counts.together(after)) if new else wider.counts
        while group_count > self.config.groups and not (counts.histories[:, 0] == group_count - 1).any():
            group_count -= 1  # an empty group that was added later must leave no trace
        buckets = self.buckets.changed(new, self.items)
        return replace(wider, buckets=buckets, group_count=group_count, counted=counts).tidied()

    def over(self, items: Ids) -> "Dataset":
        """Return the same dataset, its rows numbered by a longer list of items."""
        if items == self.items:
            return self
        counts = self.counts.over(items.positions_of(self.items.array), len(items))
        return replace(self, buckets=self.buckets.over(items), counted=counts)

    def following(self) -> "Dataset":
        """Return the same dataset without a declared catalogue: items follow the users."""
        ordered = self.items.sorted()
        buckets = [bucket.over(ordered) for bucket in self.buckets.in_memory()]
        renumbered = Buckets(buckets, self.buckets.starts, ordered, self.config.seed)
        return replace(self, catalogue=None, buckets=renumbered, counted=None).tidied()

    def tidied(self) -> "Dataset":
        """Return the same dataset without items that nobody has, unless they are declared; all that are, are there."""
        had = self.counts.rows > 0
        if self.catalogue is not None or (self.features is None and had.all()):
            return self
        items = self.items.take(np.flatnonzero(had))
        if self.features is not None:
            items = encode_ids(pa.concat_arrays([items.array, self.features.items.array]))[0]
        counts = self.counts.over(items.positions_of(self.items.array), len(items))
        return replace(self, buckets=self.buckets.over(items), counted=counts)

    def with_features(self, features: ItemFeatures | None) -> "Dataset":
        """Return the same people with other features of items; itself if these are the same."""
        held = self.features
        if held is not None and features is not None and features.table.equals(held.table):
            return self
        return replace(self, features=features, counted=self.counts).tidied()

    def data_held_out(self, users: Collection[str]) -> Interactions:
        """Return the held-out interactions of some users, by id."""
        places = [place for place in map(self.buckets.find, users) if place is not None]
        numbers = sorted({place.bucket for place in places})
        parts = [self.buckets[number].held_out.of_users(users) for number in numbers]
        return Interactions.joined([no_interactions(self.items), *parts]).by_id()

    def recounted(self, in_memory: bool = True) -> "Dataset":
        """Return the same dataset with counts made from its data, not read from a file; by default all in memory."""
        return replace(self, buckets=self.buckets.in_memory() if in_memory else self.buckets, counted=None)

    def kept_open(self) -> "Dataset":
        """Return the same dataset with its files kept open: they can be read when another version is current."""
        return replace(self, buckets=self.buckets.kept_open(), counted=self.counts)


def no_interactions(items: Ids) -> Interactions:
    """Return no rows, numbered by a list of items."""
    nothing = np.empty(0, np.int32)
    return Interactions(Ids.of([]), items, nothing, nothing, nothing.astype(np.float32))


def _with_people(
    bucket: Bucket, people: Ids, groups: NDArray[np.int64], rows: tuple[Interactions, Interactions], seed: int
) -> Bucket:
    """Return a bucket in which some people have exactly these rows in training and in the holdout."""
    places = bucket.users.positions_of(people.array)
    left = bucket.without(places[places >= 0])
    training, held_out = (part.of_users(people.texts()) for part in rows)
    if not len(training):
        return left
    own = groups[people.positions_of(training.users.array)]
    joined = Interactions.joined([left.training, training]) if len(left.training) else training
    others = [part for part in (left.held_out, held_out) if len(part)]
    return Bucket.of(
        joined,
        Interactions.joined(others) if others else held_out,
        np.concatenate([left.groups, own]),
        seed,
    )


@dataclass(frozen=True, eq=False)
class State:
    """A trained recommender: its dataset, and the chain of stages trained on it."""

    dataset: Dataset
    chain: tuple[Link, ...]
    recorded: tuple[Link, ...] = ()
    """The chain under the names in this version's records and certificates, if an earlier release wrote them."""

    @cached_property
    def data_name(self) -> str:
        """The name of all data in this version's records and certificates: earlier releases hashed whole groups."""
        if not self.recorded:
            return self.dataset.data_name
        return " ".join([*(group.digest() for group in self.dataset.groups), self.dataset.held_out.digest()])

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

    @property
    def trains_rows(self) -> bool:
        """Whether checkpoints hold user rows."""
        return not self.dataset.solves_rows and self.dataset.config.learner.has_rows

    def trained_rows(self, checkpoints: CheckpointStore, position: int) -> Arrays:
        """Return the user rows in the checkpoint of a group's stage, users by id; empty if rows are not trained."""
        if not self.trains_rows:
            return {}
        return checkpoints.get(self.chain[position].fingerprint).parameters.rows

    def trained_row(self, checkpoints: CheckpointStore, place: Place) -> Arrays:
        """Return the row of the user at a place, as their stage trained it; empty if rows are not trained."""
        if not self.trains_rows:
            return {}
        row = int(self.dataset.groups[place.group].users.positions([self.dataset.user_at(place)])[0])
        return {name: array[row] for name, array in self.trained_rows(checkpoints, place.group).items()}
