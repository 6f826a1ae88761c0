"""The log is read once for each version, and what is wrong with it is told."""

import pytest

from erasable.operations import DiskStorage
from erasable.service.web._overview import LogWatch
from kit.small_shop import forget_in


@pytest.fixture
def watch(shop) -> LogWatch:
    return LogWatch(DiskStorage(shop.folder))


def test_records_are_those_of_the_workspace(watch, shop, users):
    assert [record["what"] for record in watch.state().records] == ["learn"]
    forget_in(shop.folder, users[0])
    assert [record["what"] for record in watch.state().records] == ["learn", "forget"]
    assert watch.state().fault is None


def test_chain_is_read_once_for_each_version(watch, monkeypatch):
    first = watch.state()
    monkeypatch.setattr("erasable.service.web._overview.documents_fault", lambda documents, issued: 1 / 0)
    assert watch.state() is first


def test_changed_chain_is_noticed(watch, shop):
    chain = next(shop.folder.glob("audit*"))
    chain.write_bytes(chain.read_bytes().replace(b"learn", b"learm", 1))
    state = watch.state()
    assert "audit" in state.fault
    assert state.records == ()
