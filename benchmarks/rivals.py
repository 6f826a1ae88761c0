"""How good recommendations are beside the strongest rivals that can't forget, on five sets.

    scripts/bench rivals --data DIR [--sets ml-1m ...] [--rivals item-kNN ...] [--seeds 0 1 2]

DIR holds ml-100k/, ml-1m/, ciao/ and book-crossing/ (of which the 5-core is taken), each with a ratings.csv; the sparse
shop is made up. A tenth is held out, NDCG@10 is over the whole catalogue, and all are judged by one function.

Settings of a rival that has several are chosen on a validation split: a tenth of the training rows of seed 0, so never
on rows that seed 0 tests. All seeds use that choice. What is compared with is never chosen here: the defaults.
Whatever is found is written at once under results/rivals/, so a run that was stopped goes on from there; what was
found on other data is found again, and after a change of code what --again names. With --kept nothing is measured: the
table shows what is there.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from erasable.data import Interactions, RatingScale, k_core, read_interactions, recognise_scale, split_holdout
from erasable.models._als import ALS
from erasable.models._ease import EASE
from erasable.paper import data_digest
from implicit_rival import IMPLICIT
from reporting import RESULTS, documented_parser, markdown_table, print_table, save, verdict, warn_if_busy
from rivals_fitted import Fitted, Split, implicit_als, item_knn, ndcg_at_10, ours, popular, timed
from sparse_shop import sparse_shop

SETS = {
    "ml-100k": "MovieLens 100K",
    "ml-1m": "MovieLens 1M",
    "ciao": "Ciao",
    "book-crossing": "book-crossing, 5-core",
    "shop": "made-up shop",
}
QUALITY, OF_USUAL, OF_THREE = 0.325, 0.97, {"ciao": 1.0, "book-crossing": 1.3}
USUAL = ("popular", "item-kNN", "implicit-defaults")
HOLDOUT, VALIDATION_SEED = 0.1, 100
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Rival:
    """A way to recommend, the settings among which validation chooses, and the sets that it fits into memory on.

    Where there are steps, validation goes from the first settings to better ones while one step finds any, or until
    it has tried the most that a set is given.
    """

    fit: Callable[..., Fitted]
    settings: Sequence[Settings] = ({},)
    steps: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    sets: Sequence[str] = tuple(SETS)
    can_forget: bool = False


def _around(settings: Settings, steps: Mapping[str, Sequence[Any]]) -> Iterator[Settings]:
    """Yield settings of which one is a step further up or down."""
    for name, values in steps.items():
        place = values.index(settings[name])
        for further in (place + 1, place - 1):
            if 0 <= further < len(values):
                yield {**settings, name: values[further]}


DEFAULTS = {"factors": 100, "regularisation": 0.01, "alpha": 1}
ALS_STEPS = {
    "regularisation": (0.01, 0.1, 1, 3, 10, 30, 100, 300),
    "alpha": (1, 2, 5, 10, 20, 40, 80),
    "factors": (16, 32, 64, 128, 256),
}
THREE = [
    {"factors": 128, "regularisation": 0.01, "alpha": 1},
    {"factors": 64, "regularisation": 1, "alpha": 5},
    {"factors": 128, "regularisation": 10, "alpha": 10},
]
KNN_STEPS = {"neighbours": (20, 50, 100, 200, 400), "shrink": (0, 10, 50, 200, 500)}
FIRST = {"factors": 128, "regularisation": 10, "alpha": 10}
RIVALS = {
    "popular": Rival(partial(timed, popular)),
    "item-kNN": Rival(partial(timed, item_knn), [{"neighbours": 100, "shrink": 10}], KNN_STEPS),
    "implicit-defaults": Rival(implicit_als, [DEFAULTS]),
    "implicit-three": Rival(implicit_als, THREE),
    "implicit-best": Rival(implicit_als, [FIRST], ALS_STEPS, {"book-crossing": 6, "shop": 6}),
    "ease-all": Rival(
        partial(timed, partial(ours, EASE), neighbours="all"),
        [{"regularisation": 500}],
        {"regularisation": (20, 50, 200, 500, 1000, 2000, 5000)},
        sets=("ml-100k", "ml-1m", "ciao"),
    ),
    "als": Rival(partial(timed, partial(ours, ALS)), can_forget=True),
    "ease": Rival(partial(timed, partial(ours, EASE)), can_forget=True),
}
NAMES = {
    "popular": "popular",
    "item-kNN": "item-kNN, at its best",
    "implicit-defaults": "`implicit`'s ALS, defaults",
    "implicit-three": "`implicit`'s ALS, best of three settings",
    "implicit-best": "`implicit`'s ALS, at its best",
    "ease-all": "dense EASE, at its best",
    "als": "**ALS**, default",
    "ease": "**EASE**, K = 200, default",
}


NOTES = {
    "mean": "NDCG@10, whole catalogue, holdout 0.1; mean over seeds",
    "settings": "the best on the validation rows, a tenth of the training rows of seed 0, for all seeds",
    "cpu_seconds": "of one fit, mean over seeds",
}


class Bench:
    """One set: finds how good rivals are on it, or what was found earlier."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self.name, self._options = name, options
        self._splits: dict[tuple[int, bool], Split] = {}
        self._made: set[tuple[str, str]] = set()

    @property
    def rivals(self) -> list[str]:
        """Those asked for that fit into memory here."""
        return [name for name in self._options.rivals if self.name in RIVALS[name].sets]

    @property
    def seeds(self) -> list[int]:
        """Those of the test rows."""
        return list(self._options.seeds)

    def tried(self, name: str) -> int:
        """Return how many settings were validated."""
        return sum(key.startswith(f"{name} ") for key in self._kept(f"rivals/{self.name}-validation"))

    def choice(self, name: str) -> Settings:
        """Return the settings of a rival that are best on the validation rows."""
        rival = RIVALS[name]
        if len(rival.settings) > 1:
            return max(rival.settings, key=partial(self.validated, name))
        return self._climbed(name, rival) if rival.steps else rival.settings[0]

    def _climbed(self, name: str, rival: Rival) -> Settings:
        """Return where single steps from the first settings lead, each to something better."""
        here, tried = rival.settings[0], 1
        reached, around = self.validated(name, here), list(_around(here, rival.steps))
        while around and tried < rival.most.get(self.name, tried + 1):
            further, tried = around.pop(0), tried + 1
            if (found := self.validated(name, further)) > reached:
                here, reached, around = further, found, list(_around(further, rival.steps))
        return here

    def validated(self, name: str, settings: Settings) -> float:
        """Return how good a rival is on the validation rows."""
        return float(self._found(name, settings, 0, is_test=False)["ndcg@10"])

    def test(self, name: str, seed: int) -> dict[str, Any]:
        """Return how good a rival is on the test rows, with what validation chose."""
        return self._found(name, self.choice(name), seed, is_test=True)

    @cached_property
    def _rows(self) -> tuple[Interactions, RatingScale]:
        if self.name == "shop":
            return sparse_shop(), RatingScale(1, 1)
        read = read_interactions(self._options.data / self.name / "ratings.csv").interactions
        rows = k_core(read, 5) if self.name == "book-crossing" else read
        return rows, recognise_scale(rows.rating)

    @cached_property
    def data(self) -> str:
        """What names the data."""
        return data_digest(*self._rows)

    def _split(self, seed: int, is_test: bool) -> Split:
        """Return what to learn and what to find; only the latest is kept."""
        if (seed, is_test) not in self._splits:
            rows, scale = self._rows
            learned, held = split_holdout(rows, HOLDOUT, seed)
            if not is_test:
                learned, held = split_holdout(learned, HOLDOUT, VALIDATION_SEED + seed)
            self._splits = {(seed, is_test): Split(learned, held, scale, self._options.threads)}
        return self._splits[seed, is_test]

    def _found(self, name: str, settings: Settings, seed: int, is_test: bool) -> dict[str, Any]:
        part = f"rivals/{self.name}-{seed if is_test else 'validation'}"
        key = f"{name} {json.dumps(settings)}"
        found = self._kept(part)
        if key in found and (name not in self._options.again or (part, key) in self._made):
            return found[key]
        if self._options.kept:
            raise LookupError(f"{part} has no {key}")
        split = self._split(seed, is_test)
        scorer, seconds = RIVALS[name].fit(split, **settings)
        line = {"ndcg@10": ndcg_at_10(scorer, split), "people": len(split.held.users), "cpu_seconds": seconds}
        save(part, {"data": self.data, "found": {**self._kept(part), key: line}})
        self._made.add((part, key))
        print(f"{part} {key}: {line['ndcg@10']:.4f}, {seconds:.1f} CPU s", file=sys.stderr, flush=True)
        return line

    def _kept(self, part: str) -> dict[str, Any]:
        path = RESULTS / f"{part}.json"
        kept = json.loads(path.read_text()) if path.exists() else {}
        return dict(kept["found"]) if kept.get("data") == self.data else {}


