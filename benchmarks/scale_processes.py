"""Running the command as a process of its own and taking what it needed: the processor's seconds, and memory.

A process inherits the peak memory of the one that starts it, so a benchmark that uses this must stay small itself.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

COMMAND = Path(sys.executable).parent / "erasable"
TIMED = Path(__file__).parent / "scale_timed.py"
_RUNS_OF_START = 3


class Failed(Exception):
    """A command did not end as it should."""


@dataclass(frozen=True)
class Used:
    """What a process and all that it started needed."""

    cpu: float
    """Seconds of the processor, user and system."""
    memory: float
    """The peak of the largest process, in GB."""
    seconds: float
    said: str
    scan: float = 0.0
    """Seconds of the processor that its own scans took, where they were timed."""

    def facts(self) -> dict[str, float]:
        """Return the figures, rounded."""
        return {"cpu": round(self.cpu, 2), "memory_gb": round(self.memory, 3), "seconds": round(self.seconds, 2)}


def run_with_timed_scan(*words: object) -> Used:
    """Run a command to its end, and return what it needed, and what its own scans did."""
    with tempfile.NamedTemporaryFile("r") as file:
        used = run(*words, command=(sys.executable, TIMED, file.name))
        return replace(used, scan=float(file.read()))


def run(
    *words: object,
    codes: tuple[int, ...] = (0,),
    limit: float = 6 * 3600,
    command: tuple[object, ...] = (COMMAND,),
) -> Used:
    """Run a command to its end, and return what it needed; it is ended after `limit` seconds."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        process = started(words, out.fileno(), err.fileno(), command)
        timer = threading.Timer(limit, end, [process])
        timer.start()
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            end(process)
            raise
        finally:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        said, errors = (_text(file.fileno()) for file in (out, err))
    if process.returncode not in codes:
        reason = (errors.strip() or said.strip() or "it said nothing").splitlines()[-1]
        raise Failed(f"erasable {words[0]} ended with {process.returncode} after {seconds:.0f} s: {reason}")
    return Used(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9, seconds, said)


def started(
    words: tuple[object, ...], out: int, err: int, command: tuple[object, ...] = (COMMAND,)
) -> subprocess.Popen[bytes]:
    """Start a command in a group of its own."""
    environment = {**os.environ, "NO_COLOR": "1"}
    line = [*map(str, command), *map(str, words)]
    return subprocess.Popen(line, stdout=out, stderr=err, env=environment, start_new_session=True)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def start_of(command: str) -> float:
    """Return the seconds of the processor that a command takes to import what it needs: its --help, median of three."""
    return statistics.median(run(command, "--help").cpu for _ in range(_RUNS_OF_START))


def _text(file: int) -> str:
    return os.pread(file, 2**22, 0).decode(errors="replace")
