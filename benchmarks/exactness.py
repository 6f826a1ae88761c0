"""Exactness over many random cases: forget, or learn without; the same bytes. And the same numbers as in NumPy.

    scripts/bench exactness [--cases 1500] [--reference 50] [--first 0] [--processes 2]
    scripts/bench exactness --only N          one case, told at length, its folder kept

A case (data, settings, threads, sequence of requests) is drawn from its number alone, see tests/kit/random_cases.py,
and goes through the acceptance test by the command's own entry point. The first 1,000 are chains of stages, those from
1,000 on are of the other ways (solved rows, anchors, als, ease), half of which learn a part of the data later.

The first cases, three for each one wanted, are also trained by the NumPy trainer of the tests. It must agree where it
is steady, which means that it gives nearly the same when it is shaken by 32-bit roundings, and it must be steady in as
many cases as are wanted.

Finished cases are kept under --work, so a run that was stopped goes on from there; those of other code are run again.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from hashlib import blake2b
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import erasable
from reporting import documented_parser, print_table, save

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.append(str(TESTS))  # the random cases and the NumPy trainer belong to the tests' kit

from kit.case_runs import AGREEMENT, SHAKING, STEADY, Outcome, run_case  # noqa: E402
from kit.random_cases import CHAINS, GROUPINGS, Case, case_of  # noqa: E402

LOOKED_AT_FOR_EACH = 3
CELL = ("strategy", "policy", "grouping", "model", "way")
MEASURE = "largest absolute difference between any two numbers of all checkpoints, over the whole chain"
Task = tuple[int, bool]
Record = dict[str, Any]


def main() -> None:
    options = _options()
    if options.only is not None:
        sys.exit(_tell_one(options.only, options.work))
    began = time.perf_counter()
    records = _records(options)
    result = {**_summary(records, options.reference), "first": options.first, "code": _code_digest()}
    _report(records, result)
    result["minutes_of_this_run"] = round((time.perf_counter() - began) / 60, 1)
    print(f"written to {save('exactness', result)}")
    sys.exit(not result["passed_all"])


def _records(options: argparse.Namespace) -> list[Record]:
    """Run what is not there yet, and return a record of each case, by number."""
    last = min(options.first + LOOKED_AT_FOR_EACH * options.reference, CHAINS)
    tasks = [(number, number < last) for number in range(options.first, options.first + options.cases)]
    path = options.work / f"exactness-{_code_digest()}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {(record["number"], record["looked_at"]): record for record in _kept(path)}
    missing = [task for task in tasks if task not in done]
    print(f"{len(tasks) - len(missing)} of {len(tasks)} cases are done already, see {path}", flush=True)
    with path.open("a", encoding="utf-8") as stream:
        for record in _told(_run_all(missing, options.processes), len(missing)):
            done[record["number"], record["looked_at"]] = record
            print(json.dumps(record), file=stream, flush=True)
    return [done[task] for task in tasks]


def _kept(path: Path) -> Iterator[Record]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    yield from (
        json.loads(line) for line in lines if line.endswith("\n")
    )  # a run that was killed may leave half a line


def _run_all(tasks: Sequence[Task], processes: int) -> Iterator[Record]:
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _begin_work)
    try:
        running = [pool.submit(_run, task) for task in tasks]
        yield from (future.result() for future in as_completed(running))
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on from here")
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_work() -> None:
    """Leave an interrupt to the parent, and end with it however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent_process().join()
    os._exit(1)


def _run(task: Task) -> Record:
    number, looked_at = task
    case = case_of(number)
    with tempfile.TemporaryDirectory() as folder:
        return _record(case, run_case(case, Path(folder), reference=looked_at), looked_at)


def _record(case: Case, outcome: Outcome, looked_at: bool) -> Record:
    """Return what the summary needs, without the ids."""
    kinds = Counter(asked.kind for call in outcome.calls for asked in call)
    requests = sum(len(asked.requests) for call in outcome.calls for asked in call)
    facts = {name: value for name, value in asdict(outcome).items() if name != "calls"}
    choices = {name: getattr(case.choices, name) for name in CELL}
    asked = {"calls": len(outcome.calls), "requests": requests, "kinds": dict(kinds)}
    return {**facts, **choices, **asked, "looked_at": looked_at, "steady": outcome.steady}


def _told(records: Iterable[Record], total: int) -> Iterator[Record]:
    """Hand records on and say how far it is now and then, and at once what failed."""
    began, failed = time.perf_counter(), 0
    for count, record in enumerate(records, 1):
        if record["failure"]:
            failed += 1
            print(f"case {record['number']} failed: {record['failure']}", flush=True)
        if count % 25 == 0 or count == total:
            left = (time.perf_counter() - began) / count * (total - count)
            print(f"{count} of {total} run, {failed} failed, {left / 60:.0f} min left", flush=True)
        yield record


