"""Child processes that are killed, or frozen: just before a change becomes durable, or at any moment."""

import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from erasable.store import files, ledger

_DIED, _FAILED = -signal.SIGKILL, 99


def killed_at(change: int, action: Callable[[], object]) -> bool:
    """Run something in a child that is killed just before its n-th change of a file or ledger; say whether it was."""

    def dying() -> None:
        files.before_change = ledger.before_commit = _sent_at(change, signal.SIGKILL)
        action()

    code = os.waitstatus_to_exitcode(os.waitpid(forked(dying), 0)[1])
    assert code in (0, _DIED), f"the child failed at change {change}"
    return code == _DIED


def killed_after(seconds: float, action: Callable[[], object]) -> bool:
    """Run something in a child process that is sent SIGKILL after some time; say whether it was still at work."""
    child = forked(action)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, _DIED), f"the child failed by itself ({code})"
    return code == _DIED


@contextmanager
def frozen_at(change: int, action: Callable[[], object]) -> Iterator[int]:
    """Run something in a child that is frozen just before its n-th change, and give its number once it is."""

    def freezing() -> None:
        files.before_change = ledger.before_commit = _sent_at(change, signal.SIGSTOP)
        action()

    with frozen(freezing) as child:
        yield child


@contextmanager
def frozen(action: Callable[[], object]) -> Iterator[int]:
    """Run something in a child that freezes itself, and give its number once it is; it does not outlive the block."""
    child = forked(action)
    assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1]), "the child ended before it was frozen"
    try:
        yield child
    finally:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def forked(action: Callable[[], object]) -> int:
    """Run something in a child process, and return its number."""
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


def _sent_at(change: int, number: signal.Signals) -> Callable[..., None]:
    """Return a hook that sends this process a signal at the n-th change."""
    left = [change]

    def send_at_zero(*what: object) -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), number)

    return send_at_zero
