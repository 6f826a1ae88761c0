"""Tidy tables of utility made by hand: a function says what each case gave."""

from collections.abc import Callable, Sequence
from itertools import product

from erasable.paper._workbench import PaperClaim, Row, Table

METHODS = ("Retrain", "C-SISA", "C-SISA own", "L-Rand", "L-BKM", "L-CBKM")
GROUPS = (1, 2, 4, 8, 16)
REQUESTS = ("learn", "rand@2.5", "rand@5", "top@2.5", "top@5")
PROTOCOLS = ("whole-catalogue", "one-of-100")


def utility_rows(
    value: Callable[[Row], float],
    methods: Sequence[str] = METHODS,
    groups: Sequence[int] = GROUPS,
    requests: Sequence[str] = REQUESTS,
    seeds: int = 2,
) -> list[Row]:
    """Return a row for each case; of the second protocol every value is 0, which no verdict may notice."""
    places = product(range(seeds), groups, methods, ("dmf", "nmf"), requests, PROTOCOLS, ("hr@10", "ndcg@10", "hr@20"))
    names = ("seed", "groups", "method", "model", "request", "protocol", "metric")
    rows: list[Row] = [dict(zip(names, place, strict=True)) for place in places]
    return [{**row, "value": value(row) if row["protocol"] == PROTOCOLS[0] else 0.0} for row in rows]


def claim_about(claims: Callable[[Table], list[PaperClaim]], table: Table, words: str) -> PaperClaim:
    """Return the one claim that says these words."""
    (found,) = [claim for claim in claims(table) if words in claim.said]
    return found
