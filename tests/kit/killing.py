"""Child processes that are killed: just before a change becomes durable, or at any moment."""

import os
import signal
import time
import warnings
from collections.abc import Callable

from erasable.store import files, ledger

_DIED, _FAILED = -signal.SIGKILL, 99


def killed_at(change: int, action: Callable[[], object]) -> bool:
    """Run something in a child that is killed just before its n-th change of a file or ledger; say whether it was."""

    def dying() -> None:
        files.before_change = ledger.before_commit = _dying_at(change)
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
    assert code in (0, _DIED), f"the child failed by itself ({code})"
    return code == _DIED


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


def _dying_at(change: int) -> Callable[..., None]:
    left = [change]

    def die_at_zero(*what: object) -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    return die_at_zero
