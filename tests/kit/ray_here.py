"""Ray's own words for work in this process: the same orders and files, at once and one after another."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from erasable.operations._ray import OnRay, RayCluster
from erasable.workspace.scratch import Scratch


class _Crashed(Exception):
    """A worker has died."""


class RayHere:
    """Runs what is submitted at once; what was passed and returned is kept, to be looked at."""

    exceptions = SimpleNamespace(RayError=_Crashed, WorkerCrashedError=_Crashed)

    def __init__(self) -> None:
        self.passed: list[object] = []
        self.cancelled = 0

    def remote(self, **options: object) -> Callable[[Callable[..., Any]], Any]:
        return lambda function: SimpleNamespace(remote=lambda *given: self._submit(function, given))

    def _submit(self, function: Callable[..., Any], given: tuple[object, ...]) -> int:
        self.passed.append((given, function(*given)))
        return len(self.passed) - 1

    def wait(self, running: Sequence[int], **options: object) -> tuple[list[int], list[int]]:
        return [*running], []

    def get(self, place: int) -> Any:
        return self.passed[place][1]

    def cancel(self, place: int, force: bool) -> None:
        self.cancelled += 1


class ClusterHere(RayCluster):
    """A cluster of this process alone."""

    def __init__(self, ray: RayHere) -> None:
        super().__init__()
        object.__setattr__(self, "ray", ray)

    @contextmanager
    def executor(self, scratch: Scratch) -> Iterator[OnRay]:
        yield OnRay(vars(self)["ray"], scratch, [1], None)
