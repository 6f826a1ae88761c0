"""Everything a recommender knows, as one frozen object; its parameters are kept apart, in a checkpoint store."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from erasable.data import Catalogue, Ids, Interactions, RatingScale, split_holdout
from erasable.errors import UnknownUser
from erasable.grouping import Cohesion, anchors_among
from erasable.training.settings import Config


@dataclass(frozen=True)
class Link:
    """One step of a chain that was made: its checkpoint, the one before, and what making it from scratch takes."""

    fingerprint: str
    parent: str
    samples: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What learning starts from: the surviving data in their groups, with everything that was declared or frozen.

    Entry p of `groups` holds the training interactions of the group at position p. Which group a user belongs to is
    said there and nowhere else. Item numbers refer to the catalogue throughout.
    """

    config: Config
    catalogue: Catalogue
    scale: RatingScale
    groups: Sequence[Interactions]
    held_out: Interactions
    kept_items: frozenset[str] | None = field(default=None, repr=False)
    """The items that the filter kept, if there was one."""
    cohesion: tuple[Cohesion | None, ...] = ()
    """The paper's ρ of each group, by position, where it is known; none at all if it was never computed."""

    @property
    def solves_rows(self) -> bool:
        """Whether personal rows are solved after the last stage, instead of trained in the stages."""
        return self.config.rows == "solved"

    @property
    def stages(self) -> int:
        """How many groups shape shared parameters; where rows are solved, those that came later have rows only."""
        return min(self.config.groups, len(self.groups)) if self.solves_rows else len(self.groups)

    def learners(self, position: int) -> Interactions:
        """Return the interactions that the stage at a position learns from, over the items that it knows."""
        return self._of_anchors(self.groups[position]).of_first_items(self.items_known(position))

    def lessons_of(self, users: Collection[str]) -> Interactions:
        """Return the interactions of some users that shaped the shared parameters of the last stage."""
        held = [self.groups[position].of_users(users) for position in range(self.stages)]
        lessons = Interactions.merge([self._of_anchors(part) for part in held])
        return lessons.of_first_items(self.items_known(self.stages - 1))

    def items_known(self, position: int) -> int:
        """Return how many items the shared parameters know after a stage: those of the last version that it needs."""
        versions = self.catalogue.versions
        first = position if self.config.strategy == "sisa" else 0
        if len(versions) == 1:
            return versions[0]
        groups = (self._of_anchors(self.groups[place]) for place in range(first, position + 1))
        largest = max((int(np.max(group.item_index, initial=-1)) for group in groups), default=-1)
        return next(items for items in versions if items > largest)

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
        return frozenset(self.catalogue.items[number] for part in numbers for number in part.tolist())

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
        return replace(self, groups=tuple(groups), held_out=held_out, cohesion=())

    def over(self, catalogue: Catalogue) -> "Knowledge":
        """Return the same knowledge over a later version of the catalogue."""
        groups = tuple(_renamed(group, catalogue.items) for group in self.groups)
        return replace(self, catalogue=catalogue, groups=groups, held_out=_renamed(self.held_out, catalogue.items))


def _renamed(rows: Interactions, items: Ids) -> Interactions:
    """Number rows by a list that begins with the one they are numbered by."""
    return replace(rows, items=items)


@dataclass(frozen=True, eq=False)
class State:
    """A recommender that has learned: what it knows, and the chain that came out of it, its stages first."""

    knowledge: Knowledge
    chain: tuple[Link, ...]

    @property
    def stages(self) -> tuple[Link, ...]:
        """The links that shaped shared parameters."""
        return self.chain[: self.knowledge.stages]

    @property
    def scoring_links(self) -> tuple[Link, ...]:
        """The links that scoring needs: a chain scores with its last stage only."""
        stages = self.stages if self.knowledge.config.strategy == "sisa" else self.stages[-1:]
        rows = {self.rows_link(position) for position in range(len(self.knowledge.groups))}
        return tuple(link for link in self.chain if link in rows or link in stages)

    def rows_link(self, position: int) -> Link:
        """Return the link that holds the personal rows of the group at a position."""
        return self.chain[position + (self.knowledge.stages if self.knowledge.solves_rows else 0)]
