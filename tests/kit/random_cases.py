"""Random cases of the acceptance test: a table, settings, threads and a sequence of requests, each from its number.

Cases that can't be are drawn again, from the same generator: those in which the filter leaves fewer users than there
are groups, or so few that nothing may be erased. A request that would leave nobody, one user in the file or, where
groups are decided anew, fewer users than groups is not made: B could not be learned. Another one is made in its place.

Cases from number `CHAINS` on are of the other ways to learn: solved rows, anchors, closed forms; in half of them a part
of the table is learned later.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import islice
from typing import TypeVar

import numpy as np

from erasable.requests import Request
from kit.fitting import fitting
from kit.random_tables import Generator, Pair, Table, by_user, core, draw_table

T = TypeVar("T")
MODELS = ("nmf", "dmf")
STRATEGIES = ("laser", "laser", "laser", "sisa", "sisa", "retrain")
GROUPINGS = ("random", "bkm", "cbkm", "cbkm-near", "clpa", "cgmm", "independent", "independent")
POLICIES = ("fixed", "fixed", "regroup")
ORDERS = ("number", "easy", "hard", "count")
BATCHES = (1, 7, 64, 300, 2048)
CHAINS = 1000
"""How many cases are chains of nmf and dmf with rows from their stages, which the reference can train."""
WAYS = ("solved", "anchors", "als", "ease")
KINDS = ("user", "odd user", "items", "last item", "group", "again")


@dataclass(frozen=True)
class Choices:
    """What is chosen about learning; each is an option of the command, none if it is left out."""

    model: str
    strategy: str
    aggregate: str | None
    grouping: str
    order: str | None
    policy: str
    groups: int
    epochs: int
    epoch_budget: str
    batch: int
    negatives: int
    holdout: float
    min_interactions: int
    seed: int
    rows: str | None = None
    anchors: float | None = None
    factors: int | None = None
    regularisation: float | None = None

    def words(self) -> list[str]:
        """Return the options that the model and the strategy have; independent groups imply their policy."""
        given = fitting({field.name: getattr(self, field.name) for field in fields(self)})
        left_out = {name for name, value in given.items() if value is None}
        left_out |= {"policy"} if self.policy == "independent" and "grouping" in given else set()
        return [
            word for name in given if name not in left_out for word in (f"--{name.replace('_', '-')}", str(given[name]))
        ]

    @property
    def way(self) -> str:
        """How it is learned: as a chain of stages with their rows, or one of the other ways."""
        if self.model in ("als", "ease"):
            return self.model
        return "anchors" if self.anchors else self.rows or "chain"

    @property
    def fewest_users(self) -> int:
        """How many users a table must have to be learned from."""
        return 1 if self.strategy == "retrain" or self.grouping == "independent" else self.groups


@dataclass(frozen=True)
class Later:
    """What is learned later: the pairs of the file that come, and after how many calls."""

    pairs: frozenset[Pair]
    after: int


@dataclass(frozen=True)
class Ask:
    """What is to be asked for: its kind, and a number that decides about whom among those who are there then."""

    kind: str
    draw: int


@dataclass(frozen=True)
class Case:
    """All that decides what happens in one case."""

    number: int
    table: Table
    choices: Choices
    declared: tuple[str, ...]
    threads: tuple[int, int]
    calls: tuple[tuple[Ask, ...], ...]
    order_of_b: int
    later: Later | None = None

    @property
    def first_pairs(self) -> frozenset[Pair]:
        """The pairs that A learns from at first."""
        return self.table.pairs - (self.later.pairs if self.later else frozenset())

    @property
    def groups_are_given(self) -> bool:
        """Whether B takes what A decided: groups, or the filter where that is not decided anew."""
        choices = self.choices
        if choices.policy == "regroup":
            return False
        several = choices.strategy != "retrain" or self.later is not None  # who comes later may have a row only
        return choices.min_interactions > 0 or (choices.policy == "fixed" and several)

    def held(self, pairs: Collection[Pair]) -> frozenset[Pair]:
        """Return what is held of these pairs, all others having been erased."""
        minimum = self.choices.min_interactions
        if self.choices.policy == "regroup":
            return core(pairs, minimum)
        users, items = self._kept
        return frozenset(pair for pair in pairs if pair[0] in users and pair[1] in items)

    @cached_property
    def _kept(self) -> tuple[set[str], set[str]]:
        kept = core(self.table.pairs, self.choices.min_interactions)
        return {user for user, _ in kept}, {item for _, item in kept}

    def may_be_left(self, pairs: Collection[Pair]) -> bool:
        """Say whether B can be learned from these pairs: a file needs two users, groups decided anew one for each."""
        fewest = self.choices.fewest_users if self.choices.policy == "regroup" else 1
        return len(by_user(pairs)) >= 2 and len(by_user(self.held(pairs))) >= fewest

    def __str__(self) -> str:
        users, items = len(by_user(self.table.pairs)), len(self.table.items)
        calls = "; ".join(", ".join(ask.kind for ask in call) for call in self.calls)
        return (
            f"case {self.number}: {len(self.table.rows)} rows of {users} users and {items} items, scale "
            f"{'–'.join(self.table.scale)}, declared {' and '.join(self.declared) or 'nothing'}; "
            f"{' '.join(self.choices.words())}; threads {self.threads[0]} and {self.threads[1]}; asked: {calls}"
            f"{f'; {len(self.later.pairs)} pairs come after call {self.later.after}' if self.later else ''}"
        )


def case_of(number: int) -> Case:
    """Draw a case from its number alone."""
    generator = np.random.default_rng([20240611, number])
    while True:
        case = _draw_case(generator, number)
        if number >= CHAINS:
            case = _draw_other_way(generator, case)
        if _can_be(case):
            return case


def _draw_case(generator: Generator, number: int) -> Case:
    table = draw_table(generator)
    choices = _draw_choices(generator)
    _, scale = generator.random(), generator.random()  # once a catalogue was declared in some cases
    has_scale = scale < 0.3 or choices.policy == "independent" or table.scale == ("0", "100")
    return Case(
        number=number,
        table=table,
        choices=choices,
        declared=("scale",) if has_scale else (),
        threads=(int(generator.integers(1, 5)), int(generator.integers(1, 5))),
        calls=tuple(_draw_call(generator) for _ in range(generator.integers(1, 5))),
        order_of_b=int(generator.integers(2**32)),
    )


def _draw_choices(generator: Generator) -> Choices:
    strategy, grouping = _one_of(generator, STRATEGIES), _one_of(generator, GROUPINGS)
    policy = _one_of(generator, POLICIES)
    return Choices(
        model=_one_of(generator, MODELS),
        strategy=strategy,
        aggregate=_one_of(generator, (None, "mean", "own")) if strategy == "sisa" else None,
        grouping=grouping,
        order=None if grouping == "independent" else _one_of(generator, (None, *ORDERS)),
        policy="independent" if (grouping, policy) == ("independent", "fixed") else policy,
        groups=int(generator.integers(1, 7)),
        epochs=int(generator.integers(1, 7)),
        epoch_budget=_one_of(generator, ("shared", "full")),
        batch=_one_of(generator, BATCHES),
        negatives=_one_of(generator, (0, 1, 4)),
        holdout=_one_of(generator, (0.0, 0.2)),
        min_interactions=_one_of(generator, (0, 0, 2, 3)),
        seed=int(generator.integers(1000)),
    )


def _draw_other_way(generator: Generator, case: Case) -> Case:
    """Turn a case into one of the other ways, and let a part of the table come later."""
    choices = replace(case.choices, **_draw_way(generator, case.choices), aggregate=None)
    if generator.random() < 0.5:
        return replace(case, choices=choices)
    chosen = generator.random(len(case.table.pairs)) < _one_of(generator, (0.1, 0.4))
    pairs = frozenset(pair for pair, comes in zip(sorted(case.table.pairs), chosen, strict=True) if comes)
    return replace(
        case,
        choices=replace(choices, min_interactions=0),
        declared=tuple(sorted({*case.declared, "scale"})),
        later=Later(pairs, int(generator.integers(len(case.calls) + 1))),
    )


def _draw_way(generator: Generator, choices: Choices) -> dict[str, object]:
    strategy = "retrain" if choices.strategy == "retrain" else "laser"
    some = _one_of(generator, (0.0001, 0.3, 0.6))
    regularisation = _one_of(generator, (None, 0.1, 2.0, 1000.0))
    match _one_of(generator, WAYS):
        case "solved":
            return {"strategy": strategy, "rows": "solved"}
        case "anchors":
            return {"strategy": strategy, "anchors": some}
        case "als":
            factors, anchors = _one_of(generator, (1, 4, 64)), _one_of(generator, (None, 1.0, some))
            closed = {"strategy": "retrain", "regularisation": regularisation}
            return {"model": "als", "factors": factors, "anchors": anchors, **closed}
        case _:
            rows, anchors = _one_of(generator, ((None, None), ("solved", None), (None, some)))
            closed = {"strategy": "retrain", "regularisation": regularisation}
            return {"model": "ease", "rows": rows, "anchors": anchors, **closed}


def _draw_call(generator: Generator) -> tuple[Ask, ...]:
    count = int(generator.integers(1, 4))
    return tuple(Ask(_one_of(generator, KINDS), int(generator.integers(2**32))) for _ in range(count))


def _one_of(generator: Generator, choices: Sequence[T]) -> T:
    return choices[generator.integers(len(choices))]


def _can_be(case: Case) -> bool:
    first = case.first_pairs
    held = case.held(first)
    if len(by_user(held)) < case.choices.fewest_users or (case.later and not case.later.pairs):
        return False
    return any(case.may_be_left(first - {pair}) for pair in held)


@dataclass(frozen=True)
class Moment:
    """How things stand before a call: the pairs of the file that are left, who is together, of whom a part is gone."""

    left: frozenset[Pair]
    groups: Sequence[Collection[str]]
    partly_gone: Collection[str]


@dataclass(frozen=True)
class Asked:
    """What was asked for in the end, and what kind of asking that is."""

    kind: str
    requests: tuple[Request, ...]


def requests_of(case: Case, call: Sequence[Ask], moment: Moment) -> list[Asked]:
    """Choose what a call asks for, about each person once; where a kind is not to be had, some items instead."""
    asked: list[Asked] = []
    for ask in call:
        before = [request for one in asked for request in one.requests]
        left = without(moment.left, before)
        found = (one for one in _candidates(case, ask, moment, before) if case.may_be_left(without(left, one.requests)))
        asked += list(islice(found, 1))
    return asked


def without(pairs: frozenset[Pair], requests: Collection[Request]) -> frozenset[Pair]:
    """Return the pairs that nobody asks to be forgotten."""
    whole = {request.user for request in requests if request.everything}
    named = {(request.user, item) for request in requests for item in request.items or ()}
    return frozenset(pair for pair in pairs if pair[0] not in whole and pair not in named)


def _candidates(case: Case, ask: Ask, moment: Moment, before: Collection[Request]) -> Iterator[Asked]:
    named = {request.user for request in before}
    owned = {user: items for user, items in by_user(case.held(moment.left)).items() if user not in named}
    generator = np.random.default_rng(ask.draw)
    people = [list(owned)[place] for place in generator.permutation(len(owned))]
    match ask.kind:
        case "user":
            yield from (Asked(ask.kind, (Request(user),)) for user in people)
        case "odd user":
            yield from (Asked(ask.kind, (Request(user),)) for user in people if user in case.table.odd)
        case "last item":
            fewest = sorted(people, key=lambda user: len(owned[user]))
            yield from (Asked(ask.kind, (Request(user, tuple(owned[user])),)) for user in fewest)
        case "group":
            chosen = [moment.groups[place] for place in generator.permutation(len(moment.groups))]
            whole = [group for group in chosen if group and not named.intersection(group)]
            yield from (Asked(ask.kind, tuple(map(Request, sorted(group)))) for group in whole)
        case "again":
            some = [user for user in people if user in moment.partly_gone]
            yield from (Asked(ask.kind, (_part_of(generator, user, owned[user]),)) for user in some)
    yield from (Asked("items", (_part_of(generator, user, owned[user]),)) for user in people if len(owned[user]) > 1)
    yield from (Asked("items", (Request(user, (item,)),)) for user in people for item in owned[user])


def _part_of(generator: Generator, user: str, items: Sequence[str]) -> Request:
    """Ask for some items of a user, and for one at least."""
    count = int(generator.integers(1, max(2, len(items))))
    return Request(user, tuple(items[place] for place in generator.permutation(len(items))[:count]))
