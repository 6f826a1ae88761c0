"""A server looks at the queue and loads versions side by side: whoever asks is not served, however long that takes."""

import threading
from datetime import UTC, datetime

import pytest

from erasable.errors import SuppressionUnknown, UnknownUser
from erasable.operations import DiskStorage, forget
from erasable.operations.live import Live
from erasable.requests import Request
from erasable.service import _running as running
from erasable.service._service import Service
from erasable.workspace.files import QUEUE_FILE


@pytest.fixture
def following(shop):
    """Run the threads that follow, as a server does."""
    stop = threading.Event()
    threads = [threading.Thread(target=one, args=(shop, stop)) for one in (running._suppress, running._follow)]
    for thread in threads:
        thread.start()
    yield
    stop.set()
    for thread in threads:
        thread.join()


def test_who_asks_elsewhere_is_not_served_while_a_version_is_loaded(shop, following, monkeypatch):
    loading, loaded = threading.Event(), threading.Event()
    reread = Live._reread

    def slowly(live, before):
        loading.set()
        assert loaded.wait(60)
        return reread(live, before)

    monkeypatch.setattr(Live, "_reread", slowly)
    try:
        forget(DiskStorage(shop.folder), [Request("eve")])
        assert loading.wait(60)
        other = Service.open(shop.folder)
        other.queue.submit(Request("ann"), True, "application 1", datetime.now(UTC))
        other.database.close()
        for _ in range(600):  # half a minute, on a busy machine
            if shop.live.suppresses("ann"):
                break
            threading.Event().wait(0.05)
        assert not loaded.is_set()
        with pytest.raises(UnknownUser):
            shop.live.recommend("ann", 1)
        assert shop.live.version == 1
    finally:
        loaded.set()


def removed(path):
    path.unlink()


def emptied(path):
    path.write_bytes(b"")


def put_back(path):
    """Put a copy in its place, as whoever restores it does."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize("lose", [removed, emptied, put_back])
def test_once_the_queue_is_lost_nobody_is_served_and_each_answer_says_what_to_do(shop, following, lose, client):
    visitor, anyone = client("application"), client()
    assert visitor.get("/v1/recommendations/ann").status_code == 200
    shop.live.suppress(["bob"])
    assert shop.live.recommend("ann", 1).ranked
    shop.database.wipe()
    lose(shop.folder / QUEUE_FILE)
    for _ in range(600):  # half a minute, on a busy machine
        if not shop.live.is_serving:
            break
        threading.Event().wait(0.05)
    with pytest.raises(SuppressionUnknown):
        shop.live.recommend("ann", 1)
    asking = visitor.post("/v1/erasure-requests", json={"user_id": "ann"})
    for answer in (visitor.get("/v1/recommendations/ann"), asking):
        assert (answer.status_code >= 500, "erasable status" in answer.json()["detail"]) == (True, True), answer.text
    ready = anyone.get("/readyz")
    assert (ready.status_code, ready.json()["serving"]) == (503, False)
    assert "nobody is served: run erasable status" in ready.json()["problem"]
