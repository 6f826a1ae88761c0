"""What every benchmark does the same way: options, the machine, a table on screen, a file under results/."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from erasable.chain import numeric_environment

RESULTS = Path(__file__).parent / "results"
# Taken before the benchmark itself adds to it: timings made beside other work say little.
LOAD_AT_START = os.getloadavg()[0]
_BUSY = 0.5


def documented_parser(text: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help begins with a script's own text, line by line as written."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def machine() -> dict[str, Any]:
    """Name the machine: processor, cores, memory, versions and the date."""
    return {
        "cpu": _first_value("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load_at_start": round(LOAD_AT_START, 2),
        "memory": _first_value("/proc/meminfo", "MemTotal"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
        "environment": numeric_environment(),
    }


def warn_if_busy() -> None:
    """Say on standard error that timings will not mean much while other programs run."""
    if LOAD_AT_START > _BUSY:
        print(f"the machine is busy (load {LOAD_AT_START:.1f}): time it when it is quiet", file=sys.stderr)


def save(name: str, result: dict[str, Any]) -> Path:
    """Write a result with the machine under results/; what was there stays whole until the new one is."""
    path = RESULTS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({**result, "machine": machine()}, indent=2, ensure_ascii=False) + "\n")
    partial.replace(path)
    return path


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a small table, the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, *rows):
        others = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        print("  ".join([row[0].ljust(widths[0]), *others]).rstrip(), flush=True)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the same table as Markdown."""
    rule = ["---", *("---:" for _ in header[1:])]
    return "".join("| " + " | ".join(row) + " |\n" for row in (header, rule, *rows))


def verdict(value: float, bar: float) -> str:
    """Say whether a figure reaches its bar."""
    return "reached" if value >= bar else "MISSED"


def _first_value(path: str, name: str) -> str:
    if not Path(path).exists():
        return ""
    lines = (line for line in Path(path).read_text().splitlines() if line.startswith(name))
    return next(lines, ":").partition(":")[2].strip()
