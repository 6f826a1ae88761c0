"""What `erasable compare` finds with its defaults on the public sets, and whether --quick keeps to two minutes.

    scripts/bench compare --data DIR [--sets ciao ...] [--again]

DIR holds ml-100k/, ml-1m/, ciao/ and book-crossing/ (of which the 5-core is taken), each with a ratings.csv. A tenth of
the interactions is held out. What is found of a model on a set is kept, so a run that was stopped goes on from there;
--again measures anew. Seconds are those of the clock: each row says how busy the machine was.
"""

import argparse
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

from erasable import compare
from erasable.operations.compare import USUAL_MODELS
from erasable.wording import duration, percentage
from reporting import RESULTS, documented_parser, markdown_table, print_table, save

SETS: dict[str, tuple[str, dict[str, Any]]] = {
    "ml-100k": ("MovieLens 100k", {}),
    "ciao": ("Ciao", {}),
    "book-crossing": ("book-crossing, 5-core", {"min_interactions": 5}),
    "ml-1m": ("MovieLens 1M", {}),
}
QUICK = "ml-1m"
BAR_SECONDS = 120
HEADER = ("model", "NDCG@10", "HR@10", "recall@10", "learn", "forget one: cost", "time", "memory", "load")


def main() -> None:
    options = _options()
    kept = RESULTS / "compare.json"
    whole = json.loads(kept.read_text()) if kept.exists() else {}
    result: dict[str, Any] = {"found": whole.get("found", {}), "quick": whole.get("quick")}
    if options.again or result["quick"] is None:
        result["quick"] = _quick(options)
        save("compare", result)
    for name in options.sets:
        own = result["found"].setdefault(name, {})
        for model in USUAL_MODELS:
            if options.again or model not in own:
                own[model] = _measured(options, name, model)
                save("compare", result)
    _tell(result)


def _measured(options: argparse.Namespace, name: str, model: str) -> dict[str, Any]:
    load = round(os.getloadavg()[0], 1)
    found = compare(_source(options, name), [model], threads=options.threads, progress=False, **SETS[name][1])
    return {**found.table.to_pylist()[0], "facts": dict(found.facts), "load": load}


def _quick(options: argparse.Namespace) -> dict[str, Any]:
    """Measure seconds of the clock and of the processors of all models with --quick."""
    load, began, used = round(os.getloadavg()[0], 1), time.perf_counter(), _cpu_seconds()
    compare(_source(options, QUICK), quick=True, threads=options.threads, progress=False)
    return {"seconds": time.perf_counter() - began, "cpu_seconds": _cpu_seconds() - used, "load": load}


def _cpu_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _source(options: argparse.Namespace, name: str) -> Path:
    folder: Path = options.data / name
    return folder / "ratings.csv"


def _tell(result: dict[str, Any]) -> None:
    parts = list[str]()
    for name, (title, _) in SETS.items():
        rows = [_cells(one) for one in result["found"].get(name, {}).values()]
        if rows:
            facts = next(iter(result["found"][name].values()))["facts"]
            sizes = ", ".join(f"{facts[what]:,} {what}" for what in ("users", "items", "interactions"))
            print_table((f"{title}: {sizes}",), [])
            print_table(HEADER, rows)
            parts.append(f"**{title}**: {sizes}.\n\n{markdown_table(HEADER, rows)}")
    quick = result["quick"]
    line = (
        f"All five models with `--quick` on MovieLens 1M took {quick['seconds']:.0f} s of the clock and "
        f"{quick['cpu_seconds']:.0f} s of the processors, with a load of {quick['load']} on the machine at the start "
        f"(bar: {BAR_SECONDS} s)."
    )
    print(line)
    (RESULTS / "compare.md").write_text("\n".join([*parts, line]) + "\n", encoding="utf-8")


def _cells(one: dict[str, Any]) -> list[str]:
    quality = [f"{one[name]:.4f}" for name in ("ndcg@10", "hr@10", "recall@10")]
    learn, forget = duration(one["learn_seconds"]), duration(one["forget_seconds"])
    memory = f"{round(one['memory_bytes'] / 1e6):,} MB"
    return [one["model"], *quality, learn, percentage(one["forget_cost"]), forget, memory, str(one["load"])]


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="measure again what is there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
