"""Reproducible compiled code: the decorator of every kernel, numbered draws inside kernels, and atomic integers.

numba compiles code on first use and caches it for the next process. numba checks only the file of the function itself,
so a kernel would keep an old version of a function that it calls from another file. Here the cache is valid only while
every file with compiled code is unchanged; for a kernel of another package, its own files and the compiled functions
that it imports must be unchanged as well. There is no fast-math: a compiler that may reorder sums gives different
bytes for the same source, depending on what it inlines (measured: fresh code against cached code).

Private parts of numba are used here and nowhere else, and pyproject.toml has an upper bound on its version. Two things
can't be done otherwise: to decide when cached code is valid, and to read and change an integer atomically on the
processor (numba has atomics for GPUs only). With a new release of numba, run `tests/seeding` and
`tests/models/test_machine.py`, then raise the bound.
"""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic


def cache_follows(dispatcher: Any, stamp: Callable[[str], str]) -> None:  # noqa: ANN401 - numba's own type
    """Make cached code valid for a stamp, computed from numba's own; AttributeError if there is no cache."""
    kept = dispatcher._cache._cache_file
    kept._source_stamp = stamp(str(kept._source_stamp))
    # numba compares versions before it unpickles an index, and stamps only afterwards: an index of other sources may
    # name classes that are gone, and reading it would fail.
    kept._version = f"{kept._version} {kept._source_stamp}"


def stamps_of(values: Iterable[object]) -> list[str]:
    """Return the stamps of compiled functions, each once; other values are skipped."""
    caches = (getattr(one, "_cache", None) for one in values if hasattr(one, "py_func"))
    files = (getattr(cache, "_cache_file", None) for cache in caches)
    return sorted({str(file._source_stamp) for file in files if file is not None})


def _element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401 - numba's own types
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    item_pointer: Any = cgutils.get_item_pointer
    return item_pointer(context, builder, signature.args[0], array, [arguments[1]])


@intrinsic
def _atomic_load(typing: Any, array: Any, index: Any) -> Any:  # noqa: ANN401 - numba's own types
    """Read an element atomically."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return builder.load_atomic(_element(context, builder, signature, arguments), "seq_cst", 8)

    return types.int64(array, index), generate


@intrinsic
def _atomic_add(typing: Any, array: Any, index: Any, value: Any) -> Any:  # noqa: ANN401 - numba's own types
    """Add to an element atomically; returns what it was."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        amount = context.cast(builder, arguments[2], signature.args[2], types.int64)
        return builder.atomic_rmw("add", _element(context, builder, signature, arguments), amount, "seq_cst")

    return types.int64(array, index, value), generate


@intrinsic
def _atomic_swap(typing: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:  # noqa: ANN401 - numba's own types
    """Replace an element if it is still as expected; returns whether it was."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        place = _element(context, builder, signature, arguments)
        pair = builder.cmpxchg(place, arguments[2], arguments[3], "seq_cst", "seq_cst")
        return builder.zext(builder.extract_value(pair, 1), ir.IntType(1))

    return types.boolean(array, index, expected, value), generate


# numba passes an intrinsic its first argument, which mypy can't know.
atomic_load: Any = _atomic_load
atomic_add: Any = _atomic_add
atomic_swap: Any = _atomic_swap


_PACKAGE = Path(__file__).parent.parent


def _source_stamp() -> str:
    here, files = Path(__file__).parent, sorted(_PACKAGE.rglob("*.py"))
    sources = [path.read_bytes() for path in files if path.parent == here or b"@compiled" in path.read_bytes()]
    return blake2b(b"".join(sources), digest_size=16).hexdigest()


SOURCE_STAMP = _source_stamp()
"""A digest of the sources of this package's compiled code."""


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:  # noqa: ANN401 - numba's own
    """Compile a function with numba, with IEEE arithmetic as written, and cache the code between processes.

    Parameters
    ----------
    function : callable
        The function; without one, a decorator is returned.
    **options
        Options of numba's `njit`, except fast-math.

    Returns
    -------
    callable
        The compiled function.

    Examples
    --------
    >>> @compiled
    ... def double(number):
    ...     return 2 * number
    >>> double(21)
    42
    """
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
    """Return draw number `counter` under one key, like `seeding.mix`; for use in compiled code.

    Parameters
    ----------
    key, counter : uint64
        The key, and the number of the draw.

    Returns
    -------
    uint64
        64 random bits.

    Examples
    --------
    >>> int(draw(np.uint64(1), np.uint64(0))) == int(draw(np.uint64(1), np.uint64(0)))
    True
    """
    bits = key + (counter + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled(inline="always")
def below(bits: np.uint64, bound: int) -> np.int64:
    """Turn a draw into an integer in [0, bound); for use in compiled code.

    Parameters
    ----------
    bits : uint64
        A draw.
    bound : int
        The bound, below 2**32.

    Returns
    -------
    int64
        The integer.

    Examples
    --------
    >>> 0 <= below(draw(np.uint64(1), np.uint64(0)), 6) < 6
    True
    """
    return np.int64(((bits >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))
