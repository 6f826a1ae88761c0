"""The numeric environment: what must be equal for the same training to give the same bytes."""

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version

import llvmlite.binding

from erasable.models.blas import blas_libraries
from erasable.seeding.compiled import SOURCE_STAMP

OF_THE_CODE = frozenset({"erasable", "kernels"})
_LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "gensim", "erasable")


def numeric_environment() -> dict[str, str]:
    """Return the processor, the BLAS kernels and the versions that this process computes with."""
    return dict(_environment())


@cache
def _environment() -> Mapping[str, str]:
    kernels = blas_libraries()
    return {
        "machine": platform.machine(),
        "processor": llvmlite.binding.get_host_cpu_name(),
        "libc": " ".join(platform.libc_ver()),
        "blas": "; ".join(sorted({f"{k['internal_api']} {k['version']} {k.get('architecture', '')}" for k in kernels})),
        **{library: version(library) for library in _LIBRARIES},
        "kernels": SOURCE_STAMP,
    }


def differences(learned_with: dict[str, str]) -> list[str]:
    """Say in words how this environment differs from another one; empty if it does not.

    Our own version and sources do not count: that they give the same bytes is what the golden bytes guard.
    """
    here = numeric_environment()
    return [
        f"{name} is {here.get(name, 'absent')} here and was {learned_with.get(name, 'absent')}"
        for name in sorted({*here, *learned_with} - OF_THE_CODE)
        if here.get(name) != learned_with.get(name)
    ]
