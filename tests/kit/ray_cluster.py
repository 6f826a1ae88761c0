"""A Ray cluster of two nodes on the loopback of this machine, with folders of its own; and what lies in them."""

import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from erasable.models import Effort
from erasable.operations.remote import Facts
from erasable.workspace.scratch import Scratch

# `ray start` puts the outer address of the machine in the place of the loopback: here it must stay.
_START = """
import ctypes, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # whoever started it may be killed: the node ends too
from ray._private import services
services.get_node_ip_address = lambda address=None: "127.0.0.1"
from ray.scripts.scripts import main
sys.argv[0] = "ray"
main()
"""
_LONGEST = 60.0


class NoRay(Exception):
    """Why there is no cluster."""


class RayNodes:
    """The nodes of one cluster; the processes of each are a session of their own, which is ended with it."""

    def __init__(self) -> None:
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        self.folder = Path(tempfile.mkdtemp(prefix="erasable-", dir="/tmp"))
        self._port = _free_port()
        self._nodes: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def add(self, cores: int = 1, **environment: str) -> int:
        """Start one more node with further variables, wait until the cluster has it, and return its number."""
        number = len(self._nodes)
        place = self.folder / str(number)
        place.mkdir()
        first = ["--head", f"--port={self._port}", "--include-dashboard=false"]
        ways = first if number == 0 else [f"--address={self.address}"]
        ways += [f"--temp-dir={place}", f"--num-cpus={cores}", "--object-store-memory=80000000", "--block"]
        with (place / "printed").open("wb") as printed:
            node = subprocess.Popen(
                [sys.executable, "-c", _START, "start", *ways, "--node-ip-address=127.0.0.1", "--disable-usage-stats"],
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1", **environment},
            )
        self._nodes.append(node)
        end = time.monotonic() + _LONGEST
        while b"Ray runtime started" not in (place / "printed").read_bytes():
            if node.poll() is not None or time.monotonic() > end:
                raise NoRay(f"no node was started: {(place / 'printed').read_text()[-500:]}")
            time.sleep(0.1)
        return number

    def remove(self, number: int) -> None:
        """End a node."""
        self._nodes[number].terminate()
        self._nodes[number].wait()

    def workers(self) -> list[int]:
        """Return the processes that carry out tasks now."""
        return [pid for pid, command in _processes() if command.startswith(b"ray::carry_out") and self._has(pid)]

    def held(self, texts: Iterable[str]) -> dict[str, str]:
        """Return those of some texts that Ray's files or stored objects hold, each with a place."""
        sought = {text: text.encode() for text in texts}
        return {text: name for name, content in self._contents() for text, one in sought.items() if one in content}

    def stop(self) -> None:
        """End every process of the cluster, and remove its folders."""
        for node in reversed(self._nodes):
            node.terminate()
        for node in self._nodes:
            with suppress(subprocess.TimeoutExpired):
                node.wait(10)
            with suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGKILL)
            node.wait()
        for pid, _ in _processes():
            if self._has(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _contents(self) -> Iterator[tuple[str, bytes]]:
        for file in self.folder.rglob("*"):
            if file.is_file():
                yield str(file), file.read_bytes()
        for pid, command in _processes():  # objects lie in memory that has no name any more
            if b"/raylet/raylet" in command and self._has(pid):
                yield from _stored(pid)

    def _has(self, pid: int) -> bool:
        """Whether a process is one of the cluster: its folder stands in what it was started with."""
        try:
            started = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False
        return str(self.folder).encode() in started or self._raylets() & {_parent(pid)} != set()

    def _raylets(self) -> set[int]:
        own = str(self.folder).encode()
        return {pid for pid, command in _processes() if b"/raylet/raylet" in command and own in command}


def tell_and_fail(scratch: Scratch, facts: Facts, effort: Effort) -> Facts:
    """Print a text in every way, and fail with it: what an order of a test has a worker do."""
    print(facts["text"], flush=True)
    print(facts["text"], file=sys.stderr, flush=True)
    os.write(1, facts["text"].encode())
    os.write(2, facts["text"].encode())
    warnings.warn(facts["text"], stacklevel=1)
    logging.getLogger().error(facts["text"])
    raise ValueError(facts["text"])


class Telling:
    """Tasks that are texts, which a worker prints."""

    carry_out = staticmethod(tell_and_fail)

    def order(self, task: str, scratch: Scratch) -> Facts:
        return {"text": task}

    def outcome(self, task: str, facts: Facts, scratch: Scratch) -> Facts:
        return facts


def _stored(pid: int) -> Iterator[tuple[str, bytes]]:
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            if "plasma" in os.readlink(handle):
                yield f"objects of {pid}", handle.read_bytes()


def _processes() -> Iterator[tuple[int, bytes]]:
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with suppress(OSError):
                yield int(place.name), (place / "cmdline").read_bytes()


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return 0


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
