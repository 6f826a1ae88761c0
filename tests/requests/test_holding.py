"""Keeping a lease: one failure to renew it does not lose it, and giving it back hides no other error."""

import time

import pytest

from erasable.errors import Refused, WorkspaceBusy
from erasable.requests.lease import Lease, holder_of, renewed


@pytest.fixture
def lease(database):
    taken = Lease(database, 0.6)
    assert taken.take()
    return taken


def test_it_is_renewed_after_the_queue_was_busy(database, lease, monkeypatch):
    tried, renew = [], lease.renew

    def busy_at_first():
        tried.append(1)
        if len(tried) == 1:
            raise WorkspaceBusy("the queue is busy: try again")
        renew()

    monkeypatch.setattr(lease, "renew", busy_at_first)
    with renewed(lease):
        until = time.monotonic() + 30
        while len(tried) < 3 and time.monotonic() < until:
            time.sleep(0.01)
        assert len(tried) >= 3
    assert holder_of(database) is None


def test_what_went_wrong_is_not_hidden_by_a_lease_that_can_not_be_given_back(lease, monkeypatch):
    def full():
        raise WorkspaceBusy("the disk is full")

    monkeypatch.setattr(lease, "release", full)
    with pytest.raises(Refused), renewed(lease):
        raise Refused("the first error")
