"""What groupings mean: how stable and how alike their groups are, and how well the chain learns from them.

    scripts/bench grouping_meaning --data DIR [--sets ml-1m ciao] [--seeds 0 1 2] [--markdown FILE]

DIR holds ml-1m/ratings.csv and ciao/ratings.csv. Groups are decided as learning does it: on what the holdout of 0.1
leaves. Each finished cell is one file under results/grouping_meaning/, so a run that was stopped goes on from there;
a file made by other code or settings is made again, unless --any-code is given.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

import erasable
from erasable.chain import Config, Dataset, MemoryStore, arrange, train_chain
from erasable.data import (
    Catalogue,
    Interactions,
    RatingScale,
    SyntheticSettings,
    read_interactions,
    recognise_scale,
    split_holdout,
    synthesise,
)
from erasable.evaluation import adjusted_rand_index, measure, within_group_cosine
from erasable.grouping import GroupingEffort, GroupingSettings, assign_groups
from erasable.grouping.groups import cohesion_of_groups, user_space
from erasable.grouping.points import Labels, Points, bipartite_graph
from erasable.models import Effort
from reporting import RESULTS, documented_parser, markdown_table, print_table, save

FOLDER = "grouping_meaning"
GROUPS, HOLDOUT = 8, 0.1
GROUPINGS = ("cbkm", "cbkm-near", "bkm", "clpa", "cgmm", "random")
OTHER_ORDERS = {"hard": ("cbkm-near", "bkm", "random"), "number": ("cbkm-near", "bkm", "random")}
SPACES = {"rating rows": "bkm", "vectors of cbkm-near": "cbkm-near", "vectors of cbkm": "cbkm"}
PLANTED = SyntheticSettings(users=2000, items=800, groups=8, per_user=20, in_group=0.8, popularity_exponent=0.5)
PLANTED_GROUPINGS = ("cbkm-near", "cbkm", "bkm")
GROUPING_CODE = ("seeding", "data", "grouping", "evaluation/metrics.py")
SHARING_CODE = ("seeding", "data")
CHAIN_CODE = ("seeding", "data", "grouping", "models", "training", "evaluation")
_ROWS_AT_ONCE = 500
METRICS = ("ndcg@10", "hr@10")
NOTES = {
    "agreement_same_data": "adjusted Rand index of seeds 0 and 1 on the same training part (the holdout of seed 0)",
    "agreement_as_learned": "adjusted Rand index of seeds 0 and 1, each with its own holdout, as two learnings differ",
    "cosine": "mean cosine of the 0/1 rows of two users of a group, training part, by seed",
    "rho": "mean cohesion over the groups of seed 0, each grouping measured in the same space",
    "sharing": "share of pairs of users with an item in common, training part of seed 0",
    "chain": "NMF, 8 groups, default epochs, whole catalogue, holdout 0.1; by seed",
    "code": "digest of the code that made a line; where it differs from present_code the line is of other code",
    "planted": "adjusted Rand index with the planted groups; the seed is that of data and grouping",
}


@dataclass(frozen=True)
class Bench:
    """What to read and how to work."""

    data: Path
    threads: int
    any_code: bool

    def kept(self, name: str, made_by: dict[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return a cell's result, from its file if this code and these settings made it."""
        path = RESULTS / FOLDER / f"{name}.json"
        if path.exists():
            kept = json.loads(path.read_text())
            expected = {key: value for key, value in made_by.items() if not (self.any_code and key == "code")}
            if expected.items() <= kept.items():
                return kept
        began = time.perf_counter()
        result = {**made_by, **make()}
        save(f"{FOLDER}/{name}", {**result, "seconds": round(time.perf_counter() - began, 1)})
        print(f"{name} ({time.perf_counter() - began:.0f} s)", file=sys.stderr, flush=True)
        return result

    def grouping_cell(self, data: str, grouping: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Return how stable a grouping is and how alike the users of its groups are."""
        settings = {"data": data, "grouping": grouping, "groups": GROUPS, "holdout": HOLDOUT, "seeds": list(seeds)}

        def make() -> dict[str, Any]:
            first, second = (_grouped(self, data, grouping, seed, 0) for seed in (0, 1))
            own = _grouped(self, data, grouping, 1, 1)
            parts = ((_training(self, data, seed), _grouped(self, data, grouping, seed, seed)) for seed in seeds)
            return {
                "agreement_same_data": adjusted_rand_index(first, second),
                "agreement_as_learned": adjusted_rand_index(first, own),
                "cosine": [within_group_cosine(part, labels) for part, labels in parts],
                "rho": {name: _mean_cohesion(_space(self, data, space), first, self) for name, space in SPACES.items()},
                "largest_group": int(np.bincount(first).max()),
                "smallest_group": int(np.bincount(first).min()),
            }

        return self.kept(f"{data}-{grouping}", {**settings, "code": _digest(GROUPING_CODE)}, make)

    def sharing_cell(self, data: str) -> dict[str, Any]:
        """Return how dense a set is: who meets whom in the hypergraph of `cbkm`."""
        settings = {"data": data, "holdout": HOLDOUT, "code": _digest(SHARING_CODE)}
        return self.kept(f"{data}-sharing", settings, lambda: {**_sizes(self, data), "sharing": _sharing(self, data)})

    def chain_cell(self, data: str, grouping: str, order: str, seed: int) -> dict[str, Any]:
        """Return how well a chain over the groups in this order recommends."""
        config = Config(model="nmf", grouping=grouping, order=order, groups=GROUPS, holdout=HOLDOUT, seed=seed)
        settings = {"data": data, "config": config.flat(), "code": _digest(CHAIN_CODE)}
        return self.kept(f"{data}-{grouping}-{order}-{seed}", settings, lambda: self._learned(data, config))

    def planted_cell(self, grouping: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Return how far a grouping finds planted groups."""
        settings = {"data": PLANTED.model_dump(), "grouping": grouping, "groups": GROUPS, "seeds": list(seeds)}

        def make() -> dict[str, Any]:
            made = [(seed, synthesise(PLANTED.model_copy(update={"seed": seed}))) for seed in seeds]
            found = [(_assigned(case.interactions, grouping, seed, self.threads), case.labels) for seed, case in made]
            return {"agreement_with_planted": [adjusted_rand_index(labels, planted) for labels, planted in found]}

        return self.kept(f"planted-{grouping}", {**settings, "code": _digest(GROUPING_CODE)}, make)

    def _learned(self, data: str, config: Config) -> dict[str, Any]:
        everything = _interactions(self, data)
        frame = Dataset(config, Catalogue.from_items(everything.items), _scale(everything), (), everything)
        dataset = arrange(everything, frame, GroupingEffort(self.threads))
        store = MemoryStore()
        state = train_chain(dataset, store, Effort(threads=self.threads))
        utility = measure(state, store, dataset.held_out, self.threads)
        seconds = sum(link.seconds for link in state.chain)
        return {"users": utility.users, "values": dict(utility.values), "training_seconds": seconds}


def main() -> None:
    options = _options()
    bench = Bench(options.data, options.threads, options.any_code)
    planted = {name: bench.planted_cell(name, options.seeds)["agreement_with_planted"] for name in PLANTED_GROUPINGS}
    wanted = [(grouping, "easy") for grouping in GROUPINGS]
    wanted += [(grouping, order) for order, several in OTHER_ORDERS.items() for grouping in several]
    wanted = [(grouping, order) for grouping, order in wanted if order in options.orders]
    lines, chains = [], []
    for data in options.sets:
        for seed in options.seeds:  # one seed of everything first: what is there after a while is already a table
            for kind in wanted:
                bench.chain_cell(data, *kind, seed)
        lines += [_line(bench.grouping_cell(data, grouping, options.seeds)) for grouping in GROUPINGS]
        chains += [_chain_line(bench, data, kind, options.seeds) for kind in wanted]
    sharing = [bench.sharing_cell(data) for data in options.sets]
    tables = [_sharing_table(sharing), _grouping_table(lines), _chain_table(chains), _planted_table(planted)]
    for table in tables:
        print()
        print_table(*table)
    if options.markdown:
        options.markdown.write_text("\n".join(markdown_table(*table) for table in tables))
    figures = {"sharing": {cell["data"]: cell["sharing"] for cell in sharing}, "groupings": lines, "chains": chains}
    result = {"seeds": options.seeds, "notes": NOTES, **figures, "planted": planted}
    result["present_code"] = {"groupings": _digest(GROUPING_CODE), "chains": _digest(CHAIN_CODE)}
    print(f"\nwritten to {save(FOLDER, result)}")


@cache
def _interactions(bench: Bench, data: str) -> Interactions:
    read = read_interactions(bench.data / data / "ratings.csv").interactions
    return read.with_items(Catalogue.from_items(read.items).items)


@cache
def _training(bench: Bench, data: str, seed: int) -> Interactions:
    return split_holdout(_interactions(bench, data), HOLDOUT, seed)[0]


@cache
def _grouped(bench: Bench, data: str, grouping: str, seed: int, holdout_seed: int) -> Labels:
    """Group the training part that one seed leaves by another seed, which is the same one in learning."""
    scale = _scale(_interactions(bench, data))
    return _assigned(_training(bench, data, holdout_seed), grouping, seed, bench.threads, scale)


def _assigned(
    interactions: Interactions, grouping: str, seed: int, threads: int, scale: RatingScale | None = None
) -> Labels:
    settings = GroupingSettings(grouping=grouping, order="number", groups=GROUPS)
    scale = scale or _scale(interactions)
    return assign_groups(interactions, scale, settings, seed, GroupingEffort(threads)).positions


@cache
def _space(bench: Bench, data: str, grouping: str) -> Points:
    """Return the users, as seed 0 leaves them, in the space of a grouping with seed 0."""
    training, scale = _training(bench, data, 0), _scale(_interactions(bench, data))
    settings, effort = GroupingSettings(grouping=grouping), GroupingEffort(bench.threads)
    return user_space(bipartite_graph(training, scale), training.users, settings, 0, effort)


def _sizes(bench: Bench, data: str) -> dict[str, int]:
    everything = _interactions(bench, data)
    return {"users": len(everything.users), "items": len(everything.items), "interactions": len(everything)}


def _sharing(bench: Bench, data: str) -> float:
    rows = _training(bench, data, 0).csr()
    users = rows.shape[0]
    met = sum((rows[start : start + _ROWS_AT_ONCE] @ rows.T).nnz for start in range(0, users, _ROWS_AT_ONCE))
    return (met - users) / (users * (users - 1))


def _scale(interactions: Interactions) -> RatingScale:
    return recognise_scale(interactions.rating)


def _mean_cohesion(space: Points, labels: Labels, bench: Bench) -> float:
    return statistics.mean(group.value for group in cohesion_of_groups(space, labels, GROUPS, 0, bench.threads))


@cache
def _digest(parts: tuple[str, ...]) -> str:
    """Return a digest of the code that decides some figures."""
    package = Path(erasable.__file__).parent
    paths = (package / part for part in parts)
    sources = sorted(source for path in paths for source in ([path] if path.is_file() else path.rglob("*.py")))
    return blake2b(b"".join(source.read_bytes() for source in sources), digest_size=16).hexdigest()


def _line(cell: dict[str, Any]) -> dict[str, Any]:
    names = (
        "data",
        "grouping",
        "agreement_same_data",
        "agreement_as_learned",
        "rho",
        "largest_group",
        "smallest_group",
        "code",
    )
    return {**{name: cell[name] for name in names}, "cosine": _summary(cell["cosine"])}


def _chain_line(bench: Bench, data: str, kind: tuple[str, str], seeds: Sequence[int]) -> dict[str, Any]:
    cells = [bench.chain_cell(data, *kind, seed) for seed in seeds]
    by_metric = {name: _summary([cell["values"][name] for cell in cells]) for name in METRICS}
    code = sorted({cell["code"] for cell in cells})
    return {"data": data, "grouping": kind[0], "order": kind[1], **by_metric, "code": code}


def _summary(values: Sequence[float]) -> dict[str, Any]:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return {"mean": statistics.mean(values), "deviation": spread, "by_seed": list(values)}


Table = tuple[Sequence[str], list[list[str]]]


def _sharing_table(cells: Iterable[dict[str, Any]]) -> Table:
    sizes = ("users", "items", "interactions")
    rows = [[cell["data"], *(f"{cell[name]:,}" for name in sizes), f"{cell['sharing']:.1%}"] for cell in cells]
    return ("set", *sizes, "pairs of users with an item in common"), rows


def _grouping_table(lines: Iterable[dict[str, Any]]) -> Table:
    header = ("set", "grouping", "agreement", "as learned", "cosine", *(f"ρ in {space}" for space in SPACES))
    return header, [
        [
            line["data"],
            line["grouping"],
            f"{line['agreement_same_data']:.3f}",
            f"{line['agreement_as_learned']:.3f}",
            f"{line['cosine']['mean']:.4f}",
            *(f"{line['rho'][space]:.4g}" for space in SPACES),
        ]
        for line in lines
    ]


def _chain_table(lines: Iterable[dict[str, Any]]) -> Table:
    header = ("set", "grouping", "order", *METRICS)
    shown = [
        [line["data"], line["grouping"], line["order"], *(_mean_and_deviation(line[name]) for name in METRICS)]
        for line in lines
    ]
    return header, shown


def _mean_and_deviation(summary: dict[str, Any]) -> str:
    return f"{summary['mean']:.4f} ± {summary['deviation']:.4f}"


def _planted_table(planted: dict[str, list[float]]) -> Table:
    rows = [[grouping, *(f"{value:.3f}" for value in values)] for grouping, values in planted.items()]
    return ("agreement with planted groups", *(f"seed {number}" for number in range(len(rows[0]) - 1))), rows


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with ml-1m/ and ciao/")
    parser.add_argument("--sets", nargs="+", default=["ml-1m", "ciao"], help="names of folders in it")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--orders", nargs="+", default=["easy", *OTHER_ORDERS], choices=["easy", *OTHER_ORDERS])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--any-code", action="store_true", help="take cells that other code made, even by a comment")
    parser.add_argument("--markdown", type=Path, help="also write the tables to a file, as Markdown")
    return parser.parse_args()


if __name__ == "__main__":
    main()
