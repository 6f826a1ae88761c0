"""A folder whose files are checked against their hashes; finding a workspace; finished documents in segments."""

import os
import shlex
import stat
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from threading import Lock

from erasable import fingerprint
from erasable.documents import format_in, newer, read_json
from erasable.errors import Said, WorkspaceDamaged, WorkspaceError
from erasable.fingerprint import canonical_json
from erasable.workspace import files
from erasable.workspace.files import FOLDERS, MANIFEST, QUEUE_FILES, hashed_name, own_files
from erasable.workspace.manifest import RESTORE, Manifest, SegmentRecord, damaged, decode_manifest


class CheckedFolder:
    """Files by relative name, each with its expected hash."""

    def __init__(self, root: Path, hashes: Mapping[str, str], mode: int = files.OWNER_ONLY) -> None:
        self.root = root
        self.mode = mode
        self._hashes = dict(hashes)
        self._making = Lock()
        self._seen: dict[str, tuple[str, tuple[int, int, int]]] = {}

    def read(self, name: str) -> bytes:
        """Return the content of a known file, once its hash is checked."""
        if name not in self._hashes:
            raise WorkspaceError(f"{self.root / name} is no longer current: open the workspace again")
        self._seen.pop(name, None)
        digest, mark = self._hashes[name], _mark(self.root / name)
        content = self.read_as(name, digest)
        self._seen[name] = digest, mark
        return content

    def read_as(self, name: str, digest: str) -> bytes:
        """Return the content of a file, which must have this hash."""
        refuse_links(self.root, [name])
        content = read_whole(self.root / name)
        if fingerprint.of_bytes(content) != digest:
            raise damaged(self.root / name)
        return content

    def damaged(self, private: Collection[str] = ()) -> list[str]:
        """Return the known files that are missing or changed; private ones that can't be read are left out."""
        hidden = {name for name in private if (self.root / name).exists() and not os.access(self.root / name, os.R_OK)}
        return [name for name in sorted({*self._hashes} - hidden) if not self._is_whole(name)]

    def write(self, name: str, content: bytes, private: bool = False) -> str:
        """Write a file durably and return its name, with a hash in it if another file has that name."""
        return self._write(name, content, fingerprint.of_bytes(content), private)

    def write_hashed(self, name: str, content: bytes, private: bool = False) -> str:
        """Write a file durably and return its name, which holds a hash of the content."""
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
        """Write files into a subfolder durably; many cost little more than one."""
        digests = {f"{below}/{name}": fingerprint.of_bytes(content) for name, content in contents.items()}
        refuse_links(self.root, digests)
        names = [name for name in contents if not self._holds(f"{below}/{name}", digests[f"{below}/{name}"])]
        if names:
            self._make_folder(self.root / below)
            files.write_files(self.root / below, {name: contents[name] for name in names}, self.mode)
        self._hashes |= digests

    def is_untouched(self, name: str) -> bool:
        """Whether a known file is unchanged since it was last checked or written."""
        return self._seen.get(name) == (self._hashes.get(name), _mark(self.root / name))

    def hashes(self, names: Iterable[str] | None = None) -> dict[str, str]:
        """Return the hashes of known files, or of all of them, by name."""
        return {name: self._hashes[name] for name in sorted(self._hashes if names is None else names)}

    def adopt(self, hashes: Mapping[str, str]) -> None:
        """Know only these files from now on."""
        self._hashes = dict(hashes)

    def _make_folder(self, path: Path) -> None:
        with self._making:  # models trained in parallel may need it at the same time
            if path != self.root and not path.is_dir():  # the root may have been removed on purpose
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
    """Refuse links on the way to these files: data outside the workspace is not removed when a person is erased."""
    parts = (name.split("/") for name in names)
    for place in sorted({"/".join(part[:depth]) for part in parts for depth in range(1, len(part) + 1)}):
        kind = _kind(root / place)
        if stat.S_ISLNK(kind):
            raise WorkspaceDamaged(
                f"{root / place} is a link, and what lies elsewhere is not erased: replace it by what it points to, "
                "or move the workspace as a whole"
            )
        if kind and not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise WorkspaceDamaged(f"{root / place} is not a file: {RESTORE}")


def _kind(path: Path) -> int:
    """Return the mode of what lies at a path, without following links; 0 if there is nothing to see."""
    try:
        return path.lstat().st_mode
    except (OSError, ValueError):
        return 0


def _mark(path: Path) -> tuple[int, int, int]:
    """Return numbers that differ once a file is changed; zeros if it is missing."""
    try:
        found = path.lstat()
    except (OSError, ValueError):
        return 0, 0, 0
    return found.st_ino, found.st_ctime_ns, found.st_size


