"""Sealed papers: finished certificates and records of the log, listed in segments that the manifest names.

A certificate stays where it is; its hash moves from the manifest into a segment, and finished records move into one of
their own. So what every command reads and writes does not grow with the erasures that were ever carried out.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from erasable import fingerprint
from erasable.errors import WorkspaceDamaged, WorkspaceError
from erasable.fingerprint import canonical_json
from erasable.store import layout
from erasable.store.folder import CheckedFolder
from erasable.store.manifest import RESTORE, Manifest, SegmentRecord

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
        return {name: digest for record in self.records for name, digest in self._listed(record).items()}

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

    def _listed(self, record: SegmentRecord) -> dict[str, str]:
        fields = json.loads(self.folder.read(record.certificates))
        if fields["format"] != _FORMAT:
            raise WorkspaceDamaged(f"{self.folder.root / record.certificates} has another format: {RESTORE}")
        return dict(fields["files"])


def write_segment(folder: CheckedFolder, number: int, certificates: Mapping[str, str], log: bytes) -> SegmentRecord:
    """Write a segment: the hashes of finished certificates by name, and finished records."""
    listed = canonical_json({"format": _FORMAT, "files": [*certificates.items()]}) + b"\n"
    places = {f"{layout.SEALED}/certificates-{number:04d}.json": listed, f"{layout.SEALED}/log-{number:04d}.jsonl": log}
    files = [
        folder.write(layout.hashed_name(name, fingerprint.of_bytes(content)), content)
        for name, content in places.items()
    ]
    erasures = sum(name.endswith(".json") for name in certificates)
    return SegmentRecord(certificates=files[0], log=files[1], erasures=erasures)


class NamedFiles(Collection[str]):
    """The files of a version: those that the manifest names, and as members also those that are sealed."""

    def __init__(self, root: Path, manifest: Manifest) -> None:
        self._named = manifest.files
        self._sealed = SealedPapers(CheckedFolder(root, manifest.files), manifest.segments)

    def __contains__(self, name: object) -> bool:
        if name in self._named:
            return True
        if self._sealed_files is None:
            return isinstance(name, str) and name.startswith(layout.CERTIFICATES)
        return name in self._sealed_files

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    @cached_property
    def _sealed_files(self) -> frozenset[str] | None:
        """The sealed files; None if a segment is damaged: then every certificate is taken for one of them."""
        try:
            return frozenset(map(layout.certificate_name, self._sealed.certificates))
        except WorkspaceError:
            return None
