"""Everything a recommender knows, as one frozen object; its parameters are kept apart, in a checkpoint store."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from erasable.data import Catalogue, Ids, Interactions, RatingScale, over_own_items, split_holdout
from erasable.errors import UnknownUser
from erasable.grouping import Cohesion, anchors_among
from erasable.models import Arrays
from erasable.training.checkpoint import CheckpointStore
from erasable.training.known_items import KnownItems, items_brought, items_listed
from erasable.training.settings import Config


@dataclass(frozen=True)
class Link:
    """One step of a chain that was made: its checkpoint, the one before, and what making it from scratch takes."""

    fingerprint: str
    parent: str
    samples: int
    seconds: float
    environment: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    """The numeric environment in which making it again gives the same bytes."""


@dataclass(frozen=True)
class RowsName:
    """What names rows: their digest, and that of the items that they are numbered by.

    The digests have no salt, so that a guess could be tested against them: they stay in memory, and nothing shows them.
    """

    rows: str = field(repr=False)
    items: str = field(repr=False)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What learning starts from: the surviving data in their groups, with everything that was declared or frozen.

    Entry p of `groups` holds the training interactions of the group at position p. Which group a user belongs to is
    said there and nowhere else. Item numbers refer to `items` throughout; each stage has numbers of its own besides.
    """

    config: Config
    catalogue: Catalogue | None
    """The list of items that was declared; none if items follow the people. What 0.1 froze counts as declared."""
    scale: RatingScale
    groups: Sequence[Interactions]
    held_out: Interactions
    kept_items: frozenset[str] | None = field(default=None, repr=False)
    """The items that the filter kept, if there was one."""
    cohesion: tuple[Cohesion | None, ...] = ()
    """The paper's ρ of each group, by position, where it is known; none at all if it was never computed."""

    @property
    def solves_rows(self) -> bool:
        """Whether user rows are solved when they are needed, instead of trained in the stages."""
        return self.config.rows == "solved"

    @property
    def stages(self) -> int:
        """How many groups shape shared parameters; where rows are solved, those that came later have rows only."""
        return min(self.config.groups, len(self.groups)) if self.solves_rows else len(self.groups)

    @property
    def items(self) -> Ids:
        """All items: the declared ones, or those that somebody has, held out or not, by their UTF-8 bytes."""
        return self.held_out.items

    def known(self, position: int) -> KnownItems:
        """Return the items that shared parameters know after the stage at a position."""
        return self._known[position]

    @cached_property
    def known_to_some(self) -> NDArray[np.bool_]:
        """Which of all items some stage knows; nobody is offered the others for a score."""
        found = np.zeros(len(self.items), dtype=bool)
        for position in range(self.stages):
            found[self.known(position).places] = True
        return found

    def learners(self, position: int) -> Interactions:
        """Return the interactions that the stage at a position learns from, numbered as the stage numbers its items."""
        return self.known(position).over(self.learners_over_all(position))

    def learners_name(self, position: int) -> RowsName:
        """Return what names these interactions; they are hashed once, however often this is asked."""
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
        """Return the interactions of some users that shaped shared parameters."""
        held = [self.groups[position].of_users(users) for position in range(self.stages)]
        return Interactions.merge([self._of_anchors(part) for part in held])

    def lessons_without(self, users: Collection[str]) -> Interactions:
        """Return the interactions of everyone else that shaped shared parameters."""
        held = [self.learners_over_all(position).without(users) for position in range(self.stages)]
        return held[0] if len(held) == 1 else Interactions.merge(held)

    @cached_property
    def _known(self) -> tuple[KnownItems, ...]:
        if self.catalogue is not None and len(self.catalogue.versions) == 1:  # no group need be read
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

    def without(self, users: Collection[str], pairs: Collection[tuple[str, str]]) -> "Knowledge":
        """Return the knowledge that never had these users and (user, item) pairs."""
        hit = {*users, *(user for user, _ in pairs)}
        positions = {user: self.find(user)[0] for user in hit}
        return self.revised(positions, self.data_of(hit).without(users=users, pairs=pairs))

    def revised(self, positions: Mapping[str, int], rows: Interactions) -> "Knowledge":
        """Return the knowledge in which some users have these rows and no others, each in the group at a position.

        Their rows are split into training and holdout, which depends on each user's own interactions alone. All
        cohesion is dropped: it was computed with what is gone, in a space that everyone shaped, and a guess about what
        is gone could be tested against it.
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
            groups.pop()  # a group that came later and that nobody is left in was never there
        left = self.held_out.without(users=list(positions))
        held_out = Interactions.merge([left, held_out]) if len(held_out) else left
        return replace(self, groups=tuple(groups), held_out=held_out, cohesion=()).tidied()

    def over(self, items: Ids) -> "Knowledge":
        """Return the same knowledge, its rows numbered by a list with further items."""
        *groups, held_out = (
            part if part.items == items else part.with_items(items) for part in (*self.groups, self.held_out)
        )
        return replace(self, groups=tuple(groups), held_out=held_out)

    def following(self) -> "Knowledge":
        """Return the same knowledge without a declared list: items follow the people."""
        return replace(self, catalogue=None).tidied()

    def tidied(self) -> "Knowledge":
        """Return the same knowledge without items that nobody has, unless they are declared."""
        if self.catalogue is not None:
            return self
        *groups, held_out = over_own_items([*self.groups, self.held_out])
        return replace(self, groups=tuple(groups), held_out=held_out)


@dataclass(frozen=True, eq=False)
class State:
    """A recommender that has learned: what it knows, and the chain of stages that came out of it."""

    knowledge: Knowledge
    chain: tuple[Link, ...]
    recorded: tuple[Link, ...] = ()
    """The chain as the records and certificates of this version name it, where an earlier release named it."""

    @property
    def named(self) -> tuple[Link, ...]:
        """The chain under the names that records and certificates of this version have for it."""
        return self.recorded or self.chain

    def untrained(self) -> "State":
        """Return the same knowledge without any stage, to be trained by the model as it is here."""
        config = self.knowledge.config.of_this_revision()
        return State(replace(self.knowledge, config=config), ())

    @property
    def stages(self) -> tuple[Link, ...]:
        """The links that shaped shared parameters."""
        return self.chain

    @property
    def environment(self) -> dict[str, str]:
        """The numeric environment that made the checkpoints; where there are several, every value."""
        values: dict[str, dict[str, None]] = {}
        for link in self.chain:
            for name, value in link.environment.items():
                values.setdefault(name, {})[value] = None
        return {name: " and ".join(said) for name, said in values.items()}

    @property
    def scoring_links(self) -> tuple[Link, ...]:
        """The links that scoring needs: a chain whose rows are solved scores with its last stage only."""
        if self.knowledge.config.strategy == "sisa" or not self.knowledge.solves_rows:
            return self.chain
        return self.chain[-1:]

    def trained_rows(self, checkpoints: CheckpointStore, position: int) -> Arrays:
        """Return the user rows that the checkpoint of a group's stage holds; none where none are trained."""
        if self.knowledge.solves_rows or not self.knowledge.config.learner.has_rows:
            return {}
        return checkpoints.get(self.chain[position].fingerprint).parameters.rows
