"""Digests of what a way has trained, and how two makings of one way are compared."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.reading import Reading, Trained
from golden.ways import Way

Made = dict[str, Any]
"""A way as a file of digests holds it."""


def make(way: Way, adapter: ModuleType, folder: Path) -> Made:
    """Take all steps of a way in an empty folder, and return the digests after each."""
    workspace, steps, full = folder / "workspace", {}, []
    for step in way.steps:
        adapter.call(way.command(step, workspace, folder))
        reading = adapter.read(workspace)
        steps[step] = digests_of(reading)
        full.append(reading.every_group_has_every_item)
    return {
        "description": described(way),
        "catalogue": way.catalogue,
        "every group has every item": all(full),
        "steps": steps,
    }


def described(way: Way) -> str:
    """Return the digest of all that decides what a way is, so that a way that was changed is noticed."""
    return sha256(repr(way.description()).encode()).hexdigest()


def differences(golden: Made, found: Made) -> list[str]:
    """Say how a way that was made differs from what it must be; empty if it does not."""
    if golden["description"] != found["description"]:
        return ["the way itself was changed since its digests were made: leave it as it was, and add another one"]
    return [
        f"{step}: {line}"
        for step in dict.fromkeys((*golden["steps"], *found["steps"]))
        for line in _differences(golden["steps"].get(step), found["steps"].get(step))
    ]


def _differences(golden: Made | None, found: Made | None) -> Iterator[str]:
    if golden is None or found is None:
        yield "is new" if golden is None else "is missing"
        return
    for kind in ("stages", "solved", "rows"):
        # A version that solves rows when they are needed has no files of them.
        if golden[kind] is not None and found[kind] is not None:
            yield from _of_kind(kind, _named(golden[kind]), _named(found[kind]))


def _of_kind(kind: str, golden: Mapping[str, list[Any]], found: Mapping[str, list[Any]]) -> Iterator[str]:
    for name in dict.fromkeys((*golden, *found)):
        if name not in found:
            yield f"{kind}, {name}: is missing"
        elif name not in golden:
            yield f"{kind}, {name}: is new"
        elif golden[name] != found[name]:
            yield f"{kind}, {name}: has other {_what_differs(golden[name], found[name])}"


def _what_differs(golden: list[Any], found: list[Any]) -> str:
    what = ("type", "shape", "bytes")
    return " and ".join(word for word, one, other in zip(what, golden, found, strict=True) if one != other)


def _named(records: Sequence[list[Any]]) -> dict[str, list[Any]]:
    """Return the type, shape and digest of each array by where it stands."""
    return {" ".join(map(str, record[:-3])): record[-3:] for record in records}


def digests_of(reading: Reading) -> Made:
    """Return a record of each array, in an order that depends on no version."""
    return {
        "stages": _in_order(reading.stages),
        "solved": None if reading.solved is None else _in_order(reading.solved),
        "rows": [_of_rows(name, rows) for name, rows in sorted(reading.rows.items())],
    }


def _in_order(arrays: Sequence[Trained]) -> list[list[Any]]:
    return [_of_trained(made) for made in sorted(arrays, key=lambda made: (made.position, made.kind, made.name))]


def _of_trained(made: Trained) -> list[Any]:
    array = np.ascontiguousarray(made.array)
    digest = sha256(array.tobytes()).hexdigest()
    return [made.position, made.kind, made.name, array.dtype.str, list(array.shape), digest]


def _of_rows(name: str, rows: Mapping[str, NDArray[Any]]) -> list[Any]:
    """Digest everyone's id and row in the order of ids by their UTF-8 bytes, wherever the rows lie."""
    digest = sha256()
    for user in sorted(rows, key=str.encode):
        row = np.ascontiguousarray(rows[user])
        for part in (user.encode(), row.tobytes()):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
    kinds = sorted({row.dtype.str for row in rows.values()})
    shapes = sorted({row.shape for row in rows.values()})
    return [name, " ".join(kinds), [len(rows), *map(list, shapes)], digest.hexdigest()]
