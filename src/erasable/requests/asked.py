"""Who has asked to be erased: everything of them, or the interactions with some items."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from erasable.unlearning import Subject


@dataclass(frozen=True)
class Asked:
    """The people with open requests, in two kinds that share nobody."""

    wholly: frozenset[str] = field(default=frozenset(), repr=False)
    """Who is to be erased with everything."""
    some: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False, hash=False)
    """The items whose interactions are to be erased, by person."""

    @staticmethod
    def of(requests: Iterable[Subject]) -> "Asked":
        """Join requests: who asks for everything needs no items.

        >>> found = Asked.of([Subject("ann"), Subject("ann", ("a",)), Subject("bob", ("a",)), Subject("bob", ("b",))])
        >>> sorted(found.wholly), sorted(found.some["bob"]), len(found.some)
        (['ann'], ['a', 'b'], 1)
        """
        wholly, some = set[str](), dict[str, frozenset[str]]()
        for one in requests:
            if one.items is None:
                wholly.add(one.user)
            else:
                some[one.user] = some.get(one.user, frozenset()).union(one.items)
        return Asked(frozenset(wholly), some).tidied()

    def __or__(self, other: "Asked") -> "Asked":
        """Return what both ask for."""
        both = {user: self.some[user] | other.some[user] for user in self.some.keys() & other.some.keys()}
        return Asked(self.wholly | other.wholly, {**self.some, **other.some, **both}).tidied()

    @cached_property
    def people(self) -> frozenset[str]:
        """Everyone who has asked."""
        return self.wholly.union(self.some)

    def since(self, before: "Asked") -> "Asked | None":
        """Return who has asked since before; None if somebody asks for something else by now, or for nothing."""
        if not before.wholly <= self.wholly or any(self.some.get(user) != own for user, own in before.some.items()):
            return None
        return Asked(
            self.wholly - before.wholly, {user: own for user, own in self.some.items() if user not in before.some}
        )

    def tidied(self) -> "Asked":
        """Return the same without the items of those who are to be erased with everything."""
        if self.wholly.isdisjoint(self.some):
            return self
        return Asked(self.wholly, {user: own for user, own in self.some.items() if user not in self.wholly})


NOBODY_ASKED = Asked()
