"""Digests of rows that have no salt: those of slots lie beside the data and go with it, all others stay in memory.

Nothing else that is written, told or shown has one.
"""

import json
import logging
from dataclasses import asdict

import pyarrow.parquet as pq
import pytest

from erasable.chain import Config, Earlier, scheduled
from erasable.operations import DiskStorage, Work, forget, learn, plan, verify
from erasable.progress import LibraryReporter
from erasable.requests import Request
from kit.plain_digests import slot_digests

WAYS = {"ease": {"model": "ease"}, "nmf": {"model": "nmf", "groups": 2, "epochs": 2}}


@pytest.fixture(params=WAYS)
def storage(request, table, tmp_path):
    learn(table, tmp_path / "shop", Config(**WAYS[request.param]))
    return DiskStorage(tmp_path / "shop")


def digests_in(schedule) -> set[str]:
    """All digests of rows and items that a schedule has."""
    names = [task.rows for task in schedule.stages]
    names += [task.shortcut.rows for task in schedule.tasks if task.shortcut]
    return {
        digest for name in names for digest in asdict(name).values() if digest
    }  # "" where nothing is learned of items


def known_digests(storage) -> set[str]:
    with storage.reading() as session:
        state = session.state()
        return digests_in(scheduled(state.dataset)) | digests_in(scheduled(state.dataset, Earlier.of(state)))


def known_slots(storage) -> set[str]:
    with storage.reading() as session:
        return slot_digests(session.state().dataset)


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
    of_slots = known_slots(storage)
    with caplog.at_level(logging.DEBUG):
        forget(storage, [Request("ann")], work=Work(1, LibraryReporter()))
        verify(storage)
    digests |= known_digests(storage)
    assert len(digests) >= 3
    assert len(of_slots - known_slots(storage)) >= 2  # of everything, and of what shaped the model
    digests |= of_slots | known_slots(storage)
    files = [path for path in storage.path.parent.rglob("*") if path.is_file()]
    assert len(files) > 5
    held = [path.name for path in files for digest in digests if digest.encode() in path.read_bytes()]
    held += [path.name for path in files for digest in digests if bytes.fromhex(digest) in path.read_bytes()]
    held += [path.name for path in files for digest in digests if digest in path.name]
    assert [name for name in held if not name.startswith("slots-")] == []
    tables = {path.name: pq.read_table(path) for path in files if path.suffix == ".parquet"}
    cells = {
        (name, cell.hex())
        for name, table in tables.items()
        for column in table.columns
        for cell in column.to_pylist()
        if isinstance(cell, bytes)
    }
    assert {name.split("-")[0] for name, cell in cells if cell in digests} == {"slots"}
    assert {cell for _, cell in cells if cell in digests} == known_slots(storage)  # none as it was before
    assert not any(digest in caplog.text for digest in digests)
