"""Erasure requests: a user with all of their data, or some of a user's interactions."""

from collections.abc import Sequence
from dataclasses import dataclass

from erasable.errors import UnknownInteraction, UnknownUser, WrongUse
from erasable.grouping import ALONE, GroupingEffort
from erasable.training import Knowledge, regrouped


@dataclass(frozen=True)
class Request:
    """What one person asks to be forgotten: everything, or the interactions with some items.

    Parameters
    ----------
    user : str
        The person's id as text; whole numbers in decimal.
    items : tuple of str, optional
        The items whose interactions are meant; everything if not given.

    Examples
    --------
    >>> Request("42").everything, Request("42", ("a", "b")).everything
    (True, False)
    """

    user: str
    items: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.items is not None and not self.items:
            raise WrongUse(f"the request of user {self.user!r} names no item: name some, or ask for everything")

    @property
    def everything(self) -> bool:
        """Whether all of the person's data is meant."""
        return self.items is None


@dataclass(frozen=True)
class Erasure:
    """Several requests taken together: the users to forget whole, and (user, item) pairs of others."""

    users: frozenset[str]
    pairs: frozenset[tuple[str, str]]

    @staticmethod
    def of(requests: Sequence[Request]) -> "Erasure":
        """Join requests; a user who is to be forgotten whole needs no pairs."""
        users = frozenset(request.user for request in requests if request.everything)
        pairs = frozenset((r.user, item) for r in requests if r.user not in users for item in r.items or ())
        return Erasure(users, pairs)

    def apply(self, knowledge: Knowledge, effort: GroupingEffort = ALONE) -> Knowledge:
        """Return the knowledge that never had what is erased; under the policy regroup, in groups decided anew."""
        remaining = knowledge.without(self.users, self.pairs)
        return regrouped(remaining, effort) if knowledge.config.policy == "regroup" else remaining


def known_requests(requests: Sequence[Request], knowledge: Knowledge, ignore_unknown: bool = False) -> list[Request]:
    """Return the requests about what is held; what is not is refused, or left out."""
    known: list[Request] = []
    for request in requests:
        try:
            known.append(_known(request, knowledge, ignore_unknown))
        except (UnknownUser, UnknownInteraction):
            if not ignore_unknown:
                raise
    return known


def _known(request: Request, knowledge: Knowledge, ignore_unknown: bool) -> Request:
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
    return Request(request.user, held)