def _summary(records: Sequence[Record], wanted: int) -> Record:
    failed = [record["number"] for record in records if record["failure"]]
    reference = _reference_summary(records, wanted)
    return {
        "cases": len(records),
        "passed": len(records) - len(failed),
        "failed": failed,
        "passed_all": not failed and reference["steady"] >= wanted,
        **{f"by_{name}": dict(Counter(record[name] for record in records)) for name in CELL},
        "requests_by_kind": dict(sum((Counter(record["kinds"]) for record in records), Counter())),
        **{name: sum(record[name] for record in records) for name in ("calls", "requests", "checkpoints")},
        "checkpoints_made_anew": sum(record["new_checkpoints"] for record in records),
        "reference": reference,
        "cells": _cells(records),
        "case_seconds": round(sum(record["seconds"] for record in records)),
    }


def _cells(records: Sequence[Record]) -> list[Record]:
    """Count cases by strategy, policy, grouping, model and way."""
    cases = Counter(_cell(record) for record in records)
    passed = Counter(_cell(record) for record in records if not record["failure"])
    return [
        {**dict(zip(CELL, cell, strict=True)), "cases": cases[cell], "passed": passed[cell]} for cell in sorted(cases)
    ]


def _reference_summary(records: Sequence[Record], wanted: int) -> Record:
    looked_at = [record for record in records if record["difference"] is not None]
    steady = [record for record in looked_at if record["steady"]]
    agreeing = [record for record in looked_at if record["difference"] <= AGREEMENT]
    return {
        "measure": MEASURE,
        "bar": AGREEMENT,
        "wanted": wanted,
        "looked_at": len(looked_at),
        "steady": len(steady),
        "steady_means": f"moves by at most {STEADY:g} when its numbers are shaken by up to {SHAKING:.1e} at each step",
        "largest_difference": max((record["difference"] for record in steady), default=None),
        "by_model": dict(Counter(record["model"] for record in steady)),
        "by_strategy": dict(Counter(record["strategy"] for record in steady)),
        "agreeing_steady_or_not": len(agreeing),
        "largest_difference_of_unsteady": max(
            (record["difference"] for record in looked_at if not record["steady"]), default=None
        ),
    }


def _cell(record: Record) -> tuple[str, ...]:
    return tuple(record[name] for name in CELL)


def _report(records: Sequence[Record], result: Record) -> None:
    groupings = list(dict.fromkeys(GROUPINGS))
    kinds = sorted({_cell(record)[:2] for record in records})
    rows = [[" ".join(kind), *(_passed(records, (*kind, name)) for name in groupings)] for kind in kinds]
    print_table(("passed of cases", *groupings), rows)
    print(", ".join(f"{way} {count}" for way, count in sorted(result["by_way"].items())))
    print(", ".join(f"{kind} {count}" for kind, count in sorted(result["requests_by_kind"].items())))
    _report_reference(result["reference"])
    print(f"{result['passed']} of {result['cases']} cases passed: {'reached' if result['passed_all'] else 'MISSED'}")
    for number in result["failed"]:
        print(f"case {number} failed: scripts/bench exactness --only {number}")


def _report_reference(found: Record) -> None:
    print(
        f"reference: steady in {found['steady']} of the {found['looked_at']} cases looked at (wanted {found['wanted']})"
    )
    if found["steady"]:
        print(f"there, {MEASURE}: {found['largest_difference']:.1e} (bar {AGREEMENT:g})")


def _passed(records: Sequence[Record], cell: tuple[str, ...]) -> str:
    failures = [record["failure"] for record in records if _cell(record)[:3] == cell]
    return f"{failures.count('')}/{len(failures)}" if failures else "–"


def _tell_one(number: int, work: Path) -> bool:
    """Run one case and say all about it; return whether it failed."""
    case, folder = case_of(number), work / f"case-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(case, flush=True)
    outcome = run_case(case, folder, reference=number < CHAINS)
    for call in outcome.calls:
        print("forget:", "; ".join(f"{asked.kind} {asked.requests}" for asked in call))
    print(f"difference to the reference {outcome.difference}, of the reference shaken {outcome.shaken}")
    print(f"kept in {folder}\n{outcome.failure or 'passed'}")
    return bool(outcome.failure)


def _code_digest() -> str:
    """Name the code that decides how a case comes out: the package and the tests' kit."""
    files = [*Path(erasable.__file__).parent.rglob("*.py"), *(TESTS / "kit").glob("*.py")]
    contents = (f"{path.name}\n{path.read_text(encoding='utf-8')}" for path in sorted(files))
    return blake2b("\n".join(contents).encode(), digest_size=8).hexdigest()


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--cases", type=int, default=1500)
    parser.add_argument("--reference", type=int, default=50, help="in how many cases the NumPy trainer must agree")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", type=int, metavar="N", help="run this case alone")
    usual = Path(tempfile.gettempdir()) / "erasable-exactness"
    parser.add_argument("--work", type=Path, default=usual, help="where finished cases are kept")
    return parser.parse_args()


if __name__ == "__main__":
    main()
