"""A small shop behind the erasure service: requests are filed, carried out here, and found to have ended right."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from erasable.operations import DiskStorage, status
from erasable.operations._vocabulary import own_vocabulary
from erasable.requests import Request
from erasable.requests.database import Database
from erasable.requests.opening import open_database
from erasable.requests.queue import Queue
from erasable.requests.tokens import Role, Tokens
from erasable.scan import Target, scan_folder
from erasable.service._service import Service
from erasable.service._worker import Worker, WorkerOptions
from erasable.service.settings import Clock, ServiceSettings, universal_time
from erasable.workspace import Workspace
from erasable.workspace.files import QUEUE_FILES
from kit import small_shop

AT_ONCE = ServiceSettings(batch_window=0, attempts=1000, lease_seconds=2, retry_seconds=0, daily_share=1)


def learn(path: Path, users: int = 60) -> Path:
    """Learn a small shop."""
    return small_shop.learn_shop(path, small_shop.table(users, 30))


def people_in(path: Path) -> list[str]:
    """Return everyone whom a shop knows."""
    with Workspace.reading(path) as workspace:
        return sorted(user for group in workspace.state().dataset.groups for user in group.users)


def last_person_in(path: Path) -> str:
    """Return somebody in the last group of a shop."""
    with Workspace.reading(path) as workspace:
        return max(workspace.state().dataset.groups[-1].users)


@contextmanager
def database_of(path: Path) -> Iterator[Database]:
    """Open the queue of a workspace."""
    with closing(open_database(path)) as database:
        yield database


def new_token(path: Path, role: Role) -> str:
    """Make a token, and return its secret."""
    with database_of(path) as database:
        return Tokens(database).create(role, "", universal_time())[1]


def file_requests(path: Path, *requests: Request) -> list[str]:
    """Take requests in, and return their ids."""
    shop = Service.open(path, AT_ONCE)
    with closing(shop.database):
        return [shop.reception.submit(request, "someone").request_id for request in requests]


def later() -> datetime:
    """Return the time once every batch window is over."""
    return universal_time() + timedelta(days=8)


def work_off(
    path: Path,
    settings: ServiceSettings = AT_ONCE,
    clock: Clock = universal_time,
) -> None:
    """Do all that there is to do, as a worker in this process."""
    worker = Worker(WorkerOptions(path, settings, threads=1, clock=clock))
    with closing(worker.database):
        while worker.step():
            pass
        worker.lease.release()


def states(path: Path) -> dict[str, list[str]]:
    """Return the states that each request went through."""
    with database_of(path) as database:
        events = reversed(Queue(database).history.events(limit=1_000_000))
    found: dict[str, list[str]] = {}
    for event in events:
        if event.request_id is not None and event.state is not None:
            found.setdefault(event.request_id, []).append(event.state)
    return found


def require_erased_once(path: Path, request_ids: Sequence[str], people: Sequence[str]) -> None:
    """Require that requests ended once, with one certificate each, and that nobody is found in any file."""
    for request_id, states_of_it in states(path).items():
        assert states_of_it[-1] == "erased", f"{request_id} went through {states_of_it}"
        assert states_of_it.count("erased") == 1
    assert sorted(states(path)) == sorted(request_ids)
    assert sorted(file.stem for file in path.glob("certificates/*.json")) == sorted(request_ids)
    found = status(DiskStorage(path))
    assert (found["pending"], found["erasures"]) == (0, len(request_ids))
    unnamed = [name for name in small_shop.unnamed_files(path) if name not in QUEUE_FILES]
    assert unnamed == [], f"left behind: {unnamed}"
    assert scan_folder(path, [Target(person) for person in people], own_vocabulary()).clean
