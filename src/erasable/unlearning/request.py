"""Whom an erasure is about: a user with all of their data, or some of a user's interactions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from erasable.errors import UnknownInteraction, UnknownUser, WrongUse
from erasable.grouping import ALONE, GroupingEffort
from erasable.training import Knowledge, regrouped


@dataclass(frozen=True)
class Subject:
    """Whom an erasure is about, and whether everything of them or the interactions with some items."""

    user: str
    items: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.items is not None and not self.items:
            raise WrongUse(f"the request of user {self.user!r} names no item: name some, or ask for everything")

    @property
    def everything(self) -> bool:
        """Whether all of the person's data is meant."""
        return self.items is None


S = TypeVar("S", bound=Subject)


@dataclass(frozen=True)
class Erasure:
    """Several requests taken together: the users to forget whole, and (user, item) pairs of others."""

    users: frozenset[str]
    pairs: frozenset[tuple[str, str]]

    @staticmethod
    def of(requests: Sequence[Subject]) -> "Erasure":
        """Join requests; a user who is to be forgotten whole needs no pairs."""
        users = frozenset(request.user for request in requests if request.everything)
        pairs = frozenset((r.user, item) for r in requests if r.user not in users for item in r.items or ())
        return Erasure(users, pairs)

    def apply(self, knowledge: Knowledge, effort: GroupingEffort = ALONE) -> Knowledge:
        """Return the knowledge that never had what is erased; under the policy regroup, in groups decided anew."""
        remaining = knowledge.without(self.users, self.pairs)
        return regrouped(remaining, effort) if knowledge.config.policy == "regroup" else remaining


def known_requests(requests: Sequence[S], knowledge: Knowledge, ignore_unknown: bool = False) -> list[S]:
    """Return the requests about what is held; what is not is refused, or left out."""
    known: list[S] = []
    for request in requests:
        try:
            known.append(_known(request, knowledge, ignore_unknown))
        except (UnknownUser, UnknownInteraction):
            if not ignore_unknown:
                raise
    return known


def _known(request: S, knowledge: Knowledge, ignore_unknown: bool) -> S:
    """Return a request, less items that are not held if those may be ignored; with nothing held it is refused."""
    owned = knowledge.items_of(request.user)
    if request.items is None:
        return request
    held = tuple(item for item in request.items if item in owned)
    missing = [item for item in request.items if item not in owned]
    if missing and not (held and ignore_unknown):
        raise UnknownInteraction(
            f"user {request.user!r} has no interaction with item {missing[0]!r}: check its id; nothing was done"
        )
    return replace(request, items=held)
