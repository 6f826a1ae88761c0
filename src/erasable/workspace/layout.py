"""The names of files and folders in a workspace, and which files there are ours; nothing here writes."""

import os
import re
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from erasable.errors import WorkspaceError

MANIFEST = "manifest.json"
NEW_MANIFEST = "manifest.json.new"
CONFIG = "config.json"
AUDIT = "audit.jsonl"
KEY = "signing-key.txt"
PENDING = "pending.json"
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
    rf"manifest\.json\.new|config(-{_HASH})?\.json|(catalogue|kept-items)-{_HASH}\.parquet"
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
