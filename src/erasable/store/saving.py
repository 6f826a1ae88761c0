"""From a state to the files that hold it and the manifest that names them; nothing becomes current here."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from erasable import fingerprint
from erasable.data import Catalogue, Ids, Interactions
from erasable.errors import NotReproducible, WorkspaceError, WrongUse
from erasable.grouping import Cohesion
from erasable.store import layout
from erasable.store.checkpoints import DiskCheckpoints
from erasable.store.folder import CheckedFolder
from erasable.store.loading import StoredGroups
from erasable.store.manifest import CatalogueRecord, GroupRecord, HoldoutRecord, LinkRecord, Manifest, ScaleRecord
from erasable.store.papers import Papers, Stamp
from erasable.store.sealing import OPEN_CERTIFICATES, SealedPapers, write_segment
from erasable.store.tables import encode_interactions, encode_items
from erasable.training import Config, Knowledge, Link, State, differences, numeric_environment

_CERTIFICATE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.(json|html)")


@dataclass(frozen=True)
class Version:
    """What a commit starts from: the manifest before, if any, and where its files are."""

    manifest: Manifest | None
    folder: CheckedFolder
    checkpoints: DiskCheckpoints
    groups: StoredGroups | None
    """The groups that were handed out; those that come back untouched need not be written."""


def write_version(state: State, papers: Papers, before: Version, stamp: Stamp) -> Manifest:
    """Write what is new of a state and its papers, and return the manifest that would make it current."""
    knowledge, folder = state.knowledge, before.folder
    fields = {
        "version": stamp.version,
        "salt": stamp.salt,
        "environment": _environment(state.chain, before),
        "config": folder.write(layout.CONFIG, _encode_config(knowledge.config)),
        "scale": ScaleRecord(low=knowledge.scale.low, high=knowledge.scale.high),
        "catalogue": _write_catalogue(folder, knowledge.catalogue, knowledge.kept_items),
        "groups": _write_groups(knowledge, before),
        "holdout": _write_holdout(folder, knowledge.held_out),
        "chain": tuple(_link_record(link, before.checkpoints) for link in state.chain),
        "files": {},
        **_write_papers(papers, before.manifest, folder),
    }
    # A field of a newer version stays.
    manifest = before.manifest.model_copy(update=fields) if before.manifest else Manifest(**fields)
    return _with_hashes(manifest, folder)


def write_papers(papers: Papers, manifest: Manifest, folder: CheckedFolder) -> Manifest:
    """Write new papers and return the manifest that would put them beside the same state."""
    return _with_hashes(manifest.model_copy(update=_write_papers(papers, manifest, folder)), folder)


def named_files(manifest: Manifest) -> set[str]:
    """Return every file that a manifest names."""
    names = {manifest.config, manifest.catalogue.file, manifest.holdout.file}
    names |= {group.file for group in manifest.groups} | {link.file for link in manifest.chain}
    names |= {layout.certificate_name(name) for name in manifest.certificates}
    names |= {name for record in manifest.segments for name in (record.certificates, record.log)}
    optional = (manifest.catalogue.kept_items, manifest.audit, manifest.key, manifest.pending, manifest.requests)
    return names | {name for name in optional if name is not None}


def _with_hashes(manifest: Manifest, folder: CheckedFolder) -> Manifest:
    return manifest.model_copy(update={"files": folder.hashes(named_files(manifest))}).sealed()


def _environment(chain: Sequence[Link], before: Version) -> dict[str, str]:
    """Return the environment of the checkpoints, which must be one for the whole chain."""
    added = [before.checkpoints.was_added(link.fingerprint) for link in chain]
    if before.manifest is None or all(added):
        return numeric_environment()
    faults = differences(before.manifest.environment)
    if any(added) and faults:
        raise NotReproducible(f"{faults[0]}: train every stage again here, or go back to that machine")
    return before.manifest.environment


def _encode_config(config: Config) -> bytes:
    text = json.dumps(config.model_dump(mode="json"), indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def _write_hashed(folder: CheckedFolder, name: str, content: bytes, private: bool = False) -> str:
    return folder.write(layout.hashed_name(name, fingerprint.of_bytes(content)), content, private)


def _write_catalogue(folder: CheckedFolder, catalogue: Catalogue, kept: frozenset[str] | None) -> CatalogueRecord:
    kept_file = None
    if kept is not None:
        kept_file = _write_hashed(folder, "kept-items.parquet", encode_items(Ids.of(kept).sorted()))
    return CatalogueRecord(
        file=_write_hashed(folder, "catalogue.parquet", encode_items(catalogue.items)),
        declared=catalogue.declared,
        versions=catalogue.versions,
        kept_items=kept_file,
    )


def _write_groups(knowledge: Knowledge, before: Version) -> tuple[GroupRecord, ...]:
    return tuple(
        GroupRecord(
            position=position,
            file=_write_group(position, group, before),
            users=len(group.users),
            interactions=len(group),
            cohesion=None if known is None else known.value,
            cohesion_error=None if known is None else known.error,
        )
        for position, (group, known) in enumerate(zip(knowledge.groups, _cohesion(knowledge), strict=True))
    )


def _cohesion(knowledge: Knowledge) -> Sequence[Cohesion | None]:
    count, known = len(knowledge.groups), knowledge.cohesion
    if not known:
        return [None] * count
    if len(known) != count:
        raise WrongUse(f"cohesion of {len(known)} groups for {count} groups: give one number for each")
    return known


def _write_group(position: int, group: Interactions, before: Version) -> str:
    file = before.groups.file_of(position, group) if before.groups else None
    return file or _write_hashed(
        before.folder, f"{layout.DATA}/group-{position:03d}.parquet", encode_interactions(group)
    )


def _write_holdout(folder: CheckedFolder, held_out: Interactions) -> HoldoutRecord:
    return HoldoutRecord(
        file=_write_hashed(folder, f"{layout.HOLDOUT}/held-out.parquet", encode_interactions(held_out)),
        users=len(held_out.users),
        interactions=len(held_out),
    )


def _link_record(link: Link, checkpoints: DiskCheckpoints) -> LinkRecord:
    return LinkRecord(
        fingerprint=link.fingerprint,
        parent=link.parent,
        samples=link.samples,
        seconds=link.seconds,
        file=checkpoints.file_of(link.fingerprint),
    )


def _write_papers(papers: Papers, before: Manifest | None, folder: CheckedFolder) -> dict[str, Any]:
    if papers.certificates and before is not None:
        _refuse_issued(papers.certificates, (*before.certificates, *SealedPapers(folder, before.segments).certificates))
    certificates = _write_certificates(papers.certificates, before.certificates if before else (), folder)
    audit, segments = papers.audit, before.segments if before else ()
    if papers.seal and len(certificates) > OPEN_CERTIFICATES:
        finished, audit = _divided(audit)
        hashes = folder.hashes(map(layout.certificate_name, certificates))
        listed = {name: hashes[layout.certificate_name(name)] for name in certificates}
        certificates, segments = (), (*segments, write_segment(folder, len(segments) + 1, listed, finished))
    return {
        "certificates": certificates,
        "segments": segments,
        "audit": _write_hashed(folder, layout.AUDIT, audit) if audit else None,
        "key": folder.write(layout.KEY, papers.key, private=True) if papers.key else None,
        "pending": _write_hashed(folder, layout.PENDING, papers.pending, private=True) if papers.pending else None,
        "requests": _write_requests(papers, before, folder),
        "preferences": papers.preferences,
    }


def _write_requests(papers: Papers, before: Manifest | None, folder: CheckedFolder) -> str | None:
    if papers.requests is None:
        return before.requests if before else None
    return _write_hashed(folder, layout.REQUESTS, papers.requests, private=True)


def _divided(audit: bytes) -> tuple[bytes, bytes]:
    """Return the finished records, and the last one, which the next one follows."""
    end = audit.rstrip(b"\n").rfind(b"\n") + 1
    return audit[:end], audit[end:]


def _refuse_issued(certificates: Iterable[str], issued: Collection[str]) -> None:
    taken = next(iter({*certificates}.intersection(issued)), None)
    if taken is not None:
        raise WorkspaceError(f"there is a certificate {taken} already: give each request its own id")


def _write_certificates(
    certificates: Mapping[str, bytes], earlier: tuple[str, ...], folder: CheckedFolder
) -> tuple[str, ...]:
    for name in certificates:
        if not _CERTIFICATE.fullmatch(name):
            raise WrongUse(f"{name!r} can't name a certificate: use letters, digits, dots, dashes, and .json or .html")
    for name, content in certificates.items():
        folder.write(layout.certificate_name(name), content)
    return (*earlier, *certificates)
