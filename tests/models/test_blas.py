from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from erasable.models.machine import one_blas_thread


def blas_threads():
    """Return how many threads each loaded BLAS would use."""
    return [library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()]


@pytest.fixture(autouse=True)
def two_threads_outside():
    with threadpool_limits(2, user_api="blas"):
        assert set(blas_threads()) == {2}
        yield
        assert set(blas_threads()) == {2}


def test_every_blas_runs_one_thread_inside_and_as_many_as_before_outside():
    with one_blas_thread():
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_both_copies_are_held_numpy_s_and_scipy_s():
    paths = [library["filepath"] for library in ThreadpoolController().select(user_api="blas").info()]
    assert any("numpy" in path for path in paths)
    assert any("scipy" in path for path in paths)


def test_an_error_inside_gives_the_threads_back():
    with pytest.raises(RuntimeError, match="inside"), one_blas_thread():
        raise RuntimeError("inside")
    assert set(blas_threads()) == {2}


def test_the_threads_come_back_when_the_last_one_leaves_in_whatever_order():
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert set(blas_threads()) == {2}


def test_any_thread_can_hold_blas_even_after_another_one_did():
    with one_blas_thread():
        pass

    def inside():
        with one_blas_thread():
            return blas_threads()

    with ThreadPoolExecutor(1) as pool:
        assert set(pool.submit(inside).result()) == {1}
    assert set(blas_threads()) == {2}


def test_the_threads_come_back_when_another_thread_leaves_last():
    context = one_blas_thread()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(context.__enter__).result()
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
        pool.submit(context.__exit__, None, None, None).result()
        assert set(blas_threads()) == {2}


def test_several_threads_may_be_inside_at_once():
    together = Barrier(4)

    def inside():
        with one_blas_thread():
            together.wait()
            seen = blas_threads()
            together.wait()
        return seen

    with ThreadPoolExecutor(4) as pool:
        seen = [finished.result() for finished in [pool.submit(inside) for _ in range(4)]]
    assert all(set(counts) == {1} for counts in seen)
