"""Sealed papers: finished certificates and records of the log, listed in segments that the manifest names.

A certificate stays where it is; its hash moves from the manifest into a segment, and finished records move into one of
their own. So what every command reads and writes does not grow with the erasures that were ever carried out.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path

from erasable import fingerprint
from erasable.documents import format_in, newer, read_json
from erasable.errors import WorkspaceDamaged, WorkspaceError
from erasable.fingerprint import canonical_json
from erasable.store import layout
from erasable.store.folder import CheckedFolder, read_whole
from erasable.store.manifest import Manifest, SegmentRecord, damaged

OPEN_CERTIFICATES = 64
"""More files of certificates than this are sealed with the next erasure."""
_FORMAT = 1


@dataclass(frozen=True)
class SealedPapers:
    """The sealed papers of one version, each segment read when something of it is first asked for."""

    folder: CheckedFolder
    records: tuple[SegmentRecord, ...] = ()

    @cached_property
    def certificates(self) -> Mapping[str, str]:
        """The hash of every sealed certificate by file name, oldest first."""
        return _all_listed(tuple((self.folder.root / one.certificates, self._digest(one)) for one in self.records))

    def log(self) -> bytes:
        """Return the sealed records of the log, oldest first."""
        return b"".join(self.folder.read(record.log) for record in self.records)

    def read(self, name: str) -> bytes:
        """Return a sealed certificate once its hash is found right."""
        return self.folder.read_as(layout.certificate_name(name), self.certificates[name])

    def damaged(self) -> list[str]:
        """Return every sealed certificate that is missing or not what it must be."""
        found = (layout.certificate_name(name) for name in self.certificates if not self._is_whole(name))
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
    """Return what all segments list; the same object each time, so that what was made of it need not be made again."""
    return dict(chain.from_iterable(_listed(path, digest).items() for path, digest in segments))


@lru_cache(maxsize=4096)
def _listed(path: Path, digest: str) -> Mapping[str, str]:
    """Return what a segment lists; a command looks at it several times, and its name tells what is in it."""
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
        if not all(layout.is_plain(name) and isinstance(one, str) for name, one in listed.items()):
            raise ValueError("it lists what is no file")
        return listed
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(path) from error


def write_segment(folder: CheckedFolder, number: int, certificates: Mapping[str, str], log: bytes) -> SegmentRecord:
    """Write a segment: the hashes of finished certificates by name, and finished records."""
    listed = canonical_json({"format": _FORMAT, "files": [*certificates.items()]}) + b"\n"
    places = {f"{layout.SEALED}/certificates-{number:04d}.json": listed, f"{layout.SEALED}/log-{number:04d}.jsonl": log}
    files = [folder.write_hashed(name, content) for name, content in places.items()]
    erasures = sum(name.endswith(".json") for name in certificates)
    return SegmentRecord(certificates=files[0], log=files[1], erasures=erasures)


@dataclass(frozen=True)
class NamedFiles:
    """The files of a version: those that the manifest names, and certificates that are sealed."""

    in_manifest: Collection[str] = ()
    sealed: Collection[str] = ()
    """Names in the folder of the certificates."""

    @staticmethod
    def of(root: Path, manifest: Manifest) -> "NamedFiles":
        """Return the files of the version that a manifest describes."""
        papers = SealedPapers(CheckedFolder(root, manifest.files), manifest.segments)
        try:
            return NamedFiles(manifest.files, papers.certificates)
        except WorkspaceError:  # what a damaged segment lists is not known: then every certificate may be in it
            certificates = root / layout.CERTIFICATES
            return NamedFiles(manifest.files, os.listdir(certificates) if certificates.is_dir() else ())
