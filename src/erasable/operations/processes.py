"""Processes of ours, which import nothing from the folder that they are started in, and tasks carried out by them."""

import multiprocessing
import os
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from erasable.errors import ErasableError, Refused, option
from erasable.interrupts import kept_from_children
from erasable.models import Effort

_SETTING = "PYTHONSAFEPATH"
_lock = threading.RLock()
_SPAWN = multiprocessing.get_context("spawn")
_LOOK_EVERY = 0.5
_END_WITHIN = 5.0

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def safe_path() -> Iterator[None]:
    """Have what is started during a block import nothing from where it stands.

    Python puts the working folder before everything else for `-c` and `-m`, which is how worker processes are started:
    an `enum.py` that somebody put there would be run.
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
    """The executor of tasks that take long: each runs in one of some processes, and outcomes come as they are done.

    Tasks with the same key share what they need and go to the same process, one after another. Who watches is told
    which tasks are running, at each change and now and then.
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
        """Yield each task with what a function makes of it; the first that fails ends them all."""
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
            orders.cancel_join_thread()  # what no worker has taken must not keep this process from ending
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
        """Yield the place and the outcome of each task, until all have come."""
        left, running = len(tasks), dict[int, Any]()
        while left:
            match _next_news(news, workers):
                case ("began", place, _):
                    running[place] = tasks[place]
                case ("advanced", _, samples):
                    effort.advance(samples)
                case ("failed", place, reason):
                    raise Refused(f"{tasks[place]}: ", reason, "; what is finished stays")
                case ("done", place, outcome):
                    left -= 1
                    running.pop(place)
                    yield place, outcome
            self._watch(tuple(running.values()))


def _work(function: Callable[[Any, Effort], Any], threads: int, orders: Any, news: Any) -> None:  # noqa: ANN401 - queues
    """Carry out batches of tasks until there are no more."""
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
    """Return the next batch; none if there is none, or nobody left who would hear of it."""
    parent = multiprocessing.parent_process()
    while parent is None or parent.is_alive():
        try:
            return orders.get(timeout=_LOOK_EVERY)
        except queue.Empty:
            continue
    return None


def _next_news(news: Any, workers: Sequence[BaseProcess]) -> tuple[str, int, Any] | None:  # noqa: ANN401 - a queue
    """Return what a worker says next; none if none says anything for now. One that ended by itself is noticed."""
    over = all(worker.exitcode is not None for worker in workers)  # asked first: its last words may still be read
    try:
        return news.get(timeout=_LOOK_EVERY)
    except queue.Empty:
        ended = [worker.exitcode for worker in workers if worker.exitcode]
        if ended:
            raise Refused(
                f"a worker ended by itself (exit code {ended[0]}), perhaps for want of memory: run the same command "
                "again, with fewer ",
                option("workers"),
                "; what is finished stays",
            ) from None
        if over:
            raise Refused("an outcome could not be sent back by a worker: run the same command again") from None
        return None
