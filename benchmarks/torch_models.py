"""The torch models on MovieLens 1M: quality, what learning costs, and what forgetting one person costs.

    scripts/bench torch_models --data DIR [--cells sasrec-100 ...] [--report]        DIR/ml-1m/ratings.csv

sasrec is learned from all but each person's latest interaction (ties by item id), with 10, 30, 50 and 100 % of the
people as anchors, and judged by that one among the whole catalogue. two-tower and NMF are learned from 90 % of the
interactions and judged by the others. Seconds are those of the processor, of the command and its torch process. Each
finished cell is kept under results/torch_models/, so a run that was stopped goes on from there. Workspaces lie in a
temporary folder.
"""

import csv
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

from erasable.data import Ids
from erasable.grouping.registry import anchors_among
from reporting import documented_parser, print_table, save, warn_if_busy

_SET_CHILD_SUBREAPER = 36  # Linux
RESULTS = Path(__file__).parent / "results" / "torch_models"
SHARES = {"sasrec-10": 0.1, "sasrec-30": 0.3, "sasrec-50": 0.5, "sasrec-100": 1.0}
HELD_OUT = {"two-tower": "two-tower", "nmf": "nmf"}
BARS = {"sasrec NDCG@10": 0.15, "sasrec CPU seconds": 2400}


def main() -> None:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cells", nargs="+", default=[*SHARES, *HELD_OUT], choices=[*SHARES, *HELD_OUT])
    parser.add_argument("--report", action="store_true", help="only print what was measured")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)  # processes that a command leaves are ours to wait for, and count
    warn_if_busy()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for cell in options.cells:
        kept = RESULTS / f"{cell}.json"
        if not kept.exists() and not options.report:
            with tempfile.TemporaryDirectory() as folder:
                found = _measured(cell, options.data / "ml-1m" / "ratings.csv", Path(folder))
            kept.write_text(json.dumps(found, indent=1) + "\n")
    cells = {one.stem: json.loads(one.read_text()) for one in sorted(RESULTS.glob("*.json"))}
    names = list(dict.fromkeys(name for found in cells.values() for name in found))
    print_table(("", *cells), [[name, *(_shown(found.get(name)) for found in cells.values())] for name in names])
    print(f"\nwritten to {save('torch_models', {'cells': cells, 'bars': BARS})}")
    sys.exit(bool(_missed(cells)))


def _missed(cells: dict[str, Any]) -> list[str]:
    """Return the bars that were not met, of what was measured."""
    whole, missed = cells.get("sasrec-100"), list[str]()
    if whole and whole["ndcg@10"] < BARS["sasrec NDCG@10"]:
        missed.append("sasrec NDCG@10")
    if whole and whole["learning"] > BARS["sasrec CPU seconds"]:
        missed.append("sasrec CPU seconds")
    if {"two-tower", "nmf"} <= cells.keys() and cells["two-tower"]["ndcg@10"] < cells["nmf"]["ndcg@10"]:
        missed.append("two-tower NDCG@10")
    print(f"MISSED: {', '.join(missed)}" if missed else "all bars met, of those measured")
    return missed


def _measured(cell: str, ratings: Path, folder: Path) -> dict[str, Any]:
    shop = folder / "shop"
    if cell in HELD_OUT:
        _, learning = _run("learn", ratings, "--into", shop, "--model", HELD_OUT[cell], "--holdout", "0.1")
        quality, _ = _run("evaluate", shop, "--all")
        return {**_quality(quality), "learning": learning}
    people = _without_latest(ratings, folder)
    learned = "learn", folder / "train.csv", "--into", shop, "--model", "sasrec", "--anchors", SHARES[cell]
    _, learning = _run(*learned)
    quality, evaluating = _run("evaluate", shop, "--test", folder / "latest.csv", "--all")
    is_anchor = anchors_among(Ids.of(people), SHARES[cell], 0)
    found = {**_quality(quality), "anchors": int(is_anchor.sum()), "learning": learning, "evaluating": evaluating}
    for kind, anchor in (("another", False), ("an anchor", True)):
        some = [user for user, is_one in zip(people, is_anchor, strict=True) if is_one == anchor]
        if some:
            plan, _ = _run("plan", shop, "--user", some[0])
            found[f"cost ratio of {kind}"] = plan["cost_ratio"]
            if not anchor or SHARES[cell] == min(SHARES.values()):  # else it costs what learning does
                done, seconds = _run("forget", shop, "--user", some[0], "--receipts", folder)
                found |= {f"forgetting {kind}": seconds, f"stages for {kind}": done["stages_rerun"]}
    return found


def _without_latest(ratings: Path, folder: Path) -> list[str]:
    """Write each person's latest interaction into one file and all others into another; return the people."""
    rows = defaultdict[str, list[dict[str, str]]](list)
    with ratings.open(newline="") as file:
        for row in csv.DictReader(file):
            rows[row["user_id"]].append(row)
    parts = {name: (folder / name).open("w", newline="") for name in ("train.csv", "latest.csv")}
    writers = {
        name: csv.DictWriter(file, ["user_id", "item_id", "rating", "timestamp"]) for name, file in parts.items()
    }
    for writer in writers.values():
        writer.writeheader()
    for own in rows.values():
        *earlier, last = sorted(own, key=lambda row: (int(row["timestamp"]), row["item_id"]))
        writers["train.csv"].writerows(earlier)
        writers["latest.csv"].writerow(last)
    for file in parts.values():
        file.close()
    return sorted(rows)


def _quality(found: dict[str, Any]) -> dict[str, float]:
    return {name: found[name] for name in ("users", "ndcg@10", "hr@10")}


def _run(*arguments: object) -> tuple[dict[str, Any], float]:
    """Run a command; return its answer, and the seconds of the processor that it and its processes took."""
    before = os.times()
    command = [sys.executable, "-m", "erasable", *map(str, arguments), "--json"]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    with suppress(ChildProcessError):
        while True:
            os.wait()  # its torch processes, which end after it
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return json.loads(answer.stdout), round(seconds, 2)


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
