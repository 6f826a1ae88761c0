"""From a state to the files that hold it and the manifest that names them; nothing becomes current here."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from erasable.data import Catalogue, Ids, Interactions
from erasable.documents import says_more
from erasable.errors import WorkspaceError, WrongUse
from erasable.grouping import Cohesion
from erasable.store import layout
from erasable.store.checkpoints import DiskCheckpoints
from erasable.store.folder import CheckedFolder
from erasable.store.loading import StoredGroups
from erasable.store.manifest import (
    CatalogueRecord,
    GroupRecord,
    HoldoutRecord,
    LinkRecord,
    Manifest,
    ScaleRecord,
    named_files,
)
from erasable.store.papers import Papers, Stamp
from erasable.store.sealing import OPEN_CERTIFICATES, SealedPapers, write_segment
from erasable.store.settings_file import encode_settings
from erasable.store.tables import encode_interactions, encode_items
from erasable.training import Knowledge, Link, State
from erasable.training.environment import Environment, distinct

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
    environments = distinct(link.environment for link in state.chain)
    fields = {
        "version": stamp.version,
        "salt": stamp.salt,
        "environments": tuple(map(dict, environments)),
        "config": folder.write(layout.CONFIG, encode_settings(knowledge.config)),
        "scale": ScaleRecord(low=knowledge.scale.low, high=knowledge.scale.high),
        "catalogue": _write_catalogue(folder, knowledge.catalogue, knowledge.kept_items),
        "groups": _write_groups(knowledge, before),
        "holdout": _write_holdout(folder, knowledge.held_out),
        "chain": tuple(_link_record(link, before.checkpoints, environments) for link in state.chain),
        "names": None,
        "files": {},
        **_write_papers(papers, before.manifest, folder),
    }
    manifest = _after(before.manifest, fields) if before.manifest else Manifest(**fields)
    return _with_hashes(manifest, before.manifest, folder)


def _after(before: Manifest, fields: Mapping[str, Any]) -> Manifest:
    """Return a manifest with other fields; what a newer version has added stays, with each record that is the same."""
    if not says_more(before):
        return before.model_copy(update=fields)
    return before.model_copy(update={name: _as_before(value, vars(before)[name]) for name, value in fields.items()})


def _as_before(value: Any, before: Any) -> Any:  # noqa: ANN401 - any field
    if isinstance(value, tuple) and isinstance(before, tuple):
        return tuple(next((one for one in before if _same(one, part)), part) for part in value)
    return before if _same(value, before) else value


def _same(one: Any, other: Any) -> bool:  # noqa: ANN401 - any field
    """Whether two records say the same, as far as it is known here."""
    if not isinstance(one, BaseModel) or type(one) is not type(other):
        return False
    return all(getattr(one, name) == getattr(other, name) for name in type(one).model_fields)


def write_papers(papers: Papers, manifest: Manifest, folder: CheckedFolder) -> Manifest:
    """Write new papers and return the manifest that would put them beside the same state."""
    return _with_hashes(manifest.model_copy(update=_write_papers(papers, manifest, folder)), manifest, folder)


def _with_hashes(manifest: Manifest, before: Manifest | None, folder: CheckedFolder) -> Manifest:
    # What no field that is known here names is named by one that a newer version has added.
    others = {*before.files} - named_files(before) if before else set()
    return manifest.model_copy(update={"files": folder.hashes(named_files(manifest) | others)}).sealed()


def _write_catalogue(
    folder: CheckedFolder, catalogue: Catalogue | None, kept: frozenset[str] | None
) -> CatalogueRecord:
    kept_file = None
    if kept is not None:
        kept_file = folder.write_hashed("kept-items.parquet", encode_items(Ids.of(kept).sorted()))
    if catalogue is None:
        return CatalogueRecord(file=None, declared=False, versions=(), kept_items=kept_file)
    return CatalogueRecord(
        file=folder.write_hashed("catalogue.parquet", encode_items(catalogue.items)),
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
    return file or before.folder.write_hashed(f"{layout.DATA}/group-{position:03d}.parquet", encode_interactions(group))


def _write_holdout(folder: CheckedFolder, held_out: Interactions) -> HoldoutRecord:
    return HoldoutRecord(
        file=folder.write_hashed(f"{layout.HOLDOUT}/held-out.parquet", encode_interactions(held_out)),
        users=len(held_out.users),
        interactions=len(held_out),
    )


def _link_record(link: Link, checkpoints: DiskCheckpoints, environments: Sequence[Environment]) -> LinkRecord:
    return LinkRecord(
        fingerprint=link.fingerprint,
        parent=link.parent,
        samples=link.samples,
        seconds=link.seconds,
        file=checkpoints.file_of(link.fingerprint),
        blocks=checkpoints.blocks_of(link.fingerprint),
        environment=environments.index(link.environment),
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
        "audit": folder.write_hashed(layout.AUDIT, audit) if audit else None,
        "key": folder.write(layout.KEY, papers.key, private=True) if papers.key else None,
        "pending": folder.write_hashed(layout.PENDING, papers.pending, private=True) if papers.pending else None,
        "requests": _write_requests(papers, before, folder),
        "preferences": papers.preferences,
    }


def _write_requests(papers: Papers, before: Manifest | None, folder: CheckedFolder) -> str | None:
    if papers.requests is None:
        return before.requests if before else None
    return folder.write_hashed(layout.REQUESTS, papers.requests, private=True)


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
    folder.write_below(layout.CERTIFICATES, certificates)
    return (*earlier, *certificates)
