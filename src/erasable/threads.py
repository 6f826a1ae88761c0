"""Threads that share out work without writing anything; whoever presses Ctrl-C does not wait for them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def pool_of(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Give a pool of threads for a block; an error waits for what has begun, Ctrl-C for nothing.

    What has begun may be seconds of compiling or computing, and nobody uses its outcome any more. Work that writes
    files is none for this pool: it would go on after the lock is gone.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    except BaseException as error:
        pool.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
        raise
    pool.shutdown()
