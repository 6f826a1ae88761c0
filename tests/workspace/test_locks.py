import errno
import fcntl
import os
import threading
import time

import pytest

from erasable.errors import WorkspaceBusy
from erasable.workspace import Workspace
from erasable.workspace.files import exclusive_reader_lock, shared_reader_lock, writer_lock


def test_there_is_one_writer_at_a_time(tmp_path):
    with writer_lock(tmp_path), pytest.raises(WorkspaceBusy, match="wait for it"), writer_lock(tmp_path):
        pass
    with writer_lock(tmp_path):
        pass


def test_readers_share(tmp_path):
    with shared_reader_lock(tmp_path), shared_reader_lock(tmp_path):
        pass


def test_they_hold_on_nfs(tmp_path, monkeypatch):
    """Its flock is one of fcntl, which wants a handle that can be written to if others are to be kept out."""
    flock = fcntl.flock

    def of_nfs(handle, mode):
        how = fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE
        if how == (os.O_RDONLY if mode & fcntl.LOCK_EX else os.O_WRONLY):
            raise OSError(errno.EBADF, "Bad file descriptor")
        flock(handle, mode)

    monkeypatch.setattr(fcntl, "flock", of_nfs)
    with writer_lock(tmp_path), exclusive_reader_lock(tmp_path):
        pass
    with shared_reader_lock(tmp_path):
        pass


def test_a_change_of_version_waits_for_readers(tmp_path):
    order = []

    def change():
        with exclusive_reader_lock(tmp_path):
            order.append("changed")

    with shared_reader_lock(tmp_path):
        writer = threading.Thread(target=change)
        writer.start()
        writer.join(0.05)
        order.append("read")
    writer.join()
    assert order == ["read", "changed"]


def test_a_reader_who_comes_while_a_change_of_version_waits_is_let_in_after_it(tmp_path):
    order = []

    def change():
        with exclusive_reader_lock(tmp_path):
            order.append("changed")

    def read():
        with shared_reader_lock(tmp_path):
            order.append("read")

    writer, reader = threading.Thread(target=change), threading.Thread(target=read)
    with shared_reader_lock(tmp_path):
        writer.start()
        _wait_until_held(tmp_path / "gate.lock")
        reader.start()
        reader.join(0.05)
    writer.join()
    reader.join()
    assert order == ["changed", "read"]


def _wait_until_held(path) -> None:
    last = time.monotonic() + 20
    while time.monotonic() < last:
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return
    pytest.fail(f"nobody holds {path}")


def test_readers_who_overlap_for_good_do_not_keep_a_commit_from_ending(versions, learned):
    entered, done, news = [0], threading.Event(), threading.Condition()

    def read_until_the_next_is_inside():
        while not done.is_set():
            with Workspace.reading(learned), news:
                entered[0] += 1
                news.notify_all()
                # The next one stands outside while a commit waits; only then does this time pass.
                news.wait_for(lambda mine=entered[0]: entered[0] > mine, timeout=0.3)

    readers = [threading.Thread(target=read_until_the_next_is_inside) for _ in range(3)]
    writer = threading.Thread(target=lambda: versions.forget(learned), daemon=True)
    for reader in readers:
        reader.start()
    try:
        with news:
            assert news.wait_for(lambda: entered[0] > 3, timeout=60)
        writer.start()
        writer.join(20)
        assert not writer.is_alive(), "the commit still waits"
    finally:
        done.set()
        for reader in readers:
            reader.join()
    with Workspace.reading(learned) as workspace:
        assert workspace.stamp.version == 2


def test_an_error_inside_the_lock_stays_what_it_is(tmp_path):
    with pytest.raises(BlockingIOError), writer_lock(tmp_path):
        raise BlockingIOError("not ours")


def test_a_reader_needs_no_lock_where_none_can_be_made(tmp_path):
    with shared_reader_lock(tmp_path / "missing"):
        pass
    assert list(tmp_path.iterdir()) == []
