"""Everything a recommender knows, as one frozen object; its parameters are kept apart, in a checkpoint store."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from erasable.data import Catalogue, Interactions, RatingScale, split_holdout
from erasable.errors import UnknownUser
from erasable.grouping import Cohesion
from erasable.training.settings import Config


@dataclass(frozen=True)
class Link:
    """One stage of a chain that was trained: its checkpoint, the one before, and what it took."""

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

    def data_of(self, user: str) -> Interactions:
        """Return all interactions of a user, held out or not."""
        position, _ = self.find(user)
        return Interactions.merge([self.groups[position].of_users([user]), self.held_out.of_users([user])])

    def without(self, users: Collection[str], pairs: Collection[tuple[str, str]]) -> "Knowledge":
        """Return the knowledge that never had these users and (user, item) pairs.

        The groups they belong to are split into training and holdout again; for everyone else that gives the same,
        since it depends on each user's own interactions alone. All cohesion is dropped: it was computed with what is
        gone, in a space that everyone shaped, and a guess about what is gone could be tested against it.
        """
        groups = list(self.groups)
        held_out = [self.held_out]
        for position in {self.find(user)[0] for user in {*users, *(user for user, _ in pairs)}}:
            members = groups[position].users.texts()
            everything = Interactions.merge([groups[position], held_out[0].of_users(members)])
            remaining = everything.without(users=users, pairs=pairs)
            groups[position], again = split_holdout(remaining, self.config.holdout, self.config.seed)
            held_out = [held_out[0].without(users=members), *held_out[1:], again]
        return replace(self, groups=tuple(groups), held_out=Interactions.merge(held_out), cohesion=())


@dataclass(frozen=True, eq=False)
class State:
    """A recommender that has learned: what it knows, and the chain of stages that came out of it."""

    knowledge: Knowledge
    chain: tuple[Link, ...]
