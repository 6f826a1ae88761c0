"""One BLAS thread wherever bytes matter: with two, products and inverses change their last bits (measured)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import scipy
import scipy.linalg.cython_blas
from threadpoolctl import OpenBLASController, ThreadpoolController


class _OneThread:
    """Holds both BLAS copies (numpy's and scipy's) to one thread while anyone is inside."""

    def __init__(self) -> None:
        self._controller = ThreadpoolController()
        self._lock = threading.Lock()
        self._inside = 0
        self._limiter: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                _take_control()
                self._limiter = self._controller.limit(limits=1, user_api="blas")
                if any(library["num_threads"] != 1 for library in self._controller.select(user_api="blas").info()):
                    raise RuntimeError("BLAS can't be held to one thread, so equal bytes can't be promised")
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                _take_control()
                self._limiter.restore_original_limits()


def blas_libraries() -> list[dict[str, Any]]:
    """Describe the BLAS copies that this package computes with, numpy's and scipy's; a host program may load others."""
    folders = [str(Path(package.__file__ or "").parent) for package in (numpy, scipy)]
    found = ThreadpoolController().select(user_api="blas").info()
    # Beside numpy lies numpy.libs; where both share a system library, all that is loaded must do.
    return [library for library in found if library["filepath"].startswith(tuple(folders))] or found


def _take_control() -> None:
    """Let this thread set limits: threadpoolctl heeds only the first thread that ever did, and ignores the others."""
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


_one_thread = _OneThread()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread inside; may be entered from several threads at once."""
    _one_thread.enter()
    try:
        yield
    finally:
        _one_thread.leave()
