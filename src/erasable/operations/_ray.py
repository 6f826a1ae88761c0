"""The executor that runs tasks on Ray: on a cluster, or in processes of this machine.

Ray gets paths, names, numbers and the key of a scratch folder of the workspace (`remote`), which all machines of the
cluster share. What is about people lies there, encrypted, and is gone with it.
"""

import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from erasable.chain.chain import BoundTask
from erasable.chain.tasks import numeric_environment
from erasable.errors import NotReproducible, Refused, WrongUse, option
from erasable.extensions import install_command
from erasable.interrupts import kept_from_children
from erasable.models.base import Effort
from erasable.operations.remote import CarryOut, RemoteStages, RemoteWork, failure, raise_failure
from erasable.workspace.scratch import Scratch, ScratchGone, is_held, locked

T = TypeVar("T")
R = TypeVar("R")
Answer = tuple[str, ...]
"""What a worker says through Ray: how it ended, and the name of a file, or what differs."""

_RETRIES = 3
_LOOK_EVERY = 0.2
_END_WITHIN = 1.0
_ANSWER_WITHIN = 10.0
_OBJECT_STORE = 80 * 2**20  # about the least that Ray takes; nothing large goes through it
_LONGEST_PLACE = 30  # of a temporary folder: the names of Ray's sockets, which are in it, may have 107 bytes
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_STANDARD_STREAMS = (1, 2)
_PLACE, _LOCK = "erasable-ray-", "lock"
_IN_NO_STAGE = ("gensim",)


@dataclass(frozen=True)
class RayCluster:
    """Where Ray runs: at an address, or on this machine, started for one command."""

    address: str | None = None
    threads: int | None = None
    """The most threads of a task; on this machine also of all tasks together."""

    @staticmethod
    def at(address: str | None, threads: int | None) -> "RayCluster":
        """Return a cluster, once it is clear that Ray is installed and that somebody answers there."""
        if find_spec("ray") is None:
            raise _missing()
        if address is not None:
            _refuse_unreachable(address)
        return RayCluster(address, threads)

    @contextmanager
    def executor(self, scratch: Scratch) -> Iterator["OnRay"]:
        """Connect, check the numeric environment of every node, and yield an executor; disconnect afterwards."""
        with _connected(self) as ray:
            yield OnRay(ray, scratch, _checked_nodes(ray), self.threads)


