"""Ctrl-C for the command's own process; whoever imports the library keeps what they have.

Python raises KeyboardInterrupt in the main thread, between two of its steps. That alone is not enough: a thread that
waits in compiled code does not hear of it, an import that is cut short leaves its lock and half a module to others, and
some libraries swallow the exception. So a thread of its own hears of each Ctrl-C too, and ends a process that has not
ended by itself in time. That may be done at any moment: the next command puts right what a killed one has left.
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
# Programs that run others (timeout, uv run) pass on what the terminal has sent to all: that is one Ctrl-C, not two.
_ONE_PRESS_SECONDS = 0.2
_LAST_WORD_SECONDS = 0.2
_REMINDER_SECONDS = 0.1
_REMINDER = signal.SIGURG  # ignored where nobody asks for it, and told apart from Ctrl-C
_CTRL_C = bytes([signal.SIGINT])
_TIDYING = "ignore:resource_tracker:UserWarning"
_CLEAN_LINE = "\r\x1b[K\x1b[?25h"  # no half progress bar, and the cursor is back

_received = threading.Event()
_last_word = threading.Lock()


def received() -> bool:
    """Whether Ctrl-C has come, so that an error may be no more than what it broke off."""
    return _received.is_set()


def take_last_word() -> bool:
    """Whether the caller is the first who wants to say why the process ends; the others are silent."""
    return _last_word.acquire(blocking=False)


def guarded(command: Callable[[], None]) -> None:
    """Run a command as a process: after Ctrl-C it ends with one line within two seconds, in order if it can."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        command()  # whoever started this has it ignore Ctrl-C, as a shell does with what it runs in the background
        return
    _hear()
    try:
        command()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        _end(code, STOPPED if code == INTERRUPTED and received() else None)
        raise
    except BaseException:
        # Whatever it is: what Ctrl-C breaks off, such as an import, fails in ways of its own.
        if received():
            _end(INTERRUPTED, STOPPED)
        raise
    _end(0, None)


@contextmanager
def kept_from_children() -> Iterator[None]:
    """Start processes that do not hear Ctrl-C, not even while they load: it is this process that ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_at_once() -> NoReturn:
    """End this process, whatever it is doing, and those that work for it."""
    processes = sys.modules.get("multiprocessing")
    with suppress(Exception):  # it may be loaded by half
        for process in processes.active_children() if processes else ():
            process.kill()
    _say_and_exit(INTERRUPTED, STOPPED_AT_ONCE)


def _hear() -> None:
    """Hear of each Ctrl-C in the main thread, as an exception, and in another thread, as a byte in a pipe."""
    heard, said = os.pipe()
    os.set_blocking(said, False)
    signal.set_wakeup_fd(said, warn_on_full_buffer=False)
    threading.Thread(target=_end_in_time, args=(heard,), daemon=True).start()
    show, show_of_thread, show_from_c = sys.unraisablehook, threading.excepthook, sys.excepthook
    sys.unraisablehook = lambda failure: None if received() else show(failure)
    threading.excepthook = lambda failure: None if received() else show_of_thread(failure)
    # Libraries in C that are cut short while they load print what came through this.
    sys.excepthook = lambda *failure: None if received() else show_from_c(*failure)
    # Python has a process that removes what a killed one and its workers shared, and says so; nobody has to know.
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), _TIDYING)))
    for number in (_REMINDER, signal.SIGINT):
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, unless one is being handled: what is tidied up after it must not be broken off too."""
    _received.set()
    handled = sys.exception()
    while handled is not None and not isinstance(handled, KeyboardInterrupt):
        handled = handled.__context__
    if handled is None:
        raise KeyboardInterrupt


def _end_in_time(heard: int) -> None:
    """Wait for Ctrl-C, then for some time or for another Ctrl-C, and end the process.

    Meanwhile the main thread is reminded: KeyboardInterrupt is lost in a finaliser, and Arrow drops it when it comes
    while Arrow loads pandas.
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
    """End the process in the main thread; other threads, some of which might wait for ever, are not waited for."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            if not received():
                return  # nobody reads it, the disk is full, or it was closed: Python has its own words for that
    _say_and_exit(code, line)


def _say_and_exit(code: int, line: str | None) -> NoReturn:
    # Written only if it can be at once: standard error may be a full pipe that nobody reads.
    if line and take_last_word() and select.select([], [_STANDARD_ERROR], [], 0)[1]:
        with suppress(OSError):
            clean = _CLEAN_LINE if os.isatty(_STANDARD_ERROR) else ""
            os.write(_STANDARD_ERROR, f"{clean}erasable: {line}\n".encode())
    os._exit(code)
