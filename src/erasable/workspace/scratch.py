"""A scratch folder: the files of tasks that run in other processes or on other machines, while a command runs.

It lies in a workspace, on a disk that all machines share. Everything about people goes through its files. What takes
another way is names of files, and digests that are keyed with random bytes in this folder, so that no guess can be
tested against them. The folder is removed when its command ends; what a killed command left is removed by the next.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from erasable.documents import read_json
from erasable.errors import Refused, WorkspaceBusy, WorkspaceError
from erasable.fingerprint import DIGEST_BYTES, canonical_json
from erasable.workspace import files

_PREFIX = "work-"
_GONE = ".gone"
_KEY, _LOCK = "key", "lock"
_ATTEMPTS = 20


class ScratchFile(NamedTuple):
    """A file in a scratch folder: its name, and its keyed digest."""

    name: str
    digest: str


class ScratchGone(Refused):
    """A scratch folder was removed while tasks needed it: another command has changed the workspace."""

    def __init__(self) -> None:
        super().__init__("the workspace was changed by another command meanwhile: run this again")


class Scratch:
    """An open scratch folder; commands get one with `scratch_below`, workers by its path."""

    def __init__(self, root: Path, below: str) -> None:
        self.root = root
        self.below = below
        """The folder, as a path below the root."""

    @property
    def folder(self) -> Path:
        """The folder."""
        return self.root / self.below

    def put(self, name: str, content: bytes) -> ScratchFile:
        """Write a file; its name gets a random part, so that nobody reads it before it is whole."""
        stem, suffix = os.path.splitext(name)
        unique = f"{stem}-{secrets.token_hex(4)}{suffix}"
        try:
            files.write_file(self.folder / unique, content)
        except WorkspaceError:
            self.refuse_if_gone()
            raise
        return ScratchFile(unique, self._digest(content))

    def get(self, file: ScratchFile) -> bytes:
        """Return the content of a file, once its digest is checked."""
        path = self.folder / file.name
        try:
            content = path.read_bytes()
        except OSError as error:
            self.refuse_if_gone()
            raise WorkspaceError(f"{path} can't be read ({error.strerror}): run this again") from error
        if not secrets.compare_digest(self._digest(content), file.digest):
            raise WorkspaceError(f"{path} is damaged: check the disk, and run this again")
        return content

    def put_facts(self, name: str, facts: Any) -> ScratchFile:  # noqa: ANN401 - anything that JSON can say
        """Write facts as JSON."""
        return self.put(name, canonical_json(facts))

    def facts(self, file: ScratchFile) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return the facts in a file."""
        return read_json(self.get(file))

    @cached_property
    def _key(self) -> bytes:
        try:
            return (self.folder / _KEY).read_bytes()
        except OSError:
            raise ScratchGone from None

    def _digest(self, content: bytes) -> str:
        return blake2b(content, key=self._key, digest_size=DIGEST_BYTES).hexdigest()

    def refuse_if_gone(self) -> None:
        """Refuse if another command has removed the folder."""
        if not (self.folder / _KEY).exists():
            raise ScratchGone


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
        scratch = Scratch(root, f"{folder}/{_PREFIX}{secrets.token_hex(4)}")
        handle = None
        try:
            files.make_folder(scratch.folder)
            handle = _locked(scratch.folder / _LOCK)
            if handle is not None:
                files.write_file(scratch.folder / _KEY, secrets.token_bytes(DIGEST_BYTES))
                return scratch, handle
        except BaseException as error:
            if handle is not None:
                os.close(handle)
            if not (isinstance(error.__cause__, FileNotFoundError) and (root / folder).is_dir()):
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


def scratch_folders(root: Path) -> list[str]:
    """Return the scratch folders of a workspace, as paths below it."""
    data = root / files.DATA
    if not data.is_dir() or data.is_symlink():
        return []
    found = (name for name in os.listdir(data) if name.startswith(_PREFIX))
    return [f"{files.DATA}/{name}" for name in sorted(found) if _is_folder(data / name)]


def folders_in_use(root: Path) -> tuple[str, ...]:
    """Return the scratch folders whose command still runs, each with a slash at its end.

    One that is being removed is used by nobody, though its lock may still be held.
    """
    found = (name for name in scratch_folders(root) if not name.endswith(_GONE))
    return tuple(f"{name}/" for name in found if _is_held(root / name / _LOCK))


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _locked(path: Path) -> int | None:
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


def _is_held(path: Path) -> bool:
    """Whether a process holds a lock; a file that is no lock, or none at all, is held by nobody."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
