"""Child processes that are killed, or frozen: just before a change becomes durable, or at any moment."""

import faulthandler
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from erasable.requests import database
from erasable.workspace import files

_DIED, _FAILED = -signal.SIGKILL, 99
_LONGEST = 120.0
_beside: dict[int, list[str]] = {}
"""Which threads there were beside the one that forked each child."""


Moments = Callable[[Callable[[], object]], Iterable[int]]


def every_change(action: Callable[[], object]) -> Iterable[int]:
    """Return the numbers of all changes; whoever goes through them stops when nothing was killed any more."""
    return count(1)


def each_kind_of_change(action: Callable[[], object]) -> Iterable[int]:
    """Do something undisturbed; return the first change of each kind and of each kind of file, and one more than all.

    What puts a file in another's place, or commits to the queue, is what others see: all of these are among them.
    """
    made: list[tuple[str, str]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "before_change", lambda kind, path: made.append((kind, _kind_of_file(path))))
        patch.setattr(database, "before_commit", lambda: made.append(("commit", "queue")))
        action()
    seen, chosen = set[str](), list[int]()
    for number, change in enumerate(made, 1):
        if change[0] in ("replace", "commit") or not seen.issuperset(change):
            chosen.append(number)
        seen.update(change)
    return [*chosen, len(made) + 1]


def _kind_of_file(path: Path) -> str:
    """Return the name of a file without what tells it from others of its kind."""
    return re.sub(r"[0-9a-f]{8,}|\d+", "#", path.name)


at_changes = pytest.mark.parametrize(
    "moments",
    [pytest.param(each_kind_of_change, id="each kind"), pytest.param(every_change, id="every", marks=pytest.mark.full)],
)
"""Give a test the changes to kill at: quickly one of each kind and file, else every one."""


def killed_at(change: int, action: Callable[[], object]) -> bool:
    """Run something in a child that is killed just before its n-th change of a file or queue; say whether it was."""

    def dying() -> None:
        files.before_change = database.before_commit = _sent_at(change, signal.SIGKILL)
        action()

    code = ended(forked(dying))
    assert code in (0, _DIED), f"the child failed at change {change}"
    return code == _DIED


def killed_after(seconds: float, action: Callable[[], object]) -> bool:
    """Run something in a child process that is sent SIGKILL after some time; say whether it was still at work."""
    child = forked(action)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    code = ended(child)
    assert code in (0, _DIED), f"the child failed by itself ({code})"
    return code == _DIED


@contextmanager
def frozen_at(change: int, action: Callable[[], object]) -> Iterator[int]:
    """Run something in a child that is frozen just before its n-th change, and give its number once it is."""

    def freezing() -> None:
        files.before_change = database.before_commit = _sent_at(change, signal.SIGSTOP)
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
    """Run something in a child process, and return its number.

    A lock that another thread holds meanwhile stays held in the child for ever: so who forks has no threads of its own.
    Libraries have some (OpenBLAS, Arrow, the allocators), and see to that themselves.
    """
    others = [thread.name for thread in threading.enumerate() if thread is not threading.current_thread()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on Python warns of all threads
        child = os.fork()
    if child:
        _beside[child] = others
        return child
    try:
        faulthandler.enable(2)
        action()
        os._exit(0)
    except BaseException:
        os._exit(_FAILED)


def ended(child: int, seconds: float = _LONGEST) -> int:
    """Wait until a child process has ended, and return its exit code; one that hangs says where, and is killed."""
    end = time.monotonic() + seconds
    while not (found := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGABRT)  # Python writes down where each thread is
            os.waitpid(child, 0)
            raise AssertionError(
                f"the child hangs, standard error says where; threads beside the one that forked: {_beside.get(child)}"
            )
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(found[1])


def _sent_at(change: int, number: signal.Signals) -> Callable[..., None]:
    """Return a hook that sends this process a signal at the n-th change."""
    left = [change]

    def send_at_zero(*what: object) -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), number)

    return send_at_zero
