"""Executors: where tasks are carried out; which one it is, and how many tasks run at once, changes no byte."""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import Protocol, TypeVar

from erasable.models import Effort

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Carries out tasks that do not follow from one another."""

    def map(self, function: Callable[[T, Effort], R], tasks: Sequence[T], effort: Effort) -> Iterator[tuple[T, R]]:
        """Yield each task with what a pure function makes of it.

        A function that leaves this process goes there pickled, and so do tasks and outcomes: a task takes its own
        inputs along, or only their names.
        """


class Local:
    """Carries out tasks in threads of this process, as many at once as there are threads; outcomes come in order."""

    def map(self, function: Callable[[T, Effort], R], tasks: Sequence[T], effort: Effort) -> Iterator[tuple[T, R]]:
        """Yield each task with what a function makes of it; one alone is carried out in the caller's own thread."""
        if len(tasks) == 1:
            yield tasks[0], function(tasks[0], effort)
            return
        at_once, stopped = max(1, min(effort.threads, len(tasks))), Event()
        share = Effort(max(1, effort.threads // at_once), _one_at_a_time(effort.advance, stopped))
        with ThreadPoolExecutor(at_once) as pool:
            try:
                running = [(task, pool.submit(function, task, share)) for task in tasks]
                for task, outcome in running:
                    yield task, outcome.result()
            except BaseException:
                stopped.set()
                pool.shutdown(cancel_futures=True)  # an interrupted user should not wait for the rest
                raise


LOCAL = Local()


class Following(Protocol):
    """Something to be carried out that has a name, and may follow from something else."""

    @property
    def name(self) -> str:
        """The name of what it makes."""

    @property
    def parent(self) -> str:
        """The name of what it follows from."""


F = TypeVar("F", bound=Following)


def in_turns(
    executor: Executor, function: Callable[[F, Effort], R], tasks: Sequence[F], effort: Effort
) -> Generator[tuple[F, R], None, None]:
    """Carry out stages, each after the one that it follows from; those that follow from none of the others at once."""
    waiting = list(tasks)
    while waiting:
        names = {task.name for task in waiting}
        yield from executor.map(function, [task for task in waiting if task.parent not in names], effort)
        waiting = [task for task in waiting if task.parent in names]


class _Stopped(Exception):
    """Ends a task whose outcome nobody wants any more."""


def _one_at_a_time(advance: Callable[[int], None], stopped: Event) -> Callable[[int], None]:
    lock = Lock()

    def call(samples: int) -> None:
        if stopped.is_set():
            raise _Stopped
        with lock:
            advance(samples)

    return call