def read_whole(path: Path) -> bytes:
    """Return the content of a file, or say that it is missing."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ValueError):  # ValueError: the path has a null byte
        raise WorkspaceDamaged(f"{path} is missing: {RESTORE}") from None
    except OSError as error:
        raise WorkspaceError(f"{path} can't be read ({error.strerror}): check that you may read it") from error


_LEARNED = Said("a folder that save made", "the folder that erasable learn made")


def existing_workspace(path: str | Path) -> Path:
    """Return the path of a workspace, or say why there is none."""
    root = Path(path)
    if not os.path.exists(root):
        raise WorkspaceError(
            f"there is no folder {root}: make one with ",
            Said(
                f"Recommender().fit(DATA).save({str(root)!r})", f"erasable learn DATA --into {shlex.quote(str(root))}"
            ),
        )
    if not root.is_dir():
        raise WorkspaceError(f"{root} is not a folder: give ", _LEARNED)
    try:
        if (root / MANIFEST).exists():
            return root
    except PermissionError as error:
        raise WorkspaceError(
            f"{root} can't be read (Permission denied): be its owner, or in its group and have it learned with ",
            Said("inputs=Inputs(readable_by_group=True)", "--readable-by-group"),
        ) from error
    if own_files(root):
        raise WorkspaceDamaged(
            f"{root / MANIFEST} is missing: if a learn is running there, wait for it; if one was stopped, "
            f"learn again into the same folder; else {RESTORE}"
        )
    raise WorkspaceError(
        f"{root} is not a workspace (it has no {MANIFEST}): give ",
        _LEARNED,
        ", or make one with ",
        Said("Recommender().fit(DATA).save('DIR')", "erasable learn DATA --into DIR"),
    )


def mark_of(root: Path) -> tuple[int, int, int]:
    """Return numbers that differ once the manifest is replaced, without reading it."""
    found = (root / MANIFEST).stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def read_manifest(root: Path) -> Manifest:
    """Return the current manifest, checked; links in the workspace are refused."""
    refuse_links(root, (MANIFEST, *QUEUE_FILES, *FOLDERS))
    manifest = decode_manifest(read_whole(root / MANIFEST), str(root / MANIFEST))
    refuse_links(root, manifest.files)
    return manifest


OPEN_CERTIFICATES = 64
"""With more certificate files than this, the next erasure seals them in a segment."""
_FORMAT = 1


@dataclass(frozen=True)
class SealedDocuments:
    """The sealed documents of one version; a segment is read when it is first needed."""

    folder: CheckedFolder
    records: tuple[SegmentRecord, ...] = ()

    @cached_property
    def certificates(self) -> Mapping[str, str]:
        """The hashes of the sealed certificates by file name, oldest first."""
        return _all_listed(tuple((self.folder.root / one.certificates, self._digest(one)) for one in self.records))

    def log(self) -> bytes:
        """Return the sealed records of the log, oldest first."""
        return b"".join(self.folder.read(record.log) for record in self.records)

    def read(self, name: str) -> bytes:
        """Return a sealed certificate, once its hash is checked."""
        return self.folder.read_as(files.certificate_name(name), self.certificates[name])

    def damaged(self) -> list[str]:
        """Return the sealed certificates that are missing or changed."""
        found = (files.certificate_name(name) for name in self.certificates if not self._is_whole(name))
        return sorted(found)

    def _is_whole(self, name: str) -> bool:
        try:
            self.read(name)
        except WorkspaceDamaged:
            return False
        return True

    def _digest(self, record: SegmentRecord) -> str:
        return self.folder.hashes([record.certificates])[record.certificates]


@lru_cache(maxsize=4)
def _all_listed(segments: tuple[tuple[Path, str], ...]) -> Mapping[str, str]:
    """Return what all segments list; always the same object, so that callers can cache what they derive from it."""
    return dict(chain.from_iterable(_listed(path, digest).items() for path, digest in segments))


@lru_cache(maxsize=4096)
def _listed(path: Path, digest: str) -> Mapping[str, str]:
    """Return what a segment lists; cached, since a command reads it several times and its name holds its hash."""
    content = read_whole(path)
    if fingerprint.of_bytes(content) != digest:
        raise damaged(path)
    try:
        fields = read_json(content)
        number = format_in(fields)
        if number is not None and number > _FORMAT:
            raise WorkspaceError(f"{path} {newer(number, _FORMAT)}")
        if number is None:
            raise ValueError("it has no format")
        listed: dict[str, str] = dict(fields["files"])
        if not all(files.is_plain(name) and isinstance(one, str) for name, one in listed.items()):
            raise ValueError("it lists something that is not a file")
        return listed
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(path) from error


def write_segment(folder: CheckedFolder, number: int, certificates: Mapping[str, str], log: bytes) -> SegmentRecord:
    """Write a segment: the hashes of finished certificates by name, and finished log records."""
    listed = canonical_json({"format": _FORMAT, "files": [*certificates.items()]}) + b"\n"
    places = {f"{files.SEALED}/certificates-{number:04d}.json": listed, f"{files.SEALED}/log-{number:04d}.jsonl": log}
    written = [folder.write_hashed(name, content) for name, content in places.items()]
    erasures = sum(name.endswith(".json") for name in certificates)
    return SegmentRecord(certificates=written[0], log=written[1], erasures=erasures)


@dataclass(frozen=True)
class NamedFiles:
    """The files of a version: those named in the manifest, and the sealed certificates."""

    in_manifest: Collection[str] = ()
    sealed: Collection[str] = ()
    """File names in the folder `certificates`."""

    @staticmethod
    def of(root: Path, manifest: Manifest) -> "NamedFiles":
        """Return the files of the version that a manifest describes."""
        documents = SealedDocuments(CheckedFolder(root, manifest.files), manifest.segments)
        try:
            return NamedFiles(manifest.files, documents.certificates)
        except WorkspaceError:  # a segment is damaged, so any certificate may be in it
            certificates = root / files.CERTIFICATES
            return NamedFiles(manifest.files, os.listdir(certificates) if certificates.is_dir() else ())
