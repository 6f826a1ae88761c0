"""Small pieces of work for executors; other processes import them by name."""

import os
import threading

from erasable.errors import Refused
from erasable.models import Effort


def doubled(number: int, effort: Effort) -> tuple[int, int]:
    """Return twice a number, and the process that worked it out."""
    effort.advance(number)
    return 2 * number, os.getpid()


def refused(number: int, effort: Effort) -> None:
    """Refuse."""
    raise Refused("give another number")


def unsendable(number: int, effort: Effort) -> object:
    """Return what can't be sent to another process."""
    return threading.Lock()
