"""Threads that share out work: who waits for them, and who does not."""

import _thread
import signal
import threading

import pytest

from erasable.errors import DiskFull
from erasable.models._threads import run_on_threads
from erasable.threads import pool_of

_FOR_EVER = 60


def test_ctrl_c_waits_for_nothing_that_has_begun_and_begins_nothing_more():
    going_on, begun, more = threading.Event(), threading.Event(), []

    def work():
        begun.set()
        assert going_on.wait(_FOR_EVER)

    def interrupted():
        with pool_of(1) as pool:
            pool.submit(work)
            pool.submit(more.append, 1)
            begun.wait()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not going_on.is_set()
    going_on.set()
    assert more == []


def test_an_error_waits_for_what_has_begun():
    begun, done = threading.Event(), []

    def work():
        begun.set()
        threading.Event().wait(0.2)
        done.append(1)

    def failing():
        with pool_of(1) as pool:
            pool.submit(work)
            begun.wait()
            raise DiskFull

    with pytest.raises(DiskFull):
        failing()
    assert done == [1]


def test_a_crew_that_is_interrupted_does_not_work_off_the_rest():
    ended = threading.Event()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it

    def shift(control):
        _thread.interrupt_main()
        while control[0] == 0:
            threading.Event().wait(0.01)
        ended.set()

    try:
        with pytest.raises(KeyboardInterrupt):
            run_on_threads(2, shift)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.wait(_FOR_EVER)
