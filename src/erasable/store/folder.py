"""A folder whose files are known by their hashes: none is returned unchecked or overwritten."""

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock

from erasable import fingerprint
from erasable.errors import WorkspaceDamaged, WorkspaceError
from erasable.store import files
from erasable.store.layout import hashed_name
from erasable.store.manifest import RESTORE, damaged


class CheckedFolder:
    """Files by relative name, each with the hash that it must have."""

    def __init__(self, root: Path, hashes: Mapping[str, str], mode: int = files.OWNER_ONLY) -> None:
        self.root = root
        self.mode = mode
        self._hashes = dict(hashes)
        self._making = Lock()
        self._seen: dict[str, tuple[str, tuple[int, int, int]]] = {}

    def read(self, name: str) -> bytes:
        """Return the content of a known file once its hash is found right."""
        if name not in self._hashes:
            raise WorkspaceError(f"{self.root / name} is not current any more: open the workspace again")
        self._seen.pop(name, None)
        digest, mark = self._hashes[name], _mark(self.root / name)
        content = self.read_as(name, digest)
        self._seen[name] = digest, mark
        return content

    def read_as(self, name: str, digest: str) -> bytes:
        """Return the content of a file once its hash is found to be this one."""
        refuse_links(self.root, [name])
        content = read_whole(self.root / name)
        if fingerprint.of_bytes(content) != digest:
            raise damaged(self.root / name)
        return content

    def damaged(self, private: Collection[str] = ()) -> list[str]:
        """Return every known file that is missing or not what it must be; private ones only if they may be read."""
        hidden = {name for name in private if (self.root / name).exists() and not os.access(self.root / name, os.R_OK)}
        return [name for name in sorted({*self._hashes} - hidden) if not self._is_whole(name)]

    def write(self, name: str, content: bytes, private: bool = False) -> str:
        """Write a file durably and return its name: another than wanted if other content has that one."""
        return self._write(name, content, fingerprint.of_bytes(content), private)

    def write_hashed(self, name: str, content: bytes, private: bool = False) -> str:
        """Write a file durably under a name that changes with its content, and return that name."""
        digest = fingerprint.of_bytes(content)
        return self._write(hashed_name(name, digest), content, digest, private)

    def _write(self, name: str, content: bytes, digest: str, private: bool) -> str:
        if self._hashes.get(name, digest) != digest:
            name = hashed_name(name, digest)
        refuse_links(self.root, [name])
        if not self._holds(name, digest):
            self._make_folder((self.root / name).parent)
            files.write_file(self.root / name, content, files.OWNER_ONLY if private else self.mode)
            self._seen[name] = digest, _mark(self.root / name)
        self._hashes[name] = digest
        return name

    def write_below(self, below: str, contents: Mapping[str, bytes]) -> None:
        """Write files of one folder below this one durably; many cost little more than few."""
        digests = {f"{below}/{name}": fingerprint.of_bytes(content) for name, content in contents.items()}
        refuse_links(self.root, digests)
        names = [name for name in contents if not self._holds(f"{below}/{name}", digests[f"{below}/{name}"])]
        if names:
            self._make_folder(self.root / below)
            files.write_files(self.root / below, {name: contents[name] for name in names}, self.mode)
        self._hashes |= digests

    def is_untouched(self, name: str) -> bool:
        """Whether a known file was found right when it was read, or was written, and was not touched since."""
        return self._seen.get(name) == (self._hashes.get(name), _mark(self.root / name))

    def hashes(self, names: Iterable[str]) -> dict[str, str]:
        """Return the hashes of some known files, by name."""
        return {name: self._hashes[name] for name in sorted(names)}

    def adopt(self, hashes: Mapping[str, str]) -> None:
        """Know these files only from now on."""
        self._hashes = dict(hashes)

    def _make_folder(self, path: Path) -> None:
        with self._making:  # models that are trained side by side want it at the same time
            if not path.is_dir():
                files.make_folder(path, self.mode)

    def _holds(self, name: str, digest: str) -> bool:
        if self._hashes.get(name) != digest:
            return False
        return self.is_untouched(name) or self._is_whole(name)

    def _is_whole(self, name: str) -> bool:
        with suppress(WorkspaceError):
            self.read(name)
            return True
        return False


def refuse_links(root: Path, names: Iterable[str]) -> None:
    """Refuse files that are links or lie behind one: what lies elsewhere does not go when a person is erased."""
    parts = (name.split("/") for name in names)
    for place in sorted({"/".join(part[:depth]) for part in parts for depth in range(1, len(part) + 1)}):
        kind = _kind(root / place)
        if stat.S_ISLNK(kind):
            raise WorkspaceDamaged(
                f"{root / place} is a link, and what lies elsewhere is not erased: put what it leads to in its place, "
                "or move the workspace as a whole"
            )
        if kind and not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise WorkspaceDamaged(f"{root / place} is no file: {RESTORE}")


def _kind(path: Path) -> int:
    """Return what lies at a path, without following it if it is a link; 0 if that can't be told."""
    try:
        return path.lstat().st_mode
    except (OSError, ValueError):
        return 0


def _mark(path: Path) -> tuple[int, int, int]:
    """Return what a file has another of once it is changed; zeros if it is not there."""
    try:
        found = path.lstat()
    except (OSError, ValueError):
        return 0, 0, 0
    return found.st_ino, found.st_ctime_ns, found.st_size


def read_whole(path: Path) -> bytes:
    """Return the content of a file, or say that it is missing."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ValueError):  # or what can't name a file
        raise WorkspaceDamaged(f"{path} is missing: {RESTORE}") from None
    except OSError as error:
        raise WorkspaceError(f"{path} can't be read ({error.strerror}): check that you may read it") from error