class OnRay:
    """Runs tasks that can be written down on Ray; results come in order."""

    def __init__(self, ray: Any, scratch: Scratch, cores: Sequence[int], threads: int | None) -> None:  # noqa: ANN401
        self._ray = ray
        self._scratch = scratch
        self._cores = cores
        self._threads = threads
        self._stages = RemoteStages()

    def map(
        self, function: Callable[[T, Effort], R], tasks: Sequence[T], effort: Effort
    ) -> Generator[tuple[T, R], None, None]:
        """Yield each stage of a chain with its result."""
        if not all(isinstance(task, BoundTask) for task in tasks):
            raise WrongUse("this can't be run on Ray: leave out ", option("executor"))
        stages: RemoteWork[Any, Any] = self._stages
        yield from self.run(stages, tasks, effort)

    def run(self, work: RemoteWork[T, R], tasks: Sequence[T], effort: Effort) -> Generator[tuple[T, R], None, None]:
        """Yield each task with its result; what still runs when the caller stops is stopped too."""
        threads = self._share(len(tasks))
        remote = self._ray.remote(num_cpus=threads, max_retries=_RETRIES)(carry_out_order)
        followed, running, answers = _Followed(self._scratch, effort.advance), dict[Any, int](), dict[int, Answer]()
        environment, yielded = _environment(), 0
        try:
            for place, task in enumerate(tasks):
                order = self._scratch.put_facts("order.json", work.order(task, self._scratch))
                followed.names[place] = order
                given = (str(self._scratch.root), self._scratch.below, self._scratch.key, order)
                running[remote.remote(work.carry_out, given, threads, environment)] = place
            while running:
                ended = self._ray.wait([*running], timeout=_LOOK_EVERY)[0]
                followed.look(running.values())
                for ready in ended:
                    answers[running.pop(ready)] = self._answer(ready)
                while yielded in answers:
                    facts = self._facts(answers.pop(yielded), tasks[yielded])
                    yield tasks[yielded], work.outcome(tasks[yielded], facts, self._scratch)
                    yielded += 1
        finally:
            self._stop([*running])

    def _share(self, tasks: int) -> int:
        """Return how many threads each of some tasks gets: all of a node, or fewer where tasks share one."""
        share = max(1, min(max(self._cores), sum(self._cores) // max(1, tasks)))
        return min(share, self._threads or share)

    def _answer(self, ready: Any) -> Answer:  # noqa: ANN401 - Ray's own
        try:
            found: Answer = self._ray.get(ready)
            return found
        except (
            self._ray.exceptions.WorkerCrashedError,
            self._ray.exceptions.OutOfMemoryError,
            self._ray.exceptions.NodeDiedError,
        ):
            return ("died",)
        except self._ray.exceptions.RayError as error:
            return ("broken", type(error).__name__, " ".join(str(error).split("\n")[-1:]))

    def _facts(self, answer: Answer, task: object) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return what came of a task; raise what went wrong."""
        match answer:
            case ("done", name):
                return self._scratch.facts(name)
            case ("failed", name):
                raise_failure(self._scratch.facts(name))
            case ("gone",):
                raise ScratchGone
            case ("absent", node):
                root = self._scratch.root
                raise Refused(f"{root} is not there on {node}: put the workspace where every node sees it as {root}")
            case ("differs", node, *differences):
                raise _refused(node, differences)
            case ("unwritten", node, kind):
                root = self._scratch.root
                raise Refused(f"{root} can't be written on {node} ({kind}): make room there, and see that it may")
            case ("died",):
                raise Refused(
                    f"{task}: a worker died {_RETRIES + 1} times, perhaps out of memory: give it more, or fewer ",
                    option("threads"),
                )
        raise Refused(f"{task}: Ray could not run it ({': '.join(answer[1:])}): check that the nodes can load erasable")

    def _stop(self, running: Sequence[Any]) -> None:
        """End tasks that still run, so that none writes any more."""
        if running:
            with suppress(Exception):  # the cluster may be gone
                for one in running:
                    self._ray.cancel(one, force=True)
                self._ray.wait(list(running), num_returns=len(running), timeout=_END_WITHIN)


class _Followed:
    """Adds up the samples that tasks have visited, by the files in which their workers count them."""

    def __init__(self, scratch: Scratch, advance: Callable[[int], None]) -> None:
        self._scratch = scratch
        self._advance = advance
        self._seen: dict[str, int] = {}
        self.names: dict[int, str] = {}
        """The order of each task, by its place."""

    def look(self, places: Iterable[int]) -> None:
        """Report what is new of some tasks; one that is tried again is silent until it is further than before."""
        for name in (self.names[place] for place in places):
            with suppress(OSError, ValueError):
                now = int((self._scratch.folder / _counting(name)).read_bytes() or b"0")
                if now > self._seen.get(name, 0):
                    self._advance(now - self._seen.get(name, 0))
                    self._seen[name] = now


def _counting(order: str) -> str:
    return f"{order}.samples"


class _Counter:
    """Writes down how many samples were visited, now and then."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._samples = 0
        self._written = 0.0

    def __call__(self, samples: int) -> None:
        with self._lock:
            self._samples += samples
            if time.monotonic() - self._written > _LOOK_EVERY:
                self.write()

    def write(self) -> None:
        """Write the number."""
        self._written = time.monotonic()
        with suppress(OSError):
            self._path.write_bytes(b"%d" % self._samples)


def carry_out_order(
    carry_out: CarryOut, given: tuple[str, str, bytes, str], threads: int, environment: Mapping[str, str]
) -> Answer:
    """Carry out an order in a worker of Ray; nothing is printed, and nothing is raised."""
    root, below, key, order = given
    with _silent():
        differences = _differences(environment)
        if differences:
            return ("differs", _node(), *differences)
        if not Path(root).is_dir():
            return ("absent", _node())
        scratch = Scratch(Path(root), below, key)
        try:
            return ("done", _carried_out(carry_out, scratch, order, threads))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return _reported(scratch, error)


def _reported(scratch: Scratch, error: BaseException) -> Answer:
    """Write a failure down, and answer where; what it says may name people."""
    try:
        return ("failed", scratch.put_facts("failed.json", failure(error)))
    except ScratchGone:
        return ("gone",)
    except Exception as unwritten:
        return ("unwritten", _node(), type(unwritten).__name__)


def _carried_out(carry_out: CarryOut, scratch: Scratch, order: str, threads: int) -> str:
    counter = _Counter(scratch.folder / _counting(order))
    facts = carry_out(scratch, scratch.facts(order), Effort(threads, counter))
    counter.write()
    return scratch.put_facts("outcome.json", facts)


@contextmanager
def _silent() -> Iterator[None]:
    """Keep everything that is printed, by Python or by compiled code, out of Ray's logs."""
    with ExitStack() as stack:
        nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number in _STANDARD_STREAMS:
            before = os.dup(number)
            stack.callback(os.close, before)
            stack.callback(os.dup2, before, number)
            os.dup2(nowhere.fileno(), number)
        stack.enter_context(redirect_stdout(nowhere))
        stack.enter_context(redirect_stderr(nowhere))
        yield


def _node() -> str:
    return socket.gethostname()


def _environment() -> dict[str, str]:
    return {name: value for name, value in numeric_environment().items() if name not in _IN_NO_STAGE}


def _differences(expected: Mapping[str, str]) -> list[str]:
    """Say how the numeric environment of this process differs from that of the command."""
    here = _environment()
    names = sorted({*here, *expected})
    return [
        f"{name} is {here.get(name, 'absent')} there and {expected.get(name, 'absent')} here"
        for name in names
        if here.get(name) != expected.get(name)
    ]


def check_worker(environment: Mapping[str, str]) -> Answer:
    """Return the name of this node, and how it differs from the command's process."""
    with _silent():
        return (_node(), *_differences(environment))


def _refused(node: str, differences: Sequence[str]) -> NotReproducible:
    return NotReproducible(
        f"the worker on {node} would not give the same bytes ({'; '.join(differences)}): give it the same versions and "
        "the same kind of processor, or leave it out of the cluster"
    )


def _checked_nodes(ray: Any) -> list[int]:  # noqa: ANN401 - Ray's own
    """Return how many cores each node has, once a worker on each has shown that it gives the same bytes."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = {one["NodeID"]: int(one["Resources"].get("CPU", 0)) for one in ray.nodes() if one["Alive"]}
    cores = {node: count for node, count in nodes.items() if count}
    if not cores:
        raise Refused("no node of the Ray cluster has a processor to give: add one")
    checks = [
        ray.remote(num_cpus=0, max_retries=_RETRIES)(check_worker)
        .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False))
        .remote(_environment())
        for node in cores
    ]
    try:
        for name, *differences in ray.get(checks):
            if differences:
                raise _refused(name, differences)
    except ray.exceptions.RayError as error:
        raise Refused(
            f"a node of the Ray cluster can't run erasable ({type(error).__name__}): install the same version there, "
            "with the extra ray"
        ) from None
    return list(cores.values())


@contextmanager
def _connected(cluster: RayCluster) -> Iterator[Any]:
    """Connect to a cluster, or start Ray on this machine and end it afterwards; a connection that is there is used."""
    address = cluster.address
    if address is None:  # before Ray is imported, which reads them; else it leaves a token in the home folder
        too_late = "ray" in sys.modules and os.environ.get("RAY_AUTH_MODE") != "token"
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", _token())
    ray = _imported(loopback=address is None or address.rsplit(":", 1)[0] in _LOOPBACK)
    if address is None and too_late and not ray.is_initialized():
        raise Refused(
            "Ray was imported before: call ray.init() first, whose cluster is used then, or give ", option("address")
        )
    if ray.is_initialized():
        _refuse_another(ray, address)
        yield ray
        return
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's, about its own future
        ways: dict[str, Any] = {"address": address}
        if address is None:
            ways = {"address": "local", "_temp_dir": stack.enter_context(own_place()), "include_dashboard": False}
            ways |= {"num_cpus": cluster.threads or len(os.sched_getaffinity(0)), "object_store_memory": _OBJECT_STORE}
        stack.callback(ray.shutdown)
        try:
            with kept_from_children():  # else Ctrl-C ends Ray's processes before this one has stopped their tasks
                ray.init(**ways, log_to_driver=False, configure_logging=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError) as error:
            why = " ".join(str(error).split())
            raise Refused(f"Ray can't be reached at {address or 'this machine'}: {why}") from None
        yield ray


def _refuse_another(ray: Any, address: str | None) -> None:  # noqa: ANN401 - Ray's own
    """Refuse an address if this process is connected to another cluster."""
    connected = ray.get_runtime_context().gcs_address
    if address is not None and _resolved(address) != _resolved(connected):
        raise Refused(
            f"this process is connected to the Ray cluster at {connected}: leave out ",
            option("address"),
            " to use that, or call ray.shutdown() first",
        )


def _resolved(address: str) -> tuple[str, str]:
    host, _, port = address.rpartition(":")
    with suppress(OSError):
        host = socket.gethostbyname(host)
    return host, port


@contextmanager
def own_place() -> Iterator[str]:
    """Make a temporary folder for Ray's own files, and remove those of commands that were killed."""
    inside = "/tmp" if len(tempfile.gettempdir()) > _LONGEST_PLACE else tempfile.gettempdir()  # noqa: S108
    for left in Path(inside).glob(f"{_PLACE}*"):
        with suppress(OSError):  # another command may be removing it
            if left.stat().st_uid == os.getuid() and (left / _LOCK).exists() and not is_held(left / _LOCK):
                _remove_place(left)
    place = tempfile.mkdtemp(prefix=_PLACE, dir=inside)
    handle = locked(Path(place, _LOCK))
    try:
        yield place
    finally:
        _remove_place(Path(place))
        if handle is not None:
            os.close(handle)


def _remove_place(place: Path) -> None:
    """Remove such a folder, its lock last: one that is left in part must still be known as one of ours."""
    for inside in place.iterdir():
        if inside.name != _LOCK:
            shutil.rmtree(inside, ignore_errors=True) if inside.is_dir() else inside.unlink(missing_ok=True)
    shutil.rmtree(place, ignore_errors=True)


def _refuse_unreachable(address: str) -> None:
    """Refuse an address where nobody answers: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), _ANSWER_WITHIN):
            return
    except ValueError:
        raise WrongUse(option("address", address), " is no address of a cluster: give HOST:PORT") from None
    except OSError as error:
        raise Refused(
            f"no Ray cluster answers at {address} ({error.strerror or error}): start one there with ray start, or ",
            "leave out ",
            option("address"),
        ) from None


def _imported(loopback: bool) -> Any:  # noqa: ANN401 - Ray's own
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "(?s).*")  # else Ray prints about workers on standard output
    if loopback and "ray" not in sys.modules:
        # Ray puts this machine's outer address in the place of the loopback unless its clusters are off, a switch that
        # it has for other systems. With the loopback it also listens there only.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ImportError:
        raise _missing() from None
    return ray


def _missing() -> WrongUse:
    return WrongUse(option("executor", "ray"), f" needs Ray: {install_command('ray')}")


@cache
def _token() -> str:
    return secrets.token_hex(32)
