"""How an operation runs: threads, progress, and executors, one of them with worker processes."""

import multiprocessing
import os
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

from erasable.chain.tasks import LOCAL, Executor
from erasable.errors import ErasableError, Refused, WrongUse, option
from erasable.grouping.points import GroupingEffort
from erasable.interrupts import kept_from_children
from erasable.models.base import Effort
from erasable.operations._ray import OnRay
from erasable.operations._ray import RayCluster as RayCluster  # others get it here
from erasable.progress import SILENT, Reporter
from erasable.workspace.scratch import Scratch

_SETTING = "PYTHONSAFEPATH"
_lock = threading.RLock()
_SPAWN = multiprocessing.get_context("spawn")
_LOOK_EVERY = 0.5
_END_WITHIN = 5.0
T = TypeVar("T")
R = TypeVar("R")


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


class HasScratch(Protocol):
    """A session with a place for the files of tasks that run elsewhere."""

    def scratch(self) -> AbstractContextManager[Scratch]:
        """Make a folder for them."""


@dataclass(frozen=True)
class Work:
    """How an operation runs: threads, the reporter of progress, and where tasks run; none of it changes a byte."""

    threads: int = field(default_factory=available_cores)
    reporter: Reporter = SILENT
    executor: Executor = LOCAL
    cluster: RayCluster | None = None
    """Where Ray runs; tasks run on it instead of by the executor."""

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise WrongUse(f"{self.threads} threads make no sense: give 1 or more")

    @property
    def grouping(self) -> GroupingEffort:
        """How users are grouped."""
        return GroupingEffort(self.threads, self.reporter)

    @contextmanager
    def tasks_of(self, session: HasScratch) -> Iterator[Executor]:
        """Yield what runs the tasks of a session; their files lie in its workspace meanwhile."""
        if self.cluster is None:
            yield self.executor
        else:
            with on_cluster(self.cluster, session) as executor:
                yield executor

    @contextmanager
    def training(self, label: str, samples: int) -> Iterator[Effort]:
        """Show the progress of training that visits so many samples."""
        with self.reporter.track(label, samples) as advance:
            yield Effort(self.threads, advance)


QUIET_WORK = Work()


@contextmanager
def on_cluster(cluster: RayCluster, session: HasScratch) -> Iterator[OnRay]:
    """Yield what runs the tasks of a session on a cluster; their files lie in its workspace meanwhile."""
    with session.scratch() as scratch, cluster.executor(scratch) as executor:
        yield executor


@contextmanager
def safe_path() -> Iterator[None]:
    """Keep processes that start in this block from importing modules from the working folder.

    Python puts the working folder first on the path for `-c` and `-m`, which is how worker processes start: a file
    `enum.py` in it would be run.
    """
    with _lock:
        before = os.environ.get(_SETTING)
        os.environ[_SETTING] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_SETTING]
            else:
                os.environ[_SETTING] = before


class Processes:
    """The executor for long tasks: they run in worker processes, and results come as they are ready.

    Tasks with the same key share their preparation and run in the same process, one after another. `watch` is called
    with the running tasks at each change and now and then.
    """

    def __init__(
        self, workers: int, watch: Callable[[Sequence[Any]], None], together: Callable[[Any], object] = id
    ) -> None:
        self._workers = workers
        self._watch = watch
        self._together = together

    def map(
        self, function: Callable[[T, Effort], R], tasks: Sequence[T], effort: Effort
    ) -> Generator[tuple[T, R], None, None]:
        """Yield each task with its result; the first failure ends them all."""
        batches: dict[object, list[tuple[int, T]]] = {}
        for place, task in enumerate(tasks):
            batches.setdefault(self._together(task), []).append((place, task))
        workers: list[BaseProcess] = []
        with safe_path():
            orders, news = _SPAWN.Queue(), _SPAWN.Queue()
        count = min(self._workers, len(batches))
        for order in (*batches.values(), *[None] * count):
            orders.put(order)
        try:
            for _ in range(count):
                worker = _SPAWN.Process(target=_work, args=(function, effort.threads, orders, news), daemon=True)
                with safe_path(), kept_from_children():
                    worker.start()
                workers.append(worker)
            for place, outcome in self._outcomes(tasks, news, workers, effort):
                yield tasks[place], outcome
        finally:
            orders.cancel_join_thread()  # orders that no worker took must not keep this process from ending
            for started in workers:
                started.terminate()
            for started in workers:
                started.join(_END_WITHIN)

    def _outcomes(
        self,
        tasks: Sequence[Any],
        news: Any,  # noqa: ANN401 - a queue of a context
        workers: Sequence[BaseProcess],
        effort: Effort,
    ) -> Iterator[tuple[int, Any]]:
        """Yield the place and the result of each task, until all have come."""
        left, running = len(tasks), dict[int, Any]()
        while left:
            match _next_news(news, workers):
                case ("began", place, _):
                    running[place] = tasks[place]
                case ("advanced", _, samples):
                    effort.advance(samples)
                case ("failed", place, reason):
                    raise Refused(f"{tasks[place]}: ", reason, "; finished results are kept")
                case ("done", place, outcome):
                    left -= 1
                    running.pop(place)
                    yield place, outcome
            self._watch(tuple(running.values()))


def _work(function: Callable[[Any, Effort], Any], threads: int, orders: Any, news: Any) -> None:  # noqa: ANN401 - queues
    """Run batches of tasks until there are no more."""
    while (batch := _next_order(orders)) is not None:
        for place, task in batch:
            news.put(("began", place, None))
            effort = Effort(threads, lambda samples, place=place: news.put(("advanced", place, samples)))  # type: ignore[misc]
            try:
                outcome = function(task, effort)
            except Exception as error:
                reason = error.said if isinstance(error, ErasableError) else f"{type(error).__name__}: {error}"
                news.put(("failed", place, reason))
                return
            news.put(("done", place, outcome))


def _next_order(orders: Any) -> list[tuple[int, Any]] | None:  # noqa: ANN401 - a queue of a context
    """Return the next batch; None if there is none left, or the parent process is gone."""
    parent = multiprocessing.parent_process()
    while parent is None or parent.is_alive():
        try:
            return orders.get(timeout=_LOOK_EVERY)
        except queue.Empty:
            continue
    return None


def _next_news(news: Any, workers: Sequence[BaseProcess]) -> tuple[str, int, Any] | None:  # noqa: ANN401 - a queue
    """Return the next message of a worker, None if there is none for now; refuse if a worker has died."""
    over = all(worker.exitcode is not None for worker in workers)  # asked first: its last message may still be read
    try:
        return news.get(timeout=_LOOK_EVERY)
    except queue.Empty:
        ended = [worker.exitcode for worker in workers if worker.exitcode]
        if ended:
            raise Refused(
                f"a worker process died (exit code {ended[0]}), perhaps out of memory: run the same command "
                "again, with fewer ",
                option("workers"),
                "; finished results are kept",
            ) from None
        if over:
            raise Refused("a worker could not send back a result: run the same command again") from None
        return None
