"""The service as people run it: a server process with its worker, that can be killed, and asked over HTTP."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import erasable
from erasable.service._running import ServicePlace
from erasable.service.settings import ServiceSettings

_START_SECONDS = 60


class ServiceProcess:
    """A server and its worker, in a group of processes of their own."""

    def __init__(
        self, folder: Path, settings: ServiceSettings, port: int | None = None, log: Path | None = None
    ) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        place = ServicePlace(folder=folder, settings=settings, port=self.port, threads=1)
        self._log = (log or folder.parent / f"{folder.name}.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "erasable.service", place.model_dump_json()],
            stderr=self._log,
            env={**os.environ, "PYTHONFAULTHANDLER": "1", "PYTHONPATH": str(Path(erasable.__file__).parents[1])},
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The number of the server's process."""
        return self._process.pid

    @property
    def log(self) -> str:
        """What server and worker have logged."""
        return Path(self._log.name).read_text()

    @property
    def memory(self) -> int:
        """How many bytes of memory the server takes."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def processor_seconds(self) -> float:
        """How many seconds of the processor the server has taken so far, its worker apart."""
        return processor_seconds(self.pid)

    def workers(self) -> list[int]:
        """Return the numbers of the processes that work for this server."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        threads = Path(f"/proc/{self.pid}/task").glob("*/children") if children.exists() else []
        pids = [int(pid) for thread in threads for pid in _read(thread).split()]
        return [pid for pid in pids if b"spawn_main" in _read(Path(f"/proc/{pid}/cmdline")).encode()]

    def wait_until_it_answers(self) -> None:
        """Wait until the server takes connections."""
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            self.require_alive()
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGABRT)  # Python writes down where each thread is
        self._process.wait()
        raise AssertionError(f"the server does not answer: {self.log[-6000:]}")

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait until something is so."""
        end = time.monotonic() + _START_SECONDS
        while not condition():
            self.require_alive()
            assert time.monotonic() < end, f"waited in vain: {self.log[-2000:]}"
            time.sleep(0.02)

    @property
    def is_gone(self) -> bool:
        """Whether the server has ended."""
        return self._process.poll() is not None

    def require_alive(self) -> None:
        """Require that the server has not ended by itself."""
        code = self._process.poll()
        assert code is None, f"the server ended by itself with {code}: {self.log[-2000:]}"

    def kill_server(self) -> None:
        """Kill the server alone."""
        self._process.kill()
        self._process.wait()
        self._log.close()

    def kill_workers(self) -> None:
        """Kill the worker alone."""
        for pid in self.workers():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_both(self) -> None:
        """Kill server and worker at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()


@contextmanager
def running(folder: Path, settings: ServiceSettings, log: Path | None = None) -> Iterator[ServiceProcess]:
    """Run the service for a block."""
    service = ServiceProcess(folder, settings, log=log)
    try:
        service.wait_until_it_answers()
        yield service
    finally:
        service.kill_both()


def processor_seconds(pid: int) -> float:
    """Return how many seconds of the processor a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
