import threading

import pytest

from erasable.errors import WorkspaceBusy
from erasable.store.locks import exclusive_reader_lock, shared_reader_lock, writer_lock


def test_there_is_one_writer_at_a_time(tmp_path):
    with writer_lock(tmp_path), pytest.raises(WorkspaceBusy, match="wait for it"), writer_lock(tmp_path):
        pass
    with writer_lock(tmp_path):
        pass


def test_readers_share(tmp_path):
    with shared_reader_lock(tmp_path), shared_reader_lock(tmp_path):
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


def test_an_error_inside_the_lock_stays_what_it_is(tmp_path):
    with pytest.raises(BlockingIOError), writer_lock(tmp_path):
        raise BlockingIOError("not ours")


def test_a_reader_needs_no_lock_where_none_can_be_made(tmp_path):
    with shared_reader_lock(tmp_path / "missing"):
        pass
    assert list(tmp_path.iterdir()) == []
