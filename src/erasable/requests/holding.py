"""Keeping a lease while something is carried out."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from erasable.errors import ErasableError
from erasable.requests.lease import Lease

Tell = Callable[[str, Exception | None], None]


def _untold(what: str, error: Exception | None) -> None:
    """Tell nobody."""


@contextmanager
def renewed(lease: Lease) -> Iterator[None]:
    """Renew a lease that was taken as long as a block runs, and give it back at its end."""
    over = threading.Event()
    thread = threading.Thread(target=keep_renewing, args=(lease, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        give_back(lease)


def keep_renewing(lease: Lease, over: threading.Event, tell: Tell = _untold) -> None:
    """Keep a lease until it is over, and end who had it before and is frozen: whoever has it now may wait for it.

    What fails once, because the queue is busy or can't be reached, is tried again. Whoever has lost it is told when it
    next writes, and may take it again.
    """
    while not over.wait(lease.seconds / 3):
        if lease.end_frozen():
            tell("a frozen worker was ended", None)
        if lease.held:
            try:
                lease.renew()
            except (ErasableError, OSError) as error:
                tell("lease not renewed", error)


def give_back(lease: Lease) -> None:
    """Give a lease back; where that can't be written it runs out, and nothing else is hidden by it."""
    with suppress(ErasableError, OSError):
        lease.release()
