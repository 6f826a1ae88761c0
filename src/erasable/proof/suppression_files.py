"""The files of a suppression list and of its key: kept apart, changed at once, one writer at a time."""

import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from erasable.errors import Refused, WorkspaceError
from erasable.store import files
from erasable.store.layout import MANIFEST

RESTORE = "restore it from its newest copy"
_KEY_BYTES = 32
_KEY_TEXT = re.compile(rb"([0-9a-f]{64})\s*")


def kept_apart(path: Path, key_path: Path) -> tuple[Path, Path]:
    """Return where list and key really lie, or refuse places that would join them with each other or with data."""
    # Links are followed: what is replaced must be the file, not the link to it.
    places = Path(os.path.realpath(path)), Path(os.path.realpath(key_path))
    for place in places:
        if os.path.isdir(place):
            raise Refused(f"{place} is a folder: name a file")
        if any(os.path.exists(folder / MANIFEST) for folder in place.parents):
            raise Refused(f"{place} lies inside a workspace: keep the suppression list and its key outside of any")
    if places[0].parent == places[1].parent:
        raise Refused(
            f"the suppression list and its key lie in the same folder, {places[0].parent}: keep the key apart, where "
            "whoever gets hold of the list, or of a backup of it, does not get the key"
        )
    return places


def read_key(path: Path) -> bytes | None:
    """Return the key in a file, or none if there is no such file."""
    content = read_content(path)
    if content is None:
        return None
    text = _KEY_TEXT.fullmatch(content)
    if text is None:
        raise Refused(f"{path} is no key of a suppression list (64 hexadecimal digits): {RESTORE}")
    return bytes.fromhex(text[1].decode())


def key_or_new(path: Path) -> bytes:
    """Return the key in a file, made first if there is no such file."""
    key = read_key(path)
    if key is None:
        with locked(path):  # another list may be about to begin with this key
            key = read_key(path)
            if key is None:
                key = secrets.token_bytes(_KEY_BYTES)
                replace_content(path, key.hex().encode() + b"\n")
    return key


def read_content(path: Path) -> bytes | None:
    """Return what is in a file, or none if there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(f"{path} can't be read ({error.strerror}): check that you may read it") from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Be the only one who writes this file; whoever comes second waits."""
    if not os.path.isdir(path.parent):
        raise Refused(f"there is no folder {path.parent}: make it first")
    with _opened(_beside(path, ".lock")) as lock:
        _take(lock)
        # The rest of a command that was killed, which nobody reads.
        files.remove_file(_beside(path, ".new"))
        yield


def replace_content(path: Path, content: bytes) -> None:
    """Put new content in the place of a file at once, durably; it stays as private as it was, at first its owner's."""
    new = _beside(path, ".new")
    files.write_file(new, content)
    if os.path.exists(path):
        new.chmod(stat.S_IMODE(path.stat().st_mode))
    files.replace_file(new, path)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _opened(lock: Path) -> BinaryIO:
    if not os.path.exists(lock):
        files.create_empty(lock)
    try:
        return lock.open("rb")
    except OSError as error:
        raise WorkspaceError(f"{lock} can't be opened ({error.strerror}): check that you may read it") from error


def _take(lock: BinaryIO) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        raise WorkspaceError(f"{lock.name} can't be locked ({error.strerror}): keep it on a local disk") from error
