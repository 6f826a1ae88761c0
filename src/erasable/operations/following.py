"""Waiting for the worker: what it does just now is shown as if it were done here."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from erasable.operations.reporting import Reporter
from erasable.requests.lease import holder_of
from erasable.requests.progress import Progress, read_progress
from erasable.requests.queue import Queue

_LOOK_SECONDS = 0.5


def wait_for(queue: Queue, request_ids: Sequence[str], reporter: Reporter) -> bool:
    """Wait until requests have ended, failed or were put on hold; False if nobody works any more before that."""
    with _shown(reporter) as show:
        while _wait(queue, request_ids):
            if holder_of(queue.database) is None:
                return not _wait(queue, request_ids)  # it may have been done just before the lease was given back
            show(read_progress(queue.database))
            queue.database.wait(_LOOK_SECONDS)
    return True


def _wait(queue: Queue, request_ids: Sequence[str]) -> bool:
    """Whether any of these requests waits to be carried out, or is."""
    return any(one.open and one.state not in ("failed", "on hold") for one in queue.history.some(request_ids))


class _Shown:
    """Shows one step after the other."""

    def __init__(self, reporter: Reporter, steps: ExitStack) -> None:
        self._reporter = reporter
        self._steps = steps
        self._last: Progress | None = None
        self._advance = steps.enter_context(reporter.track("waiting for the worker"))

    def __call__(self, progress: Progress | None) -> None:
        if progress is None:
            return
        last = self._last
        if last is None or (last.batch, last.step, last.total) != (progress.batch, progress.step, progress.total):
            self._steps.close()
            self._advance = self._steps.enter_context(self._reporter.track(progress.step, progress.total))
            last = None
        self._advance(progress.done - (last.done if last else 0))
        self._last = progress


@contextmanager
def _shown(reporter: Reporter) -> Iterator[_Shown]:
    with ExitStack() as steps:
        yield _Shown(reporter, steps)
