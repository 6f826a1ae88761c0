"""Stages that do not follow from one another, trained at the same time; how many at once changes no byte."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

from erasable.models import Effort

T = TypeVar("T")


def side_by_side(
    train: Callable[[int, Effort], T], positions: Sequence[int], effort: Effort
) -> Iterator[tuple[int, T]]:
    """Train the stages at these positions, as many at once as there are threads, and yield what each gives in order."""
    at_once = max(1, min(effort.threads, len(positions)))
    share = Effort(max(1, effort.threads // at_once), _one_at_a_time(effort.advance))
    with ThreadPoolExecutor(at_once) as pool:
        try:
            running = [(position, pool.submit(train, position, share)) for position in positions]
            for position, stage in running:
                yield position, stage.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)  # an interrupted user should not wait for the rest
            raise


def _one_at_a_time(advance: Callable[[int], None]) -> Callable[[int], None]:
    lock = Lock()

    def call(samples: int) -> None:
        with lock:
            advance(samples)

    return call
