"""Compiled code that repeats: the decorator of every kernel, and numbered draws inside kernels.

Code is compiled by numba on first use and kept for the next process. numba looks only at the file of the function
itself, so a kernel would go on using an old version of a function that it calls from another file; here the kept code
is valid only while every file with compiled code is unchanged, and that of another package while its own files and what
it imports of compiled functions are unchanged as well. There is no fast-math: a compiler that may reorder sums
gives different bytes for the same source, depending on what it inlines (measured: fresh code against kept code).
"""

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

_PACKAGE = Path(__file__).parent.parent


def _source_stamp() -> str:
    files = sorted(_PACKAGE.rglob("*.py"))
    sources = [path.read_bytes() for path in files if path == Path(__file__) or b"@compiled" in path.read_bytes()]
    return blake2b(b"".join(sources), digest_size=16).hexdigest()


SOURCE_STAMP = _source_stamp()
"""What the compiled code of this package is, to the byte."""


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:  # noqa: ANN401 - numba's own
    """Compile a function with numba, with IEEE arithmetic as written, and keep the code between processes."""
    if function is None:
        return lambda inner: compiled(inner, **options)
    try:
        dispatcher = njit(cache=True, error_model="numpy", **options)(function)
        kept = dispatcher._cache._cache_file
        kept._source_stamp = _stamp_of(function, kept._source_stamp)
    except (RuntimeError, AttributeError):  # no folder to keep code in, or compiling is switched off: work all the same
        return njit(error_model="numpy", **options)(function)
    return dispatcher


def _stamp_of(function: Callable[..., Any], own: object) -> str:
    """Return what compiled code of a function rests on; `own` is what numba itself looks at."""
    file = Path(function.__code__.co_filename)
    if file.is_relative_to(_PACKAGE):
        return SOURCE_STAMP
    sources = [path.read_bytes() for path in _files_with(file)]
    parts = [SOURCE_STAMP, str(own), *_imported_stamps(function), blake2b(b"".join(sources)).hexdigest()]
    return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _files_with(file: Path) -> list[Path]:
    """Return the source files of the top package that a file stands in, or the file alone; none if it is no file."""
    if not file.is_file():
        return []
    top = next(folder for folder in file.parents if not (folder / "__init__.py").exists())
    return [file] if top == file.parent else sorted((top / file.relative_to(top).parts[0]).rglob("*.py"))


def _imported_stamps(function: Callable[..., Any]) -> list[str]:
    """Return the stamps of the compiled functions that a function's file has at hand when it is defined."""
    at_hand = (getattr(one, "_cache", None) for one in function.__globals__.values() if hasattr(one, "py_func"))
    files = (getattr(cache, "_cache_file", None) for cache in at_hand)
    return sorted({str(file._source_stamp) for file in files if file is not None})


@compiled(inline="always")
def draw(key: np.uint64, counter: np.uint64) -> np.uint64:
    """Return draw number `counter` under one key; the compiled twin of `seeding.mix`."""
    bits = key + (counter + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled(inline="always")
def below(bits: np.uint64, bound: int) -> np.int64:
    """Turn a draw into an integer in [0, bound), for bounds below 2**32."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))
