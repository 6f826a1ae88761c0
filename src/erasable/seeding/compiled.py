"""Reproducible compiled code: the decorator of every kernel, and numbered draws inside kernels.

numba compiles code on first use and caches it for the next process. numba checks only the file of the function itself,
so a kernel would keep an old version of a function that it calls from another file. Here the cache is valid only while
every file with compiled code is unchanged; for a kernel of another package, its own files and the compiled functions
that it imports must be unchanged as well. There is no fast-math: a compiler that may reorder sums gives different
bytes for the same source, depending on what it inlines (measured: fresh code against cached code).
"""

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from erasable.seeding.inside_numba import cache_follows, stamps_of

_PACKAGE = Path(__file__).parent.parent


def _source_stamp() -> str:
    here, files = Path(__file__).parent, sorted(_PACKAGE.rglob("*.py"))
    sources = [path.read_bytes() for path in files if path.parent == here or b"@compiled" in path.read_bytes()]
    return blake2b(b"".join(sources), digest_size=16).hexdigest()


SOURCE_STAMP = _source_stamp()
"""A digest of the sources of this package's compiled code."""


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:  # noqa: ANN401 - numba's own
    """Compile a function with numba, with IEEE arithmetic as written, and cache the code between processes."""
    if function is None:
        return lambda inner: compiled(inner, **options)
    try:
        dispatcher = njit(cache=True, error_model="numpy", **options)(function)
        cache_follows(dispatcher, lambda own: _stamp_of(function, own))
    except (RuntimeError, AttributeError):  # no folder for the cache, or compiling is switched off: do without
        return njit(error_model="numpy", **options)(function)
    return dispatcher


def _stamp_of(function: Callable[..., Any], own: str) -> str:
    """Return the stamp for which a function's cached code is valid; `own` is numba's own stamp."""
    file = Path(function.__code__.co_filename)
    if file.is_relative_to(_PACKAGE):
        return SOURCE_STAMP
    sources = [path.read_bytes() for path in _files_with(file)]
    parts = [SOURCE_STAMP, own, *stamps_of(function.__globals__.values()), blake2b(b"".join(sources)).hexdigest()]
    return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _files_with(file: Path) -> list[Path]:
    """Return the source files of a file's top package, or the file alone; none if it is no file."""
    if not file.is_file():
        return []
    top = next(folder for folder in file.parents if not (folder / "__init__.py").exists())
    return [file] if top == file.parent else sorted((top / file.relative_to(top).parts[0]).rglob("*.py"))


@compiled(inline="always")
def draw(key: np.uint64, counter: np.uint64) -> np.uint64:
    """Return draw number `counter` under one key, like `seeding.mix`."""
    bits = key + (counter + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled(inline="always")
def below(bits: np.uint64, bound: int) -> np.int64:
    """Turn a draw into an integer in [0, bound), for bounds below 2**32."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))
