"""Cases: the users of a test set that are known, each with the own test rows; what is asked of them lives elsewhere."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from erasable.data import Ids, Interactions
from erasable.data.holdout import kept_rows, pair_hashes
from erasable.errors import Refused, option
from erasable.models.blas import one_blas_thread
from erasable.models.ranking import ItemNumbers
from erasable.seeding import id_keys
from erasable.threads import pool_of
from erasable.training import Knowledge, Scoring

PEOPLE_MEASURED = 10_000
"""How many people at most the quality in a certificate is measured on."""
_Found = TypeVar("_Found")


@dataclass(frozen=True, eq=False)
class Case:
    """One known user of a test set, by group and row, with the test items and their ratings.

    Items are named by their numbers in the catalogue; those that it lacks have numbers past its end.
    """

    user: str
    position: int
    row: int
    items: ItemNumbers
    ratings: NDArray[np.float32]
    chosen: int
    """The item whose hash of (seed, user, item) is largest: the one that is asked for if there may be only one."""


def cases_of(knowledge: Knowledge, test: Interactions) -> list[Case]:
    """Return the users of the test set that are known, in its order; the others were erased, or never there."""
    numbers = _catalogue_numbers(knowledge.items, test.items)[test.item_index]
    chosen = numbers[kept_rows(test, pair_hashes(test, knowledge.config.seed))]
    cases: dict[int, Case] = {}
    for position, group in enumerate(knowledge.groups):
        rows = group.users.positions_of(test.users.array)
        for place in np.flatnonzero(rows >= 0).tolist():
            own = slice(test.user_starts[place], test.user_starts[place + 1])
            cases[place] = Case(
                test.users[place], position, int(rows[place]), numbers[own], test.rating[own], int(chosen[place])
            )
    if not cases:
        raise Refused(
            "no user of the test set is known: learn with ",
            option("holdout", 0.1),
            ", or test with users that were learned",
        )
    return [cases[place] for place in sorted(cases)]


def measured_people(test: Interactions, seed: int) -> Interactions:
    """Return the test rows of at most 10,000 people: those with the smallest hash of seed and id."""
    if len(test.users) <= PEOPLE_MEASURED:
        return test
    order = np.argsort(id_keys(seed, "people measured", test.users), kind="stable")
    return test.at(np.sort(order[:PEOPLE_MEASURED]))


def for_each_case(
    scoring: Scoring, cases: Sequence[Case], ask: Callable[[Case, NDArray[np.float32]], _Found], threads: int
) -> list[_Found]:
    """Return what is found for each case and its scores, in their order, on several threads."""
    # A block of neighbours for each thread.
    blocks = np.array_split(np.arange(len(cases)), max(1, min(threads, len(cases))))

    def ask_block(block: NDArray[np.int64]) -> list[_Found]:
        chosen = [cases[number] for number in block]
        scores = scoring.each([(case.position, case.row) for case in chosen])
        return [ask(case, found) for case, found in zip(chosen, scores, strict=True)]

    with one_blas_thread(), pool_of(len(blocks)) as pool:
        return [found for block in pool.map(ask_block, blocks) for found in block]


def _catalogue_numbers(catalogue: Ids, items: Ids) -> NDArray[np.int64]:
    """Return each item's number in the catalogue; what it lacks gets numbers past its end, all distinct."""
    if items == catalogue:
        return np.arange(len(items))
    numbers = catalogue.positions_of(items.array)
    return np.where(numbers >= 0, numbers, len(catalogue) + np.arange(len(items)))
