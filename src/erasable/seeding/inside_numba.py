"""Private parts of numba: used here and nowhere else, and pyproject.toml has an upper bound on its version.

Two things can't be done otherwise: to decide when cached code is valid (numba checks one file only), and to read and
change an integer atomically on the processor (numba has atomics for GPUs only). With a new release of numba, run
`tests/seeding` and `tests/models/test_crew.py`, then raise the bound.
"""

from collections.abc import Callable, Iterable
from typing import Any

from llvmlite import ir
from numba import types
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
