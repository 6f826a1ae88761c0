"""Users' vectors by our own skip-gram and by gensim's: are the groups that they give equally good?

    scripts/bench vectors --data DIR [--sets ciao ml-1m] [--seeds 0 1 2]

DIR holds ciao/ratings.csv and ml-1m/ratings.csv. Groups are decided on what the holdout of 0.1 leaves, and on made-up
data with planted groups. Each finished cell is one file under results/vectors/, so a run that was stopped goes on from
there; a file of other settings is made again.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from erasable.data import Interactions, SyntheticSettings, read_interactions, recognise_scale, split_holdout, synthesise
from erasable.evaluation import adjusted_rand_index, within_group_cosine
from erasable.grouping import GroupingEffort, GroupingSettings, assign_groups
from erasable.grouping.groups import cohesion_of_groups
from erasable.grouping.points import Labels, bipartite_graph, rating_rows
from reporting import RESULTS, documented_parser, print_table, save

FOLDER = "vectors"
GROUPS, HOLDOUT = 8, 0.1
PLANTED = SyntheticSettings(users=2000, items=800, groups=8, per_user=20, in_group=0.8, popularity_exponent=0.5)
CASES = [(grouping, vectors) for grouping in ("cbkm-near", "cbkm") for vectors in ("gensim", "erasable")]
NOTES = {
    "planted": "adjusted Rand index with the planted groups, by seed, which is that of data and grouping",
    "agreement": "adjusted Rand index of each two seeds on the same data",
    "cosine": "mean cosine of the item sets of two users of a group, by seed",
    "rho": "mean cohesion over the groups, between rating rows, by seed",
}


def main() -> None:
    options = _options()
    found = [
        cell for case in CASES for cell in [_planted(case, options), *(_real(case, s, options) for s in options.sets)]
    ]
    found.sort(key=lambda cell: cell["data"])
    measures = ("planted", *(name for name in NOTES if name != "planted"))
    rows = [
        [cell["data"], cell["grouping"], cell["vectors"], *(_shown(cell.get(name)) for name in measures)]
        for cell in found
    ]
    print_table(("data", "grouping", "vectors by", *measures), rows)
    print(f"written to {save(FOLDER, {'notes': NOTES, 'seeds': options.seeds, 'cells': found})}")


def _shown(values: Sequence[float] | None) -> str:
    return "" if values is None else f"{statistics.mean(values):.4g}"


def _planted(case: tuple[str, str], options: argparse.Namespace) -> dict[str, Any]:
    def make() -> dict[str, Any]:
        made = [(seed, synthesise(PLANTED.model_copy(update={"seed": seed}))) for seed in options.seeds]
        pairs = [(_grouped(data.interactions, case, seed), data.labels) for seed, data in made]
        return {"planted": [adjusted_rand_index(labels, planted) for labels, planted in pairs]}

    return _kept("planted", case, options, make)


def _real(case: tuple[str, str], name: str, options: argparse.Namespace) -> dict[str, Any]:
    def make() -> dict[str, Any]:
        read = read_interactions(options.data / name / "ratings.csv").interactions
        training = split_holdout(read, HOLDOUT, 0)[0]
        space = rating_rows(bipartite_graph(training, recognise_scale(read.rating)))
        found = [_grouped(training, case, seed) for seed in options.seeds]
        cohesion = [cohesion_of_groups(space, labels, GROUPS, 0, 1) for labels in found]
        return {
            "agreement": [adjusted_rand_index(one, other) for one, other in combinations(found, 2)],
            "cosine": [within_group_cosine(training, labels) for labels in found],
            "rho": [statistics.mean(group.value for group in groups) for groups in cohesion],
        }

    return _kept(name, case, options, make)


def _grouped(interactions: Interactions, case: tuple[str, str], seed: int) -> Labels:
    settings = GroupingSettings(grouping=case[0], vectors=case[1], groups=GROUPS, order="number")
    scale = recognise_scale(interactions.rating)
    return assign_groups(interactions, scale, settings, seed, GroupingEffort(1)).positions


def _kept(
    data: str, case: tuple[str, str], options: argparse.Namespace, make: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Return a cell's result, from its file if these settings made it."""
    settings = {"data": data, "grouping": case[0], "vectors": case[1], "groups": GROUPS, "seeds": list(options.seeds)}
    name = "-".join((data, *case))
    path = RESULTS / FOLDER / f"{name}.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    if settings.items() <= kept.items():
        return {field: value for field, value in kept.items() if field != "machine"}
    began = time.process_time()
    result = {**settings, **make()}
    result["cpu_seconds"] = round(time.process_time() - began, 1)
    save(f"{FOLDER}/{name}", result)
    print(f"{name} ({result['cpu_seconds']} CPU s)", file=sys.stderr, flush=True)
    return result


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with ciao/ and ml-1m/")
    parser.add_argument("--sets", nargs="+", default=["ciao", "ml-1m"], help="names of folders in it")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    return parser.parse_args()


if __name__ == "__main__":
    main()
