"""Digests of rows that have no salt stay in memory: nothing that is written, told or shown has one."""

import json
import logging
from dataclasses import asdict

import pytest

from erasable.chain import Config, Earlier, scheduled
from erasable.operations import DiskStorage, Work, forget, learn, plan, verify
from erasable.progress import LibraryReporter
from erasable.requests import Request

WAYS = {"ease": {"model": "ease"}, "nmf": {"model": "nmf", "groups": 2, "epochs": 2}}


@pytest.fixture(params=WAYS)
def storage(request, table, tmp_path):
    learn(table, tmp_path / "shop", Config(**WAYS[request.param]))
    return DiskStorage(tmp_path / "shop")


def digests_in(schedule) -> set[str]:
    """All digests of rows and items that a schedule has."""
    names = [task.rows for task in schedule.stages]
    names += [task.shortcut.rows for task in schedule.tasks if task.shortcut]
    return {digest for name in names for digest in asdict(name).values()}


def known_digests(storage) -> set[str]:
    with storage.reading() as session:
        state = session.state()
        return digests_in(scheduled(state.dataset)) | digests_in(scheduled(state.dataset, Earlier.of(state)))


def test_a_plan_shows_none(storage):
    planned = plan(storage, [Request("ann")])
    digests = digests_in(planned.schedule)
    assert len(digests) >= 2
    assert any(digest in json.dumps(asdict(planned)) for digest in digests)  # it has them, in memory
    shown = [repr(planned), repr(planned.schedule), *map(str, planned.tasks), *map(repr, planned.tasks)]
    shown += [repr(task.rows) for task in planned.tasks] + [repr(task.shortcut) for task in planned.tasks]
    assert [text for text in shown if any(digest in text for digest in digests)] == []


def test_nothing_that_is_written_or_logged_has_one(storage, caplog):
    digests = known_digests(storage) | digests_in(plan(storage, [Request("ann")]).schedule)
    with caplog.at_level(logging.DEBUG):
        forget(storage, [Request("ann")], work=Work(1, LibraryReporter()))
        verify(storage)
    digests |= known_digests(storage)
    assert len(digests) >= 3
    files = [path for path in storage.path.parent.rglob("*") if path.is_file()]
    assert len(files) > 5
    held = [path.name for path in files for digest in digests if digest.encode() in path.read_bytes()]
    held += [path.name for path in files for digest in digests if digest in path.name]
    assert held == []
    assert not any(digest in caplog.text for digest in digests)
