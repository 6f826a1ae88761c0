"""Reproducible compiled code: the decorator of every kernel, and numbered draws inside kernels.

A kernel loads numba when it is first called, since that takes longer than most commands: measured 0.25 s for numba and
0.2 s for the first code from its cache, of 0.6 s for recommending to one user.

numba compiles code on first use and caches it for the next process. numba checks only the file of the function itself,
so a kernel would keep an old version of a function that it calls from another file. Here the cache is valid only while
every file with compiled code is unchanged; for a kernel of another package, its own files and the compiled functions
that it imports must be unchanged as well. There is no fast-math: a compiler that may reorder sums gives different
bytes for the same source, depending on what it inlines (measured: fresh code against cached code).

Private parts of numba are used here and in `atomics` and nowhere else, and pyproject.toml has an upper bound on its
version. Two things can't be done otherwise: to decide when cached code is valid, and to read and change an integer
atomically on the processor (numba has atomics for GPUs only). With a new release of numba, run `tests/seeding` and
`tests/models/test_machine.py`, then raise the bound.
"""

from collections.abc import Callable, Iterable
from functools import cache, update_wrapper
from hashlib import blake2b
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar

import numpy as np


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


_PACKAGE = Path(__file__).parent.parent


@cache
def source_stamp() -> str:
    """Return a digest of the sources of this package's compiled code."""
    here, files = Path(__file__).parent, sorted(_PACKAGE.rglob("*.py"))
    sources = [path.read_bytes() for path in files if path.parent == here or b"@compiled" in path.read_bytes()]
    return blake2b(b"".join(sources), digest_size=16).hexdigest()


FEW_CALLS = 100
"""So many calls are computed without compiled code, where that is possible and none is loaded yet."""
_LOADING = RLock()


class _Process:
    """What this process has done so far."""

    has_compiler = False
    plain_calls = 0
    after_loading: ClassVar[list[Callable[[], object]]] = []


def load_compiler() -> None:
    """Load the compiler; from now on every kernel runs as compiled code."""
    with _LOADING:
        if not _Process.has_compiler:
            import numba  # noqa: F401
            import scipy.linalg.cython_blas  # noqa: F401

            for told in _Process.after_loading:
                told()
            _Process.has_compiler = True


def after_loading(told: Callable[[], object]) -> None:
    """Call a function as soon as the compiler is loaded, and with it SciPy's BLAS, which compiled code calls."""
    with _LOADING:
        _Process.after_loading.append(told)
        if _Process.has_compiler:
            told()


class Kernel:
    """A compiled function: it is compiled, or loaded from the cache, when it is first called or its attributes asked.

    To numba it looks like its own dispatcher (whose `_numba_type_` it hands on), so that other kernels can call it.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], plain: Callable[..., Any] | None) -> None:
        update_wrapper(self, function)
        self.py_func, self.plain = function, plain
        self._options = options
        self._code: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - the function's own
        """Compute the function."""
        if self._code is not None:
            return self._code(*arguments, **named)
        if self.plain is not None and not _Process.has_compiler and _Process.plain_calls < FEW_CALLS:
            _Process.plain_calls += 1
            found = self.plain(*arguments, **named)
            if found is not None:
                return found
        return self.code(*arguments, **named)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - numba's own
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.code, name)

    @property
    def code(self) -> Callable[..., Any]:
        """The compiled function as numba has it."""
        with _LOADING:
            if self._code is None:
                load_compiler()
                self._code = _dispatcher(self.py_func, self._options)
            return self._code


def _dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    from numba import njit

    try:
        dispatcher: Callable[..., Any] = njit(cache=True, error_model="numpy", **options)(function)
        cache_follows(dispatcher, lambda own: _stamp_of(function, own))
    except (RuntimeError, AttributeError):  # no folder for the cache, or compiling is switched off: do without
        dispatcher = njit(error_model="numpy", **options)(function)
    return dispatcher


def compiled(
    function: Callable[..., Any] | None = None,
    *,
    plain: Callable[..., Any] | None = None,
    **options: Any,  # noqa: ANN401 - numba's own
) -> Any:  # noqa: ANN401 - a kernel, or a decorator
    """Compile a function with numba, with IEEE arithmetic as written, and cache the code between processes.

    Parameters
    ----------
    function : callable
        The function; without one, a decorator is returned.
    plain : callable, optional
        The same without compiled code and to the same bytes, or None where that would take too long. It is used for the
        first calls of a process that has loaded no compiled code yet.
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
        return lambda inner: Kernel(inner, options, plain)
    return Kernel(function, options, plain)


def _stamp_of(function: Callable[..., Any], own: str) -> str:
    """Return the stamp for which a function's cached code is valid; `own` is numba's own stamp."""
    file = Path(function.__code__.co_filename)
    if file.is_relative_to(_PACKAGE):
        return source_stamp()
    sources = [path.read_bytes() for path in _files_with(file)]
    parts = [source_stamp(), own, *stamps_of(function.__globals__.values()), blake2b(b"".join(sources)).hexdigest()]
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
