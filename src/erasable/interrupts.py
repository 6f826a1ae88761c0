"""Ctrl-C in the process of a command; importing the library changes nothing.

Python raises KeyboardInterrupt in the main thread, between two bytecode instructions. That is not enough: compiled code
that waits does not notice it, an interrupted import leaves a lock and half a module behind, and some libraries swallow
the exception. So a separate thread also receives each Ctrl-C, and ends the process if it has not ended in time. That is
safe at any moment: the next command cleans up after a killed one.
"""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
STOPPED = "stopped; nothing is left half done"
STOPPED_AT_ONCE = "stopped at once; run the same command again"
_STANDARD_ERROR = 2
_GRACE_SECONDS = 1.5
# Wrappers (timeout, uv run) pass on a signal that the terminal sent to all: that is one Ctrl-C, not two.
_ONE_PRESS_SECONDS = 0.2
_LAST_WORD_SECONDS = 0.2
_REMINDER_SECONDS = 0.1
_REMINDER = signal.SIGURG  # ignored by default, and different from Ctrl-C
_CTRL_C = bytes([signal.SIGINT])
_TIDYING = "ignore:resource_tracker:UserWarning"
_CLEAN_LINE = "\r\x1b[K\x1b[?25h"  # clears a half-drawn progress bar and shows the cursor

_received = threading.Event()
_last_word = threading.Lock()


def received() -> bool:
    """Whether Ctrl-C was pressed, so that an error may only be its consequence."""
    return _received.is_set()


def take_last_word() -> bool:
    """Whether the caller is the first to say why the process ends; later ones stay silent."""
    return _last_word.acquire(blocking=False)


def guarded(command: Callable[[], None]) -> None:
    """Run a command as a process: after Ctrl-C it ends within two seconds with one line, cleanly if possible."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        command()  # the parent set Ctrl-C to be ignored, as a shell does for background jobs
        return
    _hear()
    try:
        command()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        _end(code, STOPPED if code == INTERRUPTED and received() else None)
        raise
    except BaseException:
        # Any exception: code interrupted by Ctrl-C, such as an import, can fail in any way.
        if received():
            _end(INTERRUPTED, STOPPED)
        raise
    _end(0, None)


@contextmanager
def kept_from_children() -> Iterator[None]:
    """Start processes that never receive Ctrl-C, not even while they load; this process ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_at_once() -> NoReturn:
    """End this process and its workers, whatever they are doing."""
    processes = sys.modules.get("multiprocessing")
    with suppress(Exception):  # the module may be half loaded
        for process in processes.active_children() if processes else ():
            process.kill()
    _say_and_exit(INTERRUPTED, STOPPED_AT_ONCE)


def _hear() -> None:
    """Receive each Ctrl-C in the main thread, as an exception, and in another thread, as a byte in a pipe."""
    heard, said = os.pipe()
    os.set_blocking(said, False)
    signal.set_wakeup_fd(said, warn_on_full_buffer=False)
    threading.Thread(target=_end_in_time, args=(heard,), daemon=True).start()
    show, show_of_thread, show_from_c = sys.unraisablehook, threading.excepthook, sys.excepthook
    sys.unraisablehook = lambda failure: None if received() else show(failure)
    threading.excepthook = lambda failure: None if received() else show_of_thread(failure)
    # C libraries interrupted while they load report through this hook.
    sys.excepthook = lambda *failure: None if received() else show_from_c(*failure)
    # Python's resource tracker removes what a killed process shared with its workers, and would print a warning.
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), _TIDYING)))
    for number in (_REMINDER, signal.SIGINT):
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, unless one is being handled: its cleanup must not be interrupted too."""
    _received.set()
    handled = sys.exception()
    while handled is not None and not isinstance(handled, KeyboardInterrupt):
        handled = handled.__context__
    if handled is None:
        raise KeyboardInterrupt


def _end_in_time(heard: int) -> None:
    """Wait for Ctrl-C, then for the grace period or another Ctrl-C, and end the process.

    Meanwhile the main thread is reminded: a finaliser loses KeyboardInterrupt, and Arrow drops it while loading pandas.
    """
    main = threading.main_thread().ident or 0
    os.read(heard, 1)
    _received.set()
    pressed = time.monotonic()
    again = False
    while not again and (left := pressed + _GRACE_SECONDS - time.monotonic()) > 0:
        ready = select.select([heard], [], [], min(left, _REMINDER_SECONDS))[0]
        again = bool(ready) and os.read(heard, 1) == _CTRL_C and time.monotonic() > pressed + _ONE_PRESS_SECONDS
        if not ready:
            signal.pthread_kill(main, _REMINDER)
    if _last_word.locked():
        time.sleep(_LAST_WORD_SECONDS)  # the main thread is saying why it ends
    end_at_once()


def _end(code: int, line: str | None) -> None:
    """End the process from the main thread, without waiting for other threads, which might never end."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # there is none if it was closed before
        try:
            stream.flush()
        except (OSError, ValueError):
            if not received():
                return  # a closed or broken stream, or a full disk: Python reports that itself
    _say_and_exit(code, line)


def _say_and_exit(code: int, line: str | None) -> NoReturn:
    # Written only if that does not block: standard error may be a full pipe that nobody reads.
    if line and take_last_word() and select.select([], [_STANDARD_ERROR], [], 0)[1]:
        with suppress(OSError):
            clean = _CLEAN_LINE if os.isatty(_STANDARD_ERROR) else ""
            os.write(_STANDARD_ERROR, f"{clean}erasable: {line}\n".encode())
    os._exit(code)
