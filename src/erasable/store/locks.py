"""The locks of a workspace: one writer at a time, and no change of version under a reader's feet."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from erasable.errors import WorkspaceBusy, WorkspaceError
from erasable.store import files
from erasable.store.layout import GATE_LOCK, READER_LOCK, WRITER_LOCK


@contextmanager
def writer_lock(root: Path) -> Iterator[None]:
    """Be the only writer, or refuse at once."""
    path = _existing(root / WRITER_LOCK)
    with _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB) as handle:
        # A learn that failed removes its lock file: a lock on a file that is gone keeps nobody out.
        if not _is_at(handle, path):
            raise _busy(root)
        yield


@contextmanager
def exclusive_reader_lock(root: Path) -> Iterator[None]:
    """Wait until no reader is inside, and keep new ones out from now on."""
    # The gate comes first: a lock lets new readers in ahead of a writer who waits, so that a stream of them that
    # overlap would keep the writer waiting for good.
    with _locked(_existing(root / GATE_LOCK), fcntl.LOCK_EX), _locked(_existing(root / READER_LOCK), fcntl.LOCK_EX):
        yield


@contextmanager
def shared_reader_lock(root: Path) -> Iterator[None]:
    """Be one of many readers; whoever is one already must not ask again, since a writer may wait in between."""
    with ExitStack() as inside:
        with _shared(root / GATE_LOCK):
            inside.enter_context(_shared(root / READER_LOCK))
        yield


@contextmanager
def _shared(path: Path) -> Iterator[None]:
    # Where no lock file can be made there is no writer to keep waiting.
    with suppress(WorkspaceError):
        _existing(path)
    if not path.exists():
        yield
        return
    with _locked(path, fcntl.LOCK_SH):
        yield


def _existing(path: Path) -> Path:
    if not path.exists():
        files.create_empty(path)
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
    # Reading is enough to lock, and works in a folder that can't be written to; but on NFS not to keep others out.
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
