"""The files of a do-not-learn list and of its key: kept apart, changed at once, one writer at a time."""

import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from erasable.errors import ListUnusable, Refused, Said, WorkspaceError, said
from erasable.store import files
from erasable.store.layout import MANIFEST, WRITER_LOCK

ANOTHER_LIST = Said(
    "suppression=Suppression(Path(LIST), Path(KEY)) in Inputs or Outside", "--do-not-learn LIST --do-not-learn-key KEY"
)
NO_LIST = Said("without_do_not_learn=True in Inputs or Outside", "--no-do-not-learn")
RESTORE = said(
    "restore it from its newest copy, name another with ",
    ANOTHER_LIST,
    ", or do without one (learn and forget take ",
    NO_LIST,
    ")",
)
_ELSEWHERE = said("name another list with ", ANOTHER_LIST)
_KEY_BYTES = 32
_KEY_TEXT = re.compile(rb"([0-9a-f]{64})[ \r\n]*")


def kept_apart(path: Path, key_path: Path) -> tuple[Path, Path]:
    """Return where list and key really lie, or refuse places that would join them with each other or with data."""
    # Links are followed: what is replaced must be the file, not the link to it.
    try:
        places = Path(os.path.realpath(path)), Path(os.path.realpath(key_path))
    except ValueError:
        raise ListUnusable(f"{str(path)!r} or {str(key_path)!r} can't name a file: ", _ELSEWHERE) from None
    for place in places:
        if os.path.isdir(place):
            raise Refused(f"{place} is a folder: name a file")
        # A manifest alone may be anyone's; the writer's lock beside it makes it a workspace.
        if any(all(os.path.exists(folder / name) for name in (MANIFEST, WRITER_LOCK)) for folder in place.parents):
            raise Refused(
                f"{place} lies inside a workspace: keep the do-not-learn list and its key outside of any, with ",
                ANOTHER_LIST,
            )
    if places[0].parent == places[1].parent:
        raise Refused(
            f"the do-not-learn list and its key lie in the same folder, {places[0].parent}: keep the key apart, where "
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
        raise ListUnusable(f"{path} is no key of a do-not-learn list (64 hexadecimal digits): ", RESTORE)
    return bytes.fromhex(text[1].decode())


def new_list_key() -> bytes:
    """Return a new key."""
    return secrets.token_bytes(_KEY_BYTES)


def write_key(path: Path, key: bytes) -> None:
    """Put a key into a file, durably."""
    replace_content(path, key.hex().encode() + b"\n")


def refuse_unwritable(path: Path) -> None:
    """Refuse a file that could not be replaced later, before any work."""
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ListUnusable(f"{path.parent} can't be written to: give whoever forgets the right to, or ", _ELSEWHERE)


def read_content(path: Path) -> bytes | None:
    """Return what is in a file, or none if there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ListUnusable(f"{path} can't be read ({error.strerror}): check that you may read it") from error


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


def remove_locks(*paths: Path) -> None:
    """Remove what locking files has left that are gone."""
    for path in paths:
        files.remove_file(_beside(path, ".lock"))


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
        return lock.open("r+b" if os.access(lock, os.W_OK) else "rb")  # on NFS reading is not enough
    except OSError as error:
        raise WorkspaceError(f"{lock} can't be opened ({error.strerror}): check that you may read it") from error


def _take(lock: BinaryIO) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        raise WorkspaceError(f"{lock.name} can't be locked ({error.strerror}): keep it on a local disk") from error
