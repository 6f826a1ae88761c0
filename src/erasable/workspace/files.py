"""Every kind of change to the disk, one function each, and the locks of a workspace."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from erasable.errors import DiskFull, WorkspaceBusy, WorkspaceError
from erasable.workspace.layout import GATE_LOCK, READER_LOCK, WRITER_LOCK

_FULL = {errno.ENOSPC, errno.EDQUOT}
_MANY = 16


def before_change(kind: str, path: Path) -> None:
    """Called before each change to the disk; tests replace it with a function that fails at the n-th."""


OWNER_ONLY = 0o600
OWNER_AND_GROUP = 0o640
_ENTER = {OWNER_ONLY: 0o700, OWNER_AND_GROUP: 0o750}


def make_folder(path: Path, mode: int | None = OWNER_ONLY) -> None:
    """Make a folder, durably; whoever may read files of this mode may enter it (None: the system's default)."""
    with _changing("make folder", path):
        path.mkdir()
        if mode is not None:
            path.chmod(_ENTER[mode])
    flush_folder(path.parent)


def remove_folder(path: Path) -> None:
    """Remove an empty folder."""
    with _changing("remove folder", path):
        path.rmdir()


def write_file(path: Path, content: bytes, mode: int = OWNER_ONLY) -> None:
    """Write a file durably, name included, and never through a link; by default only its owner may read it."""
    _write_content(path, content, mode)
    flush_folder(path.parent)


def write_files(folder: Path, contents: Mapping[str, bytes], mode: int = OWNER_ONLY) -> None:
    """Write files into one folder as `write_file` does; all are durable when this returns."""
    if len(contents) < _MANY:
        for name, content in contents.items():
            _write_content(folder / name, content, mode)
    else:
        with ThreadPoolExecutor(_MANY) as pool:  # a disk flushes many files at once almost as fast as one
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
    """Overwrite a small file in place before it is removed, as far as the disk allows."""
    with _changing("overwrite", path, len(content)), path.open("r+b", buffering=0) as file:
        _write_all(file.fileno(), content)
        os.fsync(file.fileno())


def create_empty(path: Path) -> None:
    """Create an empty file if there is none."""
    with _changing("create", path):
        path.touch()


def replace_file(source: Path, target: Path) -> None:
    """Replace one file by another, atomically and durably."""
    with _changing("replace", target):
        source.replace(target)
    flush_folder(target.parent)


def remove_file(path: Path) -> None:
    """Remove a file, if it exists; this is durable once its folder is flushed."""
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
    # On Linux one call writes at most about 2 GiB, and less when the disk is nearly full.
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


def refuse_if_full(path: Path, needed: int) -> None:
    """Refuse to start if the disk has less room than is needed."""
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
    """Return a size in megabytes, rounded up.

    >>> in_megabytes(1), in_megabytes(123_456_789)
    ('0.1 MB', '123.5 MB')
    """
    return f"{-(-size // 100_000) / 10:,.1f} MB"


def _free(path: Path) -> int:
    existing = next(folder for folder in (path, *path.parents) if folder.is_dir())
    return shutil.disk_usage(existing).free


@contextmanager
def writer_lock(root: Path) -> Iterator[None]:
    """Hold the writer lock, or refuse at once if another process holds it."""
    path = _existing(root / WRITER_LOCK)
    with _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB) as handle:
        # A failed learn removes its lock file, and a lock on a removed file keeps nobody out.
        if not _is_at(handle, path):
            raise _busy(root)
        yield


@contextmanager
def exclusive_reader_lock(root: Path) -> Iterator[None]:
    """Wait until no reader is left, and keep new readers out."""
    # The gate comes first: flock lets new readers pass a waiting writer, so a stream of overlapping readers would
    # keep the writer waiting for ever.
    with _locked(_existing(root / GATE_LOCK), fcntl.LOCK_EX), _locked(_existing(root / READER_LOCK), fcntl.LOCK_EX):
        yield


@contextmanager
def shared_reader_lock(root: Path) -> Iterator[None]:
    """Hold a reader lock; don't nest it, since a writer waiting in between would cause a deadlock."""
    with ExitStack() as inside:
        with _shared(root / GATE_LOCK):
            inside.enter_context(_shared(root / READER_LOCK))
        yield


@contextmanager
def _shared(path: Path) -> Iterator[None]:
    # Where no lock file can be made, there is no writer either.
    with suppress(WorkspaceError):
        _existing(path)
    if not path.exists():
        yield
        return
    with _locked(path, fcntl.LOCK_SH):
        yield


def _existing(path: Path) -> Path:
    if not path.exists():
        create_empty(path)
    return path


@contextmanager
def _locked(path: Path, mode: int) -> Iterator[int]:
    handle = _opened(path, mode)
    try:
        _lock(handle, mode, path)
        yield handle
    finally:
        os.close(handle)


def _opened(path: Path, mode: int) -> int:
    # Read access is enough to lock a file, even in a read-only folder; but on NFS an exclusive lock needs write access.
    effective = os.access in os.supports_effective_ids
    writable = mode & fcntl.LOCK_EX and os.access(path, os.W_OK, effective_ids=effective)
    try:
        return os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _busy(path.parent) from None
    except OSError as error:
        raise WorkspaceError(f"{path} can't be opened ({error.strerror}): check that you may read it") from error


def _lock(handle: int, mode: int, path: Path) -> None:
    try:
        fcntl.flock(handle, mode)
    except BlockingIOError:
        raise _busy(path.parent) from None
    except OSError as error:
        raise WorkspaceError(f"{path} can't be locked ({error.strerror}): keep it on a local disk") from error


def _is_at(handle: int, path: Path) -> bool:
    return path.exists() and os.path.samestat(os.fstat(handle), path.stat())


def _busy(root: Path) -> WorkspaceBusy:
    return WorkspaceBusy(f"another command is writing {root}: wait for it to end, then run this one again")
