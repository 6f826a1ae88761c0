"""Every change to the disk, one function for each kind, behind one hook; no other module writes."""

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from erasable.errors import DiskFull, WorkspaceError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_MANY = 16


def before_change(kind: str, path: Path) -> None:
    """Be told of each change just before it is made; tests put a function here that stops at the n-th."""


OWNER_ONLY = 0o600
OWNER_AND_GROUP = 0o640
_ENTER = {OWNER_ONLY: 0o700, OWNER_AND_GROUP: 0o750}


def make_folder(path: Path, mode: int | None = OWNER_ONLY) -> None:
    """Make a folder, for those who may read files of this mode (None: as usual here), and make its name durable."""
    with _changing("make folder", path):
        path.mkdir()
        if mode is not None:
            path.chmod(_ENTER[mode])
    flush_folder(path.parent)


def remove_folder(path: Path) -> None:
    """Remove a folder that is empty."""
    with _changing("remove folder", path):
        path.rmdir()


def write_file(path: Path, content: bytes, mode: int = OWNER_ONLY) -> None:
    """Write a file whole and durable, name included, never through a link; by default for its owner alone."""
    _write_content(path, content, mode)
    flush_folder(path.parent)


def write_files(folder: Path, contents: Mapping[str, bytes], mode: int = OWNER_ONLY) -> None:
    """Write files of one folder, each as `write_file` does; all are durable when this returns."""
    if len(contents) < _MANY:
        for name, content in contents.items():
            _write_content(folder / name, content, mode)
    else:
        with ThreadPoolExecutor(_MANY) as pool:  # a disk makes many files durable in the time of a few
            list(pool.map(lambda name: _write_content(folder / name, contents[name], mode), contents))
    flush_folder(folder)


def _write_content(path: Path, content: bytes, mode: int) -> None:
    with _changing("create", path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "wb", buffering=0) as file:
        os.fchmod(handle, mode)
        with _changing("write", path, len(content)):
            _write_all(handle, content)
        with _changing("flush", path, len(content)):
            os.fsync(file.fileno())


def overwrite_file(path: Path, content: bytes) -> None:
    """Put other bytes where those of a small file lie, as far as the disk lets one, before it is removed."""
    with _changing("overwrite", path, len(content)), path.open("r+b", buffering=0) as file:
        _write_all(file.fileno(), content)
        os.fsync(file.fileno())


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


def refuse_if_full(path: Path, needed: int) -> None:
    """Refuse what would not fit on the disk of a folder, before any of it is written."""
    free = _free(path)
    if free < needed:
        raise DiskFull(_full(path, needed, "about "))


@contextmanager
def _changing(kind: str, path: Path, needed: int = 0) -> Iterator[None]:
    try:
        before_change(kind, path)
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(_full(path, needed)) from error
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise WorkspaceError(
            f"{path} can't be changed ({reason}): check the disk, and that you may write there"
        ) from error


def _full(path: Path, needed: int, roughly: str = "") -> str:
    sizes = f"{roughly}{in_megabytes(needed)} are needed and {in_megabytes(_free(path))} are free"
    return f"the disk is full at {path} ({sizes}): what was there before stays; free some space and run this again"


def in_megabytes(size: int) -> str:
    """Say a size in words, rounded up.

    >>> in_megabytes(1), in_megabytes(123_456_789)
    ('0.1 MB', '123.5 MB')
    """
    return f"{-(-size // 100_000) / 10:,.1f} MB"


def _free(path: Path) -> int:
    existing = next(folder for folder in (path, *path.parents) if folder.is_dir())
    return shutil.disk_usage(existing).free
