"""A pool of threads for work that writes no files; Ctrl-C does not wait for it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def pool_of(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Yield a pool of threads; an error waits for running work, Ctrl-C does not.

    Running work may take seconds, and its result is no longer needed. Don't write files in this pool: that would go on
    after the lock is released.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    except BaseException as error:
        pool.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
        raise
    pool.shutdown()
