"""What models need of the machine: one BLAS thread, and memory; and `top_items`."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import OpenBLASController, ThreadpoolController

from erasable.errors import Refused, option
from erasable.seeding.compiled import after_loading

_OF_SCIPY = "scipy.linalg.cython_blas"


class _OneThread:
    """Limits both BLAS copies (numpy's and scipy's) to one thread while any caller is inside.

    SciPy's is loaded when it is needed, which may be after the first caller came in; then it is limited at once.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._inside = 0
        self._limiters: list[Any] = []
        self._controller: ThreadpoolController | None = None
        self._has_scipy = False

    def enter(self) -> None:
        with self._lock:
            self._inside += 1
            try:
                self.limit()
            except BaseException:
                self.leave()
                raise

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                _take_control()
                for limiter in reversed(self._limiters):
                    limiter.restore_original_limits()
                self._limiters = []

    def limit(self) -> None:
        """Limit what is loaded by now, if a caller is inside."""
        with self._lock:
            controller, has_scipy = self._controller, _OF_SCIPY in sys.modules
            if controller is None or has_scipy != self._has_scipy:
                controller = self._controller = ThreadpoolController()
                self._has_scipy = has_scipy
            elif self._limiters:
                return
            if not self._inside:
                return
            _take_control()
            self._limiters.append(controller.limit(limits=1, user_api="blas"))
            if any(library["num_threads"] != 1 for library in controller.select(user_api="blas").info()):
                raise RuntimeError("BLAS can't be held to one thread, so equal bytes can't be promised")


def load_both_blas() -> None:
    """Load SciPy's BLAS beside NumPy's, for code that may use either: then both are limited to one thread."""
    import scipy.linalg.cython_blas  # noqa: F401

    _one_thread.limit()


def blas_libraries() -> list[dict[str, Any]]:
    """Describe the BLAS copies of numpy and scipy; the host program may have loaded others."""
    load_both_blas()
    import scipy

    folders = [str(Path(package.__file__ or "").parent) for package in (numpy, scipy)]
    found = ThreadpoolController().select(user_api="blas").info()
    # numpy.libs lies beside numpy; where both use a system library, take every BLAS that is loaded.
    return [library for library in found if library["filepath"].startswith(tuple(folders))] or found


def _take_control() -> None:
    """Let this thread set limits: threadpoolctl obeys only the first thread that ever did, and ignores the others."""
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


_one_thread = _OneThread()
after_loading(_one_thread.limit)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside, so that products of matrices give the same bytes; several threads may enter.

    Returns
    -------
    context manager
        It yields nothing.

    Examples
    --------
    >>> with one_blas_thread():
    ...     product = np.ones((2, 3)) @ np.ones((3, 2))
    """
    _one_thread.enter()
    try:
        yield
    finally:
        _one_thread.leave()


GIB = 2**30
_SYSTEM = Path("/proc/meminfo")
_OWN_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Return the bytes of memory still available: in the system, or under a container's limit."""
    limits = [left for left in (_left_in_system(), _left_in_group()) if left is not None]
    return min(limits) if limits else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def refuse_beyond_memory(model: str, items: int, needed: int, *remedy: str) -> None:
    """Refuse a model that needs more memory than is available; the remedy says what to give instead."""
    available = available_memory()
    if needed > available:
        raise Refused(
            f"{model} on {items:,} items needs {needed / GIB:,.1f} GiB of memory and {available / GIB:,.1f} GiB are "
            "available: give ",
            *remedy,
            ", drop rare items with ",
            option("min_interactions"),
            ", or free memory",
        )


def _left_in_system() -> int | None:
    kibibytes = _named_numbers(_SYSTEM).get("MemAvailable")
    return None if kibibytes is None else kibibytes * 1024


def _left_in_group() -> int | None:
    """Return what the control group (version 2) leaves; cached file pages don't count, since they can be dropped."""
    try:
        path = next(line[3:] for line in _OWN_GROUP.read_text().splitlines() if line.startswith("0::"))
        folder = _GROUPS / path.lstrip("/")
        limit = int((folder / "memory.max").read_text())
        used = int((folder / "memory.current").read_text())
    except (OSError, StopIteration, ValueError):  # no such group, or no limit ("max")
        return None
    files = _named_numbers(folder / "memory.stat").get("file", 0)
    return max(0, limit - max(0, used - files))


def _named_numbers(path: Path) -> dict[str, int]:
    """Read lines like `name 12` or `name: 12 kB`; empty if there is no such file."""
    try:
        words = [line.replace(":", " ").split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {line[0]: int(line[1]) for line in words if len(line) > 1 and line[1].isdigit()}


def cosines(vectors: NDArray[np.float32], number: int) -> NDArray[np.float32]:
    """Return the cosine between one row and each row; 0 where one of the two is zero.

    >>> cosines(np.array([[1, 0], [2, 0], [0, 3], [0, 0]], np.float32), 0).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    lengths = np.linalg.norm(vectors, axis=1)
    products: NDArray[np.float32] = vectors @ vectors[number]
    scale = lengths * lengths[number]
    return np.clip(np.divide(products, scale, out=np.zeros_like(products), where=scale > 0), -1, 1)


ItemNumbers = NDArray[np.int64]


def top_items(scores: NDArray[Any], k: int, excluded: NDArray[np.integer[Any]]) -> ItemNumbers:
    """Return the k best items by descending score, ties by ascending number, never an excluded one.

    >>> top_items(np.array([0.5, 0.9, 0.5, 0.1]), 2, excluded=np.array([1]))
    array([0, 2])
    """
    # Of 100,000 items most have no score above 0. Where enough have one, the best are among them.
    allowed = scores > 0
    allowed[excluded] = False
    items = np.flatnonzero(allowed)
    if len(items) < k:
        allowed = np.ones(len(scores), dtype=bool)
        allowed[excluded] = False
        items = np.flatnonzero(allowed)
    values = scores[items]
    if 0 < k < len(items):
        chosen = _best(values, k)
        items, values = items[chosen], values[chosen]
    # Both lists ascend by item number, which a stable sort keeps among equal scores.
    return items[np.argsort(-values, kind="stable")][: max(k, 0)]


def _best(values: NDArray[Any], k: int) -> ItemNumbers:
    """Return the ascending positions of the k largest values; of equal ones the first win."""
    border = np.partition(values, len(values) - k)[len(values) - k]
    above = values > border
    at_border = np.flatnonzero(values == border)[: k - int(above.sum())]
    above[at_border] = True
    return np.flatnonzero(above)