def main() -> None:
    options = _options()
    warn_if_busy()
    lines = [line for name in options.sets for line in _lines(Bench(name, options))]
    found = {(line["set"], line["rival"]): line["mean"] for line in lines}
    header, rows = _table(found, options)
    verdicts = [_verdict(*bar) for name in options.sets for bar in _bars(name, found)]
    print_table(header, rows)
    print()
    print_table(("set", "EASE from neighbourhoods", "mean", "bar", ""), verdicts)
    if all(set(whole) <= set(asked) for whole, asked in ((SETS, options.sets), (RIVALS, options.rivals))):
        (RESULTS / "rivals.md").write_text(markdown_table(header, rows) + "\n" + markdown_table(*_chosen(lines)))
        result = {"seeds": options.seeds, "implicit": IMPLICIT, "notes": NOTES, "lines": lines, "bars": verdicts}
        print(f"\nwritten to {save('rivals', result)} and rivals.md")
    sys.exit(any(row[-1] == "MISSED" for row in verdicts))


def _lines(bench: Bench) -> Iterator[dict[str, Any]]:
    """Yield what was found on a set: for each rival the mean over seeds."""
    for name in bench.rivals:
        try:
            cells = [bench.test(name, seed) for seed in bench.seeds]
        except LookupError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        by_seed = {str(seed): cell["ndcg@10"] for seed, cell in zip(bench.seeds, cells, strict=True)}
        facts = {"set": bench.name, "rival": name, "settings": bench.choice(name), "tried": bench.tried(name)}
        facts |= {"can_forget": RIVALS[name].can_forget, "people": [cell["people"] for cell in cells]}
        seconds = statistics.mean(cell["cpu_seconds"] for cell in cells)
        yield {**facts, "mean": statistics.mean(by_seed.values()), "by_seed": by_seed, "cpu_seconds": seconds}


