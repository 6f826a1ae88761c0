"""Searching data and checkpoints remotely, file by file: what is clean there need not be read here.

A worker knows less of what explains a hit than a scan of the whole folder, so it never finds less. A file in which it
finds something is searched again here, with everything else.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from erasable.models.base import Effort
from erasable.operations._vocabulary import vocabulary_of
from erasable.operations.remote import CarryOut, Facts
from erasable.operations.storage import Session
from erasable.operations.work import Work, on_cluster
from erasable.scan import Rows, Target, Vocabulary, scan_contents
from erasable.workspace.files import CHECKPOINTS, DATA
from erasable.workspace.folder import read_whole
from erasable.workspace.scratch import Scratch
from erasable.workspace.workspace import Workspace

_BELOW = (f"{DATA}/", f"{CHECKPOINTS}/")


def remotely_clean(
    session: Session, targets: Sequence[Target], declared: tuple[str, ...], work: Work
) -> frozenset[str]:
    """Return the files of data and checkpoints that hold nothing of some people; none without a cluster."""
    if work.cluster is None or session.path is None:
        return frozenset()
    names = [name for name in session.current_files if name.startswith(_BELOW)]
    with work.reporter.track("scanning", len(names)) as advance, on_cluster(work.cluster, session) as executor:
        remote = RemoteScanning(session.stamp.version, targets, declared)
        found = executor.run(remote, names, Effort(work.threads, advance))
        return frozenset(name for name, clean in found if clean)


class RemoteScanning:
    """Searching one file; whom for is written down once."""

    @property
    def carry_out(self) -> CarryOut:
        """Searches a file."""
        return search_file

    def __init__(self, version: int, targets: Sequence[Target], declared: tuple[str, ...]) -> None:
        self._version = version
        self._sought = {"targets": [_written(target) for target in targets], "declared": list(declared)}
        self._file: str | None = None

    def order(self, task: str, scratch: Scratch) -> Facts:
        """Write down the file, and whom to search for."""
        self._file = self._file or scratch.put_facts("sought.json", self._sought)
        return {"file": task, "version": self._version, "sought": self._file}

    def outcome(self, task: str, facts: Facts, scratch: Scratch) -> bool:
        """Return whether nothing was found."""
        return bool(facts["clean"])


def search_file(scratch: Scratch, facts: Facts, effort: Effort) -> Facts:
    """Search one file, in a worker."""
    sought = scratch.facts(facts["sought"])
    targets, name = [_target(one) for one in sought["targets"]], facts["file"]
    contents = {name: read_whole(scratch.root / name)}
    vocabulary = _vocabulary_of_version(scratch.root, facts["version"])
    residues = scan_contents(contents, targets, vocabulary, declared=tuple(sought["declared"]))
    effort.advance(1)
    return {"clean": not residues}


@lru_cache(maxsize=1)
def _vocabulary_of_version(root: Path, version: int) -> Vocabulary:
    return vocabulary_of(Workspace.of_a_task(root, version).state().dataset)


def _written(target: Target) -> dict[str, Any]:
    rows = target.rows
    times = None if rows is None or rows.times is None else np.asarray(rows.times, np.float64).tolist()
    return {
        "user": target.user,
        "items": target.items,
        "rows": None if rows is None else [list(rows.items), np.asarray(rows.ratings, np.float64).tolist()],
        "times": None if times is None else [None if math.isnan(time) else time for time in times],
        "personal": [[row.dtype.str, np.ascontiguousarray(row).tobytes().hex()] for row in target.personal],
        "texts": target.texts,
        "own_items": target.own_items,
    }


def _target(facts: Mapping[str, Any]) -> Target:
    times = None if facts["times"] is None else [math.nan if time is None else time for time in facts["times"]]
    return Target(
        facts["user"],
        None if facts["items"] is None else tuple(facts["items"]),
        None if facts["rows"] is None else Rows(facts["rows"][0], facts["rows"][1], times),
        tuple(np.frombuffer(bytes.fromhex(content), kind) for kind, content in facts["personal"]),
        tuple(facts["texts"]),
        tuple(facts["own_items"]),
    )
