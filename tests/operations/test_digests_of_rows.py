"""Digests of rows that have no salt stay in memory: nothing that is written, told or shown has one."""

import json
import logging
from dataclasses import asdict

import pytest

from erasable.operations import DiskHome, Work, forget, learn, plan, verify
from erasable.operations.reporting import LibraryReporter
from erasable.requests import Request
from erasable.training import Config, Earlier, scheduled

WAYS = {"ease": {"model": "ease"}, "nmf": {"model": "nmf", "groups": 2, "epochs": 2}}


@pytest.fixture(params=WAYS)
def home(request, table, tmp_path):
    learn(table, tmp_path / "shop", Config(**WAYS[request.param]))
    return DiskHome(tmp_path / "shop")


def digests_in(schedule) -> set[str]:
    """All digests of rows and items that a schedule has."""
    names = [task.rows for task in schedule.stages]
    names += [task.shortcut.rows for task in schedule.tasks if task.shortcut]
    return {digest for name in names for digest in asdict(name).values()}


def known_digests(home) -> set[str]:
    with home.reading() as session:
        state = session.state()
        return digests_in(scheduled(state.knowledge)) | digests_in(scheduled(state.knowledge, Earlier.of(state)))


def test_a_plan_shows_none(home):
    planned = plan(home, [Request("ann")])
    digests = digests_in(planned.schedule)
    assert len(digests) >= 2
    assert any(digest in json.dumps(asdict(planned)) for digest in digests)  # it has them, in memory
    shown = [repr(planned), repr(planned.schedule), *map(str, planned.tasks), *map(repr, planned.tasks)]
    shown += [repr(task.rows) for task in planned.tasks] + [repr(task.shortcut) for task in planned.tasks]
    assert [text for text in shown if any(digest in text for digest in digests)] == []


def test_nothing_that_is_written_or_logged_has_one(home, caplog):
    digests = known_digests(home) | digests_in(plan(home, [Request("ann")]).schedule)
    with caplog.at_level(logging.DEBUG):
        forget(home, [Request("ann")], work=Work(1, LibraryReporter()))
        verify(home)
    digests |= known_digests(home)
    assert len(digests) >= 3
    files = [path for path in home.path.parent.rglob("*") if path.is_file()]
    assert len(files) > 5
    held = [path.name for path in files for digest in digests if digest.encode() in path.read_bytes()]
    held += [path.name for path in files for digest in digests if digest in path.name]
    assert held == []
    assert not any(digest in caplog.text for digest in digests)
