"""What it saves to know who is likely to leave: the expected cost of one request, with and without a risk column.

    scripts/bench risk --data DIR        DIR/ml-1m/ratings.csv

A tenth of the users, drawn by a hash, make a given share of all requests. Costs are counted in samples by the plan of
a typical user of each kind; nothing is trained.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from erasable.chain import Config, Dataset, Link, State, arrange, stages_of
from erasable.data import Catalogue, Interactions, RatingScale, read_interactions
from erasable.grouping.points import ALONE
from erasable.paper import likely_plans
from erasable.seeding import id_keys
from reporting import documented_parser, print_table, save

RISKY_USERS = 0.1
REQUESTS_OF_THEIRS = (0.1, 0.5, 0.8, 0.95)
WAYS: Mapping[str, dict[str, Any]] = {
    "chain of 8 (the paper's)": {"model": "nmf", "groups": 8},
    "solved rows, 8 groups": {"model": "nmf", "groups": 8, "rows": "solved"},
    "30 % anchors": {"model": "nmf", "groups": 1, "anchors": 0.3},
    "als": {"model": "als"},
}


def main() -> None:
    options = _options()
    rows = read_interactions(options.data / "ml-1m" / "ratings.csv").interactions
    risky = _risky(rows)
    lines = [_line(way, rows, risky, share) for way in WAYS for share in REQUESTS_OF_THEIRS]
    header = ("way", "requests by risky users", "cost without", "cost with", "saved")
    print_table(header, [_cells(line) for line in lines])
    print(f"written to {save('risk', {'risky_users': RISKY_USERS, 'lines': lines})}")


def _line(way: str, rows: Interactions, risky: frozenset[str], share: float) -> dict[str, Any]:
    without = _cost(_dataset(rows, WAYS[way], frozenset()), risky, share)
    known = _cost(_dataset(rows, {**WAYS[way], "risk_threshold": 0.5}, risky), risky, share)
    return {"way": way, "requests_of_risky": share, "cost_without": without, "cost_with": known}


def _dataset(rows: Interactions, settings: dict[str, Any], risky: frozenset[str]) -> Dataset:
    frame = Dataset(Config(**settings), Catalogue.from_items(rows.items), RatingScale(1, 5), (), rows)
    return arrange(rows, frame, ALONE, risky=risky)


def _cost(dataset: Dataset, risky: frozenset[str], share: float) -> float:
    """Return the expected cost of one request if the risky make this share of them."""
    state = State(dataset, tuple(Link(task.name, task.parent, 0, 0.0) for task in stages_of(dataset)))
    return share * _mean_cost(state, risky, inside=True) + (1 - share) * _mean_cost(state, risky, inside=False)


def _mean_cost(state: State, risky: frozenset[str], inside: bool) -> float:
    """Return the mean over the risky, or over the others, of what each of them costs."""
    plans = likely_plans(state, lambda user: (user in risky) == inside)
    return sum(likely.share * likely.plan.cost_ratio for likely in plans) / sum(likely.share for likely in plans)


def _risky(rows: Interactions) -> frozenset[str]:
    chosen = id_keys(0, "risk", rows.users) < np.uint64(int(RISKY_USERS * 2**64))
    return frozenset(user for user, is_risky in zip(rows.users, chosen, strict=True) if is_risky)


def _cells(line: dict[str, Any]) -> list[str]:
    without, known = line["cost_without"], line["cost_with"]
    saved = f"{1 - known / without:.0%}" if without else ""
    return [line["way"], f"{line['requests_of_risky']:.0%}", f"{without:.3f}", f"{known:.3f}", saved]


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="where ml-1m/ratings.csv is")
    return parser.parse_args()


if __name__ == "__main__":
    main()