def _verdict(name: str, what: str, value: float, bar: float | None) -> list[str]:
    against = ["", ""] if bar is None else [f"≥ {bar:g}", verdict(value, bar)]
    return [SETS[name], what, f"{value:.4f}", *against]


def _bars(name: str, found: Mapping[tuple[str, str], float]) -> Iterator[tuple[str, str, float, float | None]]:
    """Yield what EASE from neighbourhoods has to reach on a set, as far as it was measured."""
    ours, usual = (name, "ease"), [(name, rival) for rival in USUAL]
    if name == "ml-1m" and ours in found:
        yield name, "NDCG@10", found[ours], QUALITY
    for rival, bars in (("implicit-three", OF_THREE), ("implicit-best", {})):
        if {ours, (name, rival)} <= found.keys():
            yield name, f"over {NAMES[rival]}", found[ours] / found[name, rival], bars.get(name)
    if {ours, *usual} <= found.keys():
        strongest = max(usual, key=found.__getitem__)
        yield name, f"over the best usual one, {strongest[1]}", found[ours] / found[strongest], OF_USUAL


def _table(
    found: Mapping[tuple[str, str], float], options: argparse.Namespace
) -> tuple[tuple[str, ...], list[list[str]]]:
    rows = [
        [NAMES[rival], *(f"{found[name, rival]:.4f}" if (name, rival) in found else "–" for name in options.sets)]
        for rival in options.rivals
    ]
    return ("NDCG@10", *(SETS[name] for name in options.sets)), rows


def _chosen(lines: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return which settings validation chose, and of how many."""
    rows = [
        [SETS[line["set"]], NAMES[line["rival"]], _words(line["settings"]), str(line["tried"])]
        for line in lines
        if line["tried"] > 1
    ]
    return ("set", "rival", "chosen on validation rows", "settings tried"), rows


def _words(settings: Settings) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in settings.items())


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--rivals", nargs="+", default=list(RIVALS), choices=list(RIVALS))
    parser.add_argument("--again", nargs="+", default=[], choices=list(RIVALS), help="those to measure again")
    parser.add_argument("--kept", action="store_true", help="show what is there and measure nothing")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
