"""The files of a workspace: their names, every kind of change to the disk with one function each, and the locks."""

import errno
import fcntl
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from erasable.errors import DiskFull, WorkspaceBusy, WorkspaceError

MANIFEST = "manifest.json"
NEW_MANIFEST = "manifest.json.new"
CONFIG = "config.json"
AUDIT = "audit.jsonl"
KEY = "signing-key.txt"
PENDING = "pending.json"
DECLARED_ITEMS = "declared-items.parquet"
QUEUE_FILE = "ledger.sqlite"
QUEUE_FILES = (QUEUE_FILE, f"{QUEUE_FILE}-wal", f"{QUEUE_FILE}-shm")
KEYS = "keys"
"""The folder of the keys that decrypt the ids in a queue kept outside the workspace."""
WRITER_LOCK = "writer.lock"
READER_LOCK = "reader.lock"
GATE_LOCK = "gate.lock"
DATA = "data"
HOLDOUT = "holdout"
CHECKPOINTS = "checkpoints"
CERTIFICATES = "certificates"
SEALED = "sealed"
REQUESTS = f"{SEALED}/requests.sqlite"
FOLDERS = (DATA, HOLDOUT, CHECKPOINTS, CERTIFICATES, SEALED)
LOCKS = (GATE_LOCK, READER_LOCK, WRITER_LOCK)

_HASH_LENGTH = 12
_HASH = f"[0-9a-f]{{{_HASH_LENGTH}}}"
_OWN_AT_TOP = re.compile(
    rf"manifest\.json\.new|config(-{_HASH})?\.json|(catalogue|kept-items|declared-items|item-features)-{_HASH}\.parquet"
    rf"|audit-{_HASH}\.jsonl|signing-key(-{_HASH})?\.txt|pending-{_HASH}\.json"
)


def hashed_name(name: str, content_hash: str) -> str:
    """Return a file name with a hash of the content in it.

    >>> hashed_name("data/group-000.parquet", "0123456789abcdef")
    'data/group-000-0123456789ab.parquet'
    """
    stem, suffix = os.path.splitext(name)
    return f"{stem}-{content_hash[:_HASH_LENGTH]}{suffix}"


def checkpoint_name(fingerprint: str) -> str:
    """Return the path of a checkpoint."""
    return f"{CHECKPOINTS}/{fingerprint}.safetensors"


def block_name(number: int) -> str:
    """Return the path of a block of a checkpoint, before a hash is added."""
    return f"{CHECKPOINTS}/block-{number:04d}.safetensors"


def certificate_name(name: str) -> str:
    """Return the path of a certificate."""
    return f"{CERTIFICATES}/{name}"


def is_plain(name: str) -> bool:
    """Whether a relative path stays inside its folder and is written in the one normal way.

    >>> is_plain("data/group-000.parquet"), is_plain("../data"), is_plain("/dev/null"), is_plain("data//a")
    (True, False, False, False)
    """
    return name.isprintable() and not {"", ".", ".."}.intersection(name.split("/"))


def is_own(name: str) -> bool:
    """Whether a plain name is one of the workspace's own, so that the file is swept once no manifest names it.

    >>> is_own("data/group-000.parquet"), is_own("config.json"), is_own("notes.txt")
    (True, True, False)
    """
    folder, _, rest = name.partition("/")
    return folder in FOLDERS if rest else bool(_OWN_AT_TOP.fullmatch(name)) and name != NEW_MANIFEST


def own_files(root: Path, sealed: Collection[str] = ()) -> list[str]:
    """Return the workspace's own files, without the manifest, the locks and sealed certificates.

    Everything in our folders is ours; at the top only files with our names, so that nobody's own notes are ever
    swept away. What lies behind a link is never ours.
    """
    at_top = (name for name in _names(root) if _OWN_AT_TOP.fullmatch(name))
    others = _not_sealed(root / CERTIFICATES, sealed)
    below = (path for folder in FOLDERS if folder != CERTIFICATES for path in _files_below(root, folder))
    return sorted([*at_top, *below, *_files_among(root, CERTIFICATES, others)])


def foreign_entries(root: Path) -> list[str]:
    """Return what lies in a folder but is not part of a workspace."""
    ours = {MANIFEST, *LOCKS, *FOLDERS, *QUEUE_FILES, KEYS}
    return sorted(
        name
        for name in _names(root)
        if os.path.islink(root / name) or (name not in ours and not _OWN_AT_TOP.fullmatch(name))
    )


def is_empty(root: Path) -> bool:
    """Whether a folder is empty."""
    return not _names(root)


class _Listing(NamedTuple):
    """What a folder held besides sealed certificates, and when the folder was last changed."""

    changed: int
    sealed: Collection[str]
    others: frozenset[str]


_LISTINGS: dict[tuple[int, int], _Listing] = {}
_SETTLED = 100_000_000  # nanoseconds: a later change within the same clock tick must not be missed


def _not_sealed(folder: Path, sealed: Collection[str]) -> frozenset[str]:
    """Return the names in the certificate folder that are not sealed.

    There may be a hundred thousand, and each command looks several times, so the folder is listed only if it changed.
    """
    if not sealed or not _is_folder(folder):
        return frozenset(_entries(folder))
    found, now = folder.stat(), time.time_ns()
    place = (found.st_dev, found.st_ino)
    known = _LISTINGS.get(place)
    if known is not None and known.changed == found.st_ctime_ns and known.sealed is sealed:
        return known.others
    others = frozenset({*_entries(folder)}.difference(sealed))
    _LISTINGS.clear()
    if now - found.st_ctime_ns > _SETTLED:
        _LISTINGS[place] = _Listing(found.st_ctime_ns, sealed, others)
    return others


def _names(root: Path) -> list[str]:
    try:
        return os.listdir(root)
    except OSError as error:
        raise WorkspaceError(f"{root} can't be read ({error.strerror}): check that you may read it") from error


def _files_below(root: Path, folder: str) -> Iterator[str]:
    return _files_among(root, folder, _entries(root / folder))


def _files_among(root: Path, folder: str, names: Iterable[str]) -> Iterator[str]:
    for path in (f"{folder}/{name}" for name in names):
        if _is_folder(root / path):
            yield from _files_below(root, path)
        else:
            yield path


def _entries(folder: Path) -> list[str]:
    return os.listdir(folder) if _is_folder(folder) else []


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


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
def writer_lock(root: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the writer lock; if another process holds it, refuse at once, or call `waiting` and wait for it to end."""
    mode = fcntl.LOCK_EX | fcntl.LOCK_NB
    with ExitStack() as held:
        while True:
            path = _existing(root / WRITER_LOCK)
            try:
                # A failed learn removes its lock file, and a lock on a removed file keeps nobody out.
                if _is_at(held.enter_context(_locked(path, mode)), path):
                    break
                raise _busy(root)
            except WorkspaceBusy:
                if waiting is None:
                    raise
                if mode & fcntl.LOCK_NB:
                    waiting()
                mode = fcntl.LOCK_EX  # who waits in the kernel comes in turn
                held.close()
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
