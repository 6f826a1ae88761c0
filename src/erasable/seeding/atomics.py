"""Integers that several threads of compiled code read and change atomically; for use in kernels."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


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
yield_processor: Any = types.ExternalFunction("sched_yield", types.int32())
"""Lets another thread run."""
