"""Processes of ours: they import nothing from the folder that they are started in."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SETTING = "PYTHONSAFEPATH"
_lock = threading.RLock()


@contextmanager
def safe_path() -> Iterator[None]:
    """Have what is started during a block import nothing from where it stands.

    Python puts the working folder before everything else for `-c` and `-m`, which is how worker processes are started:
    an `enum.py` that somebody put there would be run.
    """
    with _lock:
        before = os.environ.get(_SETTING)
        os.environ[_SETTING] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_SETTING]
            else:
                os.environ[_SETTING] = before
