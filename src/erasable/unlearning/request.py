"""Erasure requests: a user with all of their data, or some of a user's interactions."""

from collections.abc import Sequence
from dataclasses import dataclass

from erasable.errors import UnknownInteraction, UnknownUser
from erasable.training import Knowledge


@dataclass(frozen=True)
class Request:
    """What one person asks to be forgotten: everything, or the interactions with some items."""

    user: str
    items: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether all of the person's data is meant."""
        return not self.items


@dataclass(frozen=True)
class Erasure:
    """Several requests taken together: the users to forget whole, and (user, item) pairs of others."""

    users: frozenset[str]
    pairs: frozenset[tuple[str, str]]

    @staticmethod
    def of(requests: Sequence[Request]) -> "Erasure":
        """Join requests; a user who is to be forgotten whole needs no pairs."""
        users = frozenset(request.user for request in requests if request.everything)
        pairs = frozenset((r.user, item) for r in requests if r.user not in users for item in r.items)
        return Erasure(users, pairs)

    def apply(self, knowledge: Knowledge) -> Knowledge:
        """Return the knowledge that never had what is erased."""
        return knowledge.without(self.users, self.pairs)


def known_requests(requests: Sequence[Request], knowledge: Knowledge, ignore_unknown: bool = False) -> list[Request]:
    """Return the requests about what is held; what is not is refused, or left out."""
    known: list[Request] = []
    for request in requests:
        try:
            held = _held_items(request, knowledge)
        except UnknownUser:
            if ignore_unknown:
                continue
            raise
        missing = [item for item in request.items if item not in held]
        if missing and not ignore_unknown:
            raise UnknownInteraction(
                f"user {request.user!r} has no interaction with item {missing[0]!r}: nothing was done"
            )
        # No items means everything, so a request of which nothing is held must not be trimmed to that.
        if request.everything or held:
            known.append(Request(request.user, tuple(item for item in request.items if item in held)))
    return known


def _held_items(request: Request, knowledge: Knowledge) -> set[str]:
    """Return the items of a request that its user has; an unknown user is refused."""
    held = knowledge.data_of(request.user)
    present = set(held.item_index.tolist())
    places = held.items.positions(list(request.items)).tolist()
    return {item for item, place in zip(request.items, places, strict=True) if place in present}
