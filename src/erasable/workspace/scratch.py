"""A scratch folder: the files of tasks that run in other processes or on other machines, while a command runs.

It lies in a workspace, on a disk that all machines share. Everything about people goes through its files, and through
buckets beside them that are as readable as those of the workspace. The files are encrypted with a key that lies in
memory only: a search of the workspace must not find whom another command looks for. What takes another way is names of
files, and that key. The folder is removed when its command ends; what a killed command left is removed by the next.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from erasable.documents import read_json
from erasable.errors import Refused, WorkspaceBusy, WorkspaceError
from erasable.fingerprint import canonical_json
from erasable.workspace import files

_PREFIX = "work-"
_GONE = ".gone"
_LOCK = "lock"
_ATTEMPTS = 20
_BITS = 256
_PIECE = 2**30  # bytes; one encryption may take up to 2 GiB
_NONCE = 12
_TAG = 16


class ScratchGone(Refused):
    """A scratch folder was removed while tasks needed it: another command has changed the workspace."""

    def __init__(self) -> None:
        super().__init__("the workspace was changed by another command meanwhile: run this again")


class Scratch:
    """An open scratch folder; commands get one with `scratch_below`, workers by its path."""

    def __init__(self, root: Path, below: str, key: bytes) -> None:
        self.root = root
        self.below = below
        """The folder, as a path below the root."""
        self.key = key
        """What its files are encrypted with."""

    @property
    def folder(self) -> Path:
        """The folder."""
        return self.root / self.below

    def put(self, name: str, content: bytes) -> str:
        """Write a file, and return its name, which gets a random part: nobody reads it before it is whole."""
        stem, suffix = os.path.splitext(name)
        unique = f"{stem}-{secrets.token_hex(4)}{suffix}"
        try:
            files.write_file(self.folder / unique, _encrypted(self.key, unique, content))
        except WorkspaceError:
            self.refuse_if_gone()
            raise
        return unique

    def get(self, name: str) -> bytes:
        """Return the content of a file; one that was changed is refused."""
        path = self.folder / name
        try:
            return _decrypted(self.key, name, path.read_bytes())
        except OSError as error:
            self.refuse_if_gone()
            raise WorkspaceError(f"{path} can't be read ({error.strerror}): run this again") from error
        except (InvalidTag, ValueError):
            raise WorkspaceError(f"{path} is damaged: check the disk, and run this again") from None

    def put_facts(self, name: str, facts: Any) -> str:  # noqa: ANN401 - anything that JSON can say
        """Write facts as JSON, and return the name of the file."""
        return self.put(name, canonical_json(facts))

    def facts(self, name: str) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return the facts in a file."""
        return read_json(self.get(name))

    def refuse_if_gone(self) -> None:
        """Refuse if another command has removed the folder."""
        if not (self.folder / _LOCK).exists():
            raise ScratchGone


def _encrypted(key: bytes, name: str, content: bytes) -> bytes:
    """Encrypt a file, piece by piece; each piece is bound to the file's name, its place and the size of the whole."""
    cipher, view, pieces = AESGCM(key), memoryview(content), list[bytes]()
    for start in range(0, max(1, len(content)), _PIECE):
        nonce = secrets.token_bytes(_NONCE)
        bound = f"{name} {start} {len(content)}".encode()
        pieces += [nonce, cipher.encrypt(nonce, view[start : start + _PIECE], bound)]
    return b"".join(pieces)


def _decrypted(key: bytes, name: str, written: bytes) -> bytes:
    cipher, view, step = AESGCM(key), memoryview(written), _NONCE + _PIECE + _TAG
    places = range(0, max(1, len(written)), step)
    size = len(written) - len(places) * (_NONCE + _TAG)
    pieces = list[bytes]()
    for number, place in enumerate(places):
        nonce, sealed = view[place : place + _NONCE], view[place + _NONCE : place + step]
        pieces.append(cipher.decrypt(nonce, sealed, f"{name} {number * _PIECE} {size}".encode()))
    return b"".join(pieces)


