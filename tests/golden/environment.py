"""The numeric environment that golden bytes belong to; not the version of erasable, nor its source."""

import platform
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding
import numpy
import scipy
import scipy.linalg.cython_blas  # loads scipy's own BLAS
from threadpoolctl import ThreadpoolController

LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "gensim")


def environment() -> dict[str, str]:
    """Return the processor, the BLAS kernels and the versions that bytes depend on."""
    folders = tuple(str(Path(package.__file__).parent) for package in (numpy, scipy))
    loaded = ThreadpoolController().select(user_api="blas").info()
    ours = [library for library in loaded if library["filepath"].startswith(folders)] or loaded
    return {
        "machine": platform.machine(),
        "processor": llvmlite.binding.get_host_cpu_name(),
        "libc": " ".join(platform.libc_ver()),
        "blas": "; ".join(
            sorted({f"{one['internal_api']} {one['version']} {one.get('architecture', '')}" for one in ours})
        ),
        **{library: version(library) for library in LIBRARIES},
    }
