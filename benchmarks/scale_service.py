"""A server of a large workspace: what it takes until the first answer, its memory, and its answers a second.

The client is in this process, on this machine, over a few connections that stay open. First people at random are asked
for, so many that whatever the server loads when it is needed is loaded; then the load is put on and counted.
"""

import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from scale_processes import Failed, end, run, started

CONNECTIONS = 4
MOST_SECONDS_OF_WARMING = 120.0
_SECONDS_UNTIL_THE_FIRST_ANSWER = 1800.0
_TICKS = os.sysconf("SC_CLK_TCK")
_OK = b"HTTP/1.1 200"

Somebody = Callable[[random.Random], str]


def served(shop: Path, somebody: Somebody, threads: int, warming: int, seconds: float) -> dict[str, Any]:
    """Serve a workspace and put a load on; the server is ended in any case."""
    token = json.loads(run("token", "create", shop, "--role", "application", "--json").said)["token"]
    with _server(shop, threads) as (process, port):
        client = _Client(port, token)
        began, first = time.monotonic(), somebody(random.Random(0))
        while not client.answers(first):
            if process.poll() is not None:
                raise Failed(f"the server ended by itself with {process.returncode}")
            if time.monotonic() - began > _SECONDS_UNTIL_THE_FIRST_ANSWER:
                raise Failed("the server does not answer")
            time.sleep(0.02)
        until_first, cpu_of_start = time.monotonic() - began, _processor_seconds(process.pid)
        warmed = _load(port, token, somebody, count=warming, limit=MOST_SECONDS_OF_WARMING, seed=1)
        before = _processor_seconds(process.pid)
        loaded = _load(port, token, somebody, count=None, limit=seconds, seed=2)
        spent = _processor_seconds(process.pid) - before
        return {
            "seconds_until_first_answer": round(until_first, 2),
            "cpu_until_first_answer": round(cpu_of_start, 2),
            "memory_gb": round(_peak(process.pid), 3),
            "memory_of_worker_gb": round(max(map(_peak, _children(process.pid)), default=0.0), 3),
            "asked_before": warmed["answers"],
            "answers": loaded["answers"],
            "answers_per_second": round(loaded["answers"] / loaded["seconds"], 1),
            "median_ms": round(1000 * loaded["median"], 2),
            "cpu_of_server_per_answer_us": round(1e6 * spent / max(1, loaded["answers"])),
            "connections": CONNECTIONS,
        }


@contextmanager
def _server(shop: Path, threads: int) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    with tempfile.TemporaryFile() as log:
        words = ("serve", shop, "--port", port, "--threads", threads)
        process = started(words, log.fileno(), log.fileno())
        try:
            yield process, port
        finally:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            end(process)
            process.wait()


class _Client:
    """Asks for recommendations over one connection that stays open."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self._socket: socket.socket | None = None

    def answers(self, user: str) -> bool:
        """Whether the server answers with recommendations; False while it can't be reached."""
        try:
            return self.ask(user).startswith(_OK)
        except OSError:
            self._socket = None
            return False

    def ask(self, user: str) -> bytes:
        """Return the answer, head and body."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), 60)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(
            f"GET /v1/recommendations/{user}?k=10 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {self._token}\r\n\r\n".encode()
        )
        answer = b""
        while not _is_whole(answer):
            part = self._socket.recv(2**16)
            if not part:
                raise ConnectionError("the server closed the connection")
            answer += part
        return answer

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()


def _is_whole(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    return length is not None and len(body) >= int(length[1])


def _load(port: int, token: str, somebody: Somebody, count: int | None, limit: float, seed: int) -> dict[str, float]:
    """Ask for people at random, so many or for so long; an answer without recommendations is an error."""
    times: list[list[float]] = [[] for _ in range(CONNECTIONS)]
    failures: list[str] = []
    began = time.monotonic()

    def ask(number: int) -> None:
        chance, client = random.Random(f"{seed} {number}"), _Client(port, token)
        share = None if count is None else -(-count // CONNECTIONS)
        try:
            while not failures and time.monotonic() - began < limit and (share is None or len(times[number]) < share):
                asked = time.monotonic()
                answer = client.ask(somebody(chance))
                if not answer.startswith(_OK):
                    failures.append(answer.splitlines()[0].decode(errors="replace"))
                times[number].append(time.monotonic() - asked)
        except OSError as error:
            failures.append(str(error))
        finally:
            client.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise Failed(f"the server answered otherwise: {failures[0]}")
    together = [one for of_one in times for one in of_one]
    return {
        "answers": len(together),
        "seconds": time.monotonic() - began,
        "median": statistics.median(together) if together else 0.0,
    }


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS  # its own, and those of what it has started and seen end


def _peak(pid: int) -> float:
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) * 1024 / 1e9 if found else 0.0
    return 0.0


def _children(pid: int) -> list[int]:
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in files for child in file.read_text().split()]