@contextmanager
def scratch_below(root: Path, folder: str = files.DATA) -> Iterator[Scratch]:
    """Make a scratch folder in a folder of a workspace; nothing of it is left afterwards.

    What can't be used because another command has changed the workspace meanwhile is told as that.
    """
    root = root.absolute()  # workers have another working folder
    if not (root / folder).is_dir():
        files.make_folder(root / folder)
    scratch, handle = _taken(root, folder)
    try:
        yield scratch
    except WorkspaceError:
        scratch.refuse_if_gone()
        raise
    finally:
        with suppress(WorkspaceError, OSError):  # the next command removes what can't be removed now
            remove_scratch(scratch.folder)
        os.close(handle)


def _taken(root: Path, folder: str) -> tuple[Scratch, int]:
    """Make a scratch folder, and lock it; if a command that sweeps is faster, make another one."""
    for _ in range(_ATTEMPTS):
        key = AESGCM.generate_key(_BITS)
        scratch = Scratch(root, f"{folder}/{_PREFIX}{secrets.token_hex(4)}", key)
        handle = None
        try:
            files.make_folder(scratch.folder)
            handle = locked(scratch.folder / _LOCK)
            if handle is not None:
                scratch.refuse_if_gone()
                return scratch, handle
        except BaseException as error:
            if handle is not None:
                os.close(handle)
            gone = isinstance(error, ScratchGone) or isinstance(error.__cause__, FileNotFoundError)
            if not (gone and (root / folder).is_dir()):
                raise
    raise WorkspaceBusy("other commands open the workspace again and again: run this again")


def remove_scratch(folder: Path) -> None:
    """Remove a scratch folder; it is renamed first, so that no worker writes into it meanwhile.

    Its command and one that sweeps may do so at the same time.
    """
    if not folder.is_dir():
        return
    if not folder.name.endswith(_GONE):
        gone = folder.with_name(folder.name + _GONE)
        with _unless_gone(folder):
            files.replace_file(folder, gone)
        folder = gone
    for place, folders, names in os.walk(folder, topdown=False):
        for name in names:
            files.remove_file(Path(place, name))
        for name in folders:
            with _unless_gone(Path(place, name)):
                files.remove_folder(Path(place, name))
    with _unless_gone(folder):
        files.remove_folder(folder)
    files.flush_folder(folder.parent)


@contextmanager
def _unless_gone(path: Path) -> Iterator[None]:
    """Ignore that a change fails where another process was faster."""
    try:
        yield
    except WorkspaceError:
        if path.is_dir():
            raise


def scratch_folders(root: Path, folder: str = files.DATA) -> list[str]:
    """Return the scratch folders in a folder, as paths below the root."""
    place = root / folder
    if not _is_folder(place):
        return []
    found = (name for name in os.listdir(place) if name.startswith(_PREFIX))
    return [f"{folder}/{name}" for name in sorted(found) if _is_folder(place / name)]


def folders_in_use(root: Path, folder: str = files.DATA) -> tuple[str, ...]:
    """Return the scratch folders whose command still runs, each with a slash at its end.

    One that is being removed is used by nobody, though its lock may still be held.
    """
    found = (name for name in scratch_folders(root, folder) if not name.endswith(_GONE))
    return tuple(f"{name}/" for name in found if is_held(root / name / _LOCK))


def remove_unused(root: Path, folder: str = files.DATA) -> None:
    """Remove the scratch folders whose command was killed."""
    in_use = folders_in_use(root, folder)
    for name in scratch_folders(root, folder):
        if f"{name}/" not in in_use:
            remove_scratch(root / name)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def locked(path: Path) -> int | None:
    """Lock a file of a new folder, and return its handle; None if a command that sweeps holds it or has removed it."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, files.OWNER_ONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError as error:
        os.close(handle)
        raise WorkspaceError(f"{path} can't be locked ({error.strerror}): use a disk that has locks") from error
    return handle


def is_held(path: Path) -> bool:
    """Whether a process holds a lock, or may hold it; a file that is no lock, or none at all, is held by nobody."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except PermissionError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
