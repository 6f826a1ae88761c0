"""Every change to the disk, one function for each kind, behind one hook; no other module writes."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from erasable.errors import WorkspaceError

_FULL = {errno.ENOSPC, errno.EDQUOT}


def before_change(kind: str, path: Path) -> None:
    """Be told of each change just before it is made; tests put a function here that stops at the n-th."""


def make_folder(path: Path) -> None:
    """Make a folder and make its name durable."""
    with _changing("make folder", path):
        path.mkdir()
    flush_folder(path.parent)


def remove_folder(path: Path) -> None:
    """Remove a folder that is empty."""
    with _changing("remove folder", path):
        path.rmdir()


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole and durable, name included."""
    with _changing("create", path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    with os.fdopen(handle, "wb", buffering=0) as file:
        with _changing("write", path):
            _write_all(handle, content)
        with _changing("flush", path):
            os.fsync(file.fileno())
    flush_folder(path.parent)


def create_empty(path: Path) -> None:
    """Create an empty file if there is none."""
    with _changing("create", path):
        path.touch()


def replace_file(source: Path, target: Path) -> None:
    """Put one file in the place of another, at once and durable."""
    with _changing("replace", target):
        source.replace(target)
    flush_folder(target.parent)


def remove_file(path: Path) -> None:
    """Remove a file; it is gone for good once its folder is flushed."""
    with _changing("remove", path):
        path.unlink(missing_ok=True)


def flush_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    with _changing("flush folder", path):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _write_all(handle: int, content: bytes) -> None:
    # One call writes at most about 2 GiB on Linux, and less when the disk is nearly full.
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


@contextmanager
def _changing(kind: str, path: Path) -> Iterator[None]:
    try:
        before_change(kind, path)
        yield
    except OSError as error:
        raise WorkspaceError(_in_words(error, path)) from error


def _in_words(error: OSError, path: Path) -> str:
    if error.errno in _FULL:
        return f"the disk is full at {path}: what was there before stays; free some space and run this again"
    reason = os.strerror(error.errno) if error.errno else str(error)
    return f"{path} can't be changed ({reason}): check the disk, and that you may write there"
