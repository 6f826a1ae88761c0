"""How much memory a model may still take, and the refusal of what would need more."""

import os
from pathlib import Path

from erasable.errors import Refused, option

GIB = 2**30
_SYSTEM = Path("/proc/meminfo")
_OWN_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Return the bytes that can still be taken: what the system has left, or what a container's limit leaves."""
    limits = [left for left in (_left_in_system(), _left_in_group()) if left is not None]
    return min(limits) if limits else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def refuse_beyond_memory(items: int, needed: int, *remedy: str) -> None:
    """Refuse what needs more bytes than are available, for so many items; the remedy is to give something else."""
    available = available_memory()
    if needed > available:
        raise Refused(
            f"ease on {items:,} items needs {needed / GIB:,.1f} GiB of memory and {available / GIB:,.1f} GiB are "
            "available: give ",
            *remedy,
            ", drop rare items with ",
            option("min_interactions"),
            ", or free memory",
        )


def _left_in_system() -> int | None:
    kibibytes = _named_numbers(_SYSTEM).get("MemAvailable")
    return None if kibibytes is None else kibibytes * 1024


def _left_in_group() -> int | None:
    """Return what the control group (version 2) leaves; pages of files don't count, since they give way."""
    try:
        path = next(line[3:] for line in _OWN_GROUP.read_text().splitlines() if line.startswith("0::"))
        folder = _GROUPS / path.lstrip("/")
        limit = int((folder / "memory.max").read_text())
        used = int((folder / "memory.current").read_text())
    except (OSError, StopIteration, ValueError):  # no such group, or no limit ("max")
        return None
    files = _named_numbers(folder / "memory.stat").get("file", 0)
    return max(0, limit - max(0, used - files))


def _named_numbers(path: Path) -> dict[str, int]:
    """Read lines like `name 12` or `name: 12 kB`; nothing if there is no such file."""
    try:
        words = [line.replace(":", " ").split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {line[0]: int(line[1]) for line in words if len(line) > 1 and line[1].isdigit()}
