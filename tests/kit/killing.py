"""Child processes that die: just before a disk change, or by a signal at any moment."""

import os
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from erasable.store import files

_DIED, _FAILED = 77, 99


def killed_at(change: int, action: Callable[[], object]) -> bool:
    """Run something in a child process that dies just before its n-th disk change; say whether it died."""

    def dying() -> None:
        files.before_change = _dying_at(change)
        action()

    code = os.waitstatus_to_exitcode(os.waitpid(_forked(dying), 0)[1])
    assert code in (0, _DIED), f"the child failed at change {change}"
    return code == _DIED


def killed_after(seconds: float, action: Callable[[], object]) -> bool:
    """Run something in a child process that is sent SIGKILL after some time; say whether it was still at work."""
    child = _forked(action)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), f"the child failed by itself ({code})"
    return code == -signal.SIGKILL


def _forked(action: Callable[[], object]) -> int:
    with warnings.catch_warnings():
        # From 3.12 on Python warns of threads; none of them holds a lock that the child needs.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    try:
        action()
        os._exit(0)
    except BaseException:
        os._exit(_FAILED)


def _dying_at(change: int) -> Callable[[str, Path], None]:
    left = [change]

    def die_at_zero(kind: str, path: Path) -> None:
        left[0] -= 1
        if not left[0]:
            os._exit(_DIED)

    return die_at_zero
