"""From the files of a version to a state and back; interactions and items are stored as Parquet."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel

from erasable.chain.buckets import Bucket, Buckets
from erasable.chain.checkpoints import Link
from erasable.chain.counts import Counts, Rules
from erasable.chain.dataset import (
    Dataset,
    State,
)
from erasable.chain.settings import Config
from erasable.chain.tasks import Environment, distinct, link_names
from erasable.data.catalogue import Catalogue, over_own_items
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions, RatingScale
from erasable.data.item_features import ItemFeatures
from erasable.data.slots import SLOTS
from erasable.documents import says_more
from erasable.errors import WorkspaceError, WrongUse
from erasable.grouping.groups import Cohesion
from erasable.models.base import Model
from erasable.workspace import files
from erasable.workspace._settings_file import (
    NAMED_BY_0_1,
    Recipe,
    config_of_0_1,
    decode_settings,
    encode_settings,
    names_of_0_2,
    renamed_chain,
    settings_of_0_1,
)
from erasable.workspace.checkpoints import DiskCheckpoints
from erasable.workspace.files import MANIFEST
from erasable.workspace.folder import OPEN_CERTIFICATES, CheckedFolder, SealedDocuments, write_segment
from erasable.workspace.manifest import (
    BucketRecord,
    CatalogueRecord,
    CountsRecord,
    Documents,
    GroupRecord,
    LinkRecord,
    Manifest,
    ScaleRecord,
    Stamp,
    damaged,
    named_files,
)
from erasable.workspace.tables import (
    CountsFiles,
    Expected,
    MalformedCounts,
    StoredFile,
    check_counts,
    decode_counts,
    decode_features,
    decode_interactions,
    decode_items,
    decoded,
    encode_counts,
    encode_features,
    encode_items,
    keep_bucket,
)


class IssuedFiles(Mapping[str, bytes]):
    """Certificates by file name, oldest first; each is read on access, while the workspace is open."""

    def __init__(self, names: Sequence[str], read: Callable[[str], bytes], sealed: SealedDocuments) -> None:
        self._open = dict.fromkeys(names)
        self._read = read
        self._sealed = sealed

    def __getitem__(self, name: str) -> bytes:
        if name in self._open:
            return self._read(name)
        return self._sealed.read(name)

    def __iter__(self) -> Iterator[str]:
        yield from self._sealed.certificates
        yield from self._open

    def __len__(self) -> int:
        return len(self._open) + len(self._sealed.certificates)

    def __contains__(self, name: object) -> bool:
        return name in self._open or name in self._sealed.certificates


def load_state(folder: CheckedFolder, manifest: Manifest, model: type[Model] | None = None) -> State:
    """Return the state that a manifest describes; its model is a registered one, or the class passed in.

    No bucket is read. Workspaces of before format 5 have a file for each group: these are read.
    """
    catalogue, config = load_catalogue(folder, manifest.catalogue), _load_config(folder, manifest, model)
    scale = RatingScale(manifest.scale.low, manifest.scale.high)
    kept, cohesion = load_kept_items(folder, manifest.catalogue), tuple(map(cohesion_in, manifest.groups))
    chain = tuple(_link(link, manifest.environments) for link in manifest.chain)
    if manifest.counts is None:
        groups, held_out = _load_groups(folder, manifest, catalogue)
        dataset = Dataset.of_groups(config, catalogue, scale, groups, held_out, kept, cohesion)
        state = _renamed(dataset, chain, folder, manifest)
    else:
        count = len(manifest.groups)
        buckets, counts = _load_buckets(folder, manifest, manifest.counts, config, catalogue)
        features = load_features(folder, manifest.catalogue)
        state = State(Dataset(config, catalogue, scale, buckets, count, kept, cohesion, counts, features), chain)
    if not len({link.fingerprint for link in state.chain}) == len(state.chain) == state.dataset.stages:
        raise damaged(folder.root / MANIFEST)
    return state


def _load_buckets(
    folder: CheckedFolder, manifest: Manifest, record: CountsRecord, config: Config, catalogue: Catalogue | None
) -> tuple[Buckets, Counts]:
    """Return the buckets, unread, and the counts."""
    if len(manifest.chain) != stages_in(config, manifest.groups):
        raise damaged(folder.root / MANIFEST)
    items, counts = load_counts(folder, record, config, manifest.groups, catalogue)
    placed = [(folder, bucket) for bucket in manifest.buckets]
    return buckets_in(placed, counts, items, len(manifest.groups)), counts


def stages_in(config: Config, groups: Sequence[GroupRecord]) -> int:
    """Return how many stages a chain over these groups has."""
    return min(config.groups, len(groups)) if config.rows == "solved" else len(groups)


def load_counts(
    folder: CheckedFolder,
    record: CountsRecord,
    config: Config,
    groups: Sequence[GroupRecord],
    catalogue: Catalogue | None,
) -> tuple[Ids, Counts]:
    """Return all items, and the counts."""
    contents = CountsFiles(*map(folder.read, (record.items, record.slots, record.histories)))
    try:
        rules = Rules.of(config, stages_in(config, groups))
        ids, counts = decode_counts(contents, rules, record.held_out)
        items = ids if catalogue is None else catalogue.items
        if items != ids:  # those that were counted are not those of the catalogue
            raise MalformedCounts("items")
        check_counts(counts, groups)
    except MalformedCounts as error:
        raise damaged(folder.root / getattr(record, error.table)) from error
    return items, counts


def buckets_in(
    placed: Sequence[tuple[CheckedFolder, BucketRecord]], counts: Counts, items: Ids, groups: int
) -> Buckets:
    """Return buckets in files, each in its folder, unread."""
    seed, starts = counts.rules.seed, [bucket.slot for _, bucket in placed]
    bounds = np.searchsorted(counts.slots, [*starts, SLOTS])
    parts = [
        StoredFile(folder, bucket, Expected(counts.slots[low:high], counts.people[low:high], seed, groups), items)
        for (folder, bucket), low, high in zip(placed, bounds, bounds[1:], strict=False)
    ]
    return Buckets(parts, starts, items, seed)


def _renamed(dataset: Dataset, chain: tuple[Link, ...], folder: CheckedFolder, manifest: Manifest) -> State:
    """Return a state of an earlier release with today's names of its checkpoints."""
    catalogue = dataset.catalogue
    if manifest.names == NAMED_BY_0_1 and catalogue is not None:
        settings = settings_of_0_1(folder.read(manifest.config), str(folder.root / manifest.config))
        versions, highest = manifest.catalogue.versions, manifest.scale.high
        names = Recipe(settings, catalogue.items, versions, highest, dataset.groups).names()
    else:
        names = names_of_0_2(dataset)
    return State(dataset, renamed_chain(chain, names, link_names(dataset)), recorded=chain)


def _link(record: LinkRecord, environments: Sequence[Mapping[str, str]]) -> Link:
    environment = environments[record.environment]
    return Link(record.fingerprint, record.parent, record.samples, record.seconds, environment)


def _load_config(folder: CheckedFolder, manifest: Manifest, model: type[Model] | None) -> Config:
    content, file = folder.read(manifest.config), str(folder.root / manifest.config)
    if manifest.names == NAMED_BY_0_1:
        return config_of_0_1(settings_of_0_1(content, file), file)
    return decode_settings(content, file, model)


def _load_groups(
    folder: CheckedFolder, manifest: Manifest, catalogue: Catalogue | None
) -> tuple[list[Interactions], Interactions]:
    """Return the groups and the holdout of a workspace of before format 5."""
    names = [*(group.file for group in manifest.groups), manifest.holdout.file if manifest.holdout else None]

    def read(name: str) -> Interactions:
        items = catalogue.items if catalogue else None
        return decoded(folder, name, lambda content: decode_interactions(content, items))

    parts = [read(name) for name in names if name is not None]
    *groups, held_out = over_own_items(parts) if catalogue is None else parts
    return groups, held_out


def load_catalogue(folder: CheckedFolder, record: CatalogueRecord) -> Catalogue | None:
    """Return the catalogue, if there is a file of one."""
    if record.file is None:
        return None
    return decoded(
        folder, record.file, lambda content: Catalogue(decode_items(content), record.versions, record.declared)
    )


def load_kept_items(folder: CheckedFolder, record: CatalogueRecord) -> frozenset[str] | None:
    """Return the items that the filter kept, if there was one."""
    return None if record.kept_items is None else frozenset(decoded(folder, record.kept_items, decode_items))


def load_features(folder: CheckedFolder, record: CatalogueRecord) -> ItemFeatures | None:
    """Return the declared features of items, if there are any."""
    return None if record.features is None else decoded(folder, record.features, decode_features)


def cohesion_in(group: GroupRecord) -> Cohesion | None:
    """Return the cohesion of a group, if it is known."""
    return None if group.cohesion is None else Cohesion(group.cohesion, group.cohesion_error or 0.0)


_CERTIFICATE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.(json|html)")


@dataclass(frozen=True)
class Version:
    """What a commit starts from: the previous manifest, if any, and its files."""

    manifest: Manifest | None
    folder: CheckedFolder
    checkpoints: DiskCheckpoints


def write_version(state: State, documents: Documents, before: Version, stamp: Stamp) -> Manifest:
    """Write the new files of a state and its documents, and return the manifest that would make them current."""
    dataset, folder = state.dataset, before.folder
    environments = distinct(link.environment for link in state.chain)
    fields = {
        "version": stamp.version,
        "salt": stamp.salt,
        "environments": tuple(map(dict, environments)),
        "config": folder.write(files.CONFIG, encode_settings(dataset.config)),
        "scale": ScaleRecord(low=dataset.scale.low, high=dataset.scale.high),
        "catalogue": write_catalogue(folder, dataset),
        "groups": group_records(dataset),
        "holdout": None,
        "buckets": _write_buckets(folder, dataset),
        "counts": write_counts(folder, dataset),
        "chain": tuple(_link_record(link, before.checkpoints, environments) for link in state.chain),
        "names": None,
        "files": {},
        **_write_documents(documents, before.manifest, folder),
    }
    manifest = _after(before.manifest, fields) if before.manifest else Manifest(**fields)
    return _with_hashes(manifest, before.manifest, folder)


def _after(before: Manifest, fields: Mapping[str, Any]) -> Manifest:
    """Return a manifest with new fields; what a newer version added stays, also in records that are unchanged."""
    if not says_more(before):
        return before.model_copy(update=fields)
    return before.model_copy(update={name: _as_before(value, vars(before)[name]) for name, value in fields.items()})


def _as_before(value: Any, before: Any) -> Any:  # noqa: ANN401 - any field
    if isinstance(value, tuple) and isinstance(before, tuple):
        return tuple(next((one for one in before if _same(one, part)), part) for part in value)
    return before if _same(value, before) else value


def _same(one: Any, other: Any) -> bool:  # noqa: ANN401 - any field
    """Whether two records agree in all fields that this version knows."""
    if not isinstance(one, BaseModel) or type(one) is not type(other):
        return False
    return all(getattr(one, name) == getattr(other, name) for name in type(one).model_fields)


def write_documents(documents: Documents, manifest: Manifest, folder: CheckedFolder) -> Manifest:
    """Write new documents, and return the manifest that would add them to the same state."""
    return _with_hashes(manifest.model_copy(update=_write_documents(documents, manifest, folder)), manifest, folder)


def _with_hashes(manifest: Manifest, before: Manifest | None, folder: CheckedFolder) -> Manifest:
    # Files that no field known here names belong to a field that a newer version added.
    others = {*before.files} - named_files(before) if before else set()
    return manifest.model_copy(update={"files": folder.hashes(named_files(manifest) | others)}).sealed()


def write_catalogue(folder: CheckedFolder, dataset: Dataset) -> CatalogueRecord:
    """Write a catalogue, the items that the filter kept, and the features of items."""
    catalogue, kept, features = dataset.catalogue, dataset.kept_items, dataset.features
    kept_file = features_file = None
    if kept is not None:
        kept_file = folder.write_hashed("kept-items.parquet", encode_items(Ids.of(kept).sorted()))
    if features is not None:
        features_file = folder.write_hashed("item-features.parquet", encode_features(features))
    if catalogue is None:
        return CatalogueRecord(file=None, declared=False, versions=(), kept_items=kept_file, features=features_file)
    return CatalogueRecord(
        file=folder.write_hashed("catalogue.parquet", encode_items(catalogue.items)),
        declared=catalogue.declared,
        versions=catalogue.versions,
        kept_items=kept_file,
        features=features_file,
    )


def group_records(dataset: Dataset) -> tuple[GroupRecord, ...]:
    """Return what a manifest says of each group."""
    return tuple(
        GroupRecord(
            position=position,
            users=size.users,
            interactions=len(size),
            cohesion=None if known is None else known.value,
            cohesion_error=None if known is None else known.error,
        )
        for position, (size, known) in enumerate(zip(dataset.group_sizes(), _cohesion(dataset), strict=True))
    )


def _cohesion(dataset: Dataset) -> Sequence[Cohesion | None]:
    count, known = dataset.group_count, dataset.cohesion
    if not known:
        return [None] * count
    if len(known) != count:
        raise WrongUse(f"cohesion of {len(known)} groups for {count} groups: give one number for each")
    return known


def _write_buckets(folder: CheckedFolder, dataset: Dataset) -> tuple[BucketRecord, ...]:
    """Write the buckets that are new; the others keep their files."""
    records, buckets = list[BucketRecord](), dataset.buckets
    for number, (part, slot) in enumerate(zip(buckets.parts, buckets.starts, strict=True)):
        if isinstance(part, StoredFile) and part.folder is folder:
            records.append(part.record.model_copy(update={"slot": slot}))
        else:
            bucket = part if isinstance(part, Bucket) else part.read(buckets.items)
            kept = keep_bucket(folder, bucket, number, buckets.seed, dataset.group_count)
            records.append(kept.record.model_copy(update={"slot": slot}))
    return tuple(records)


def write_counts(folder: CheckedFolder, dataset: Dataset) -> CountsRecord:
    """Write what is counted of all people."""
    names = CountsFiles._fields
    written = zip(names, encode_counts(dataset.items, dataset.counts), strict=True)
    named = {name: folder.write_hashed(f"{files.DATA}/{name}.parquet", content) for name, content in written}
    return CountsRecord(**named, held_out=dataset.counts.held_out)


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


def _write_documents(documents: Documents, before: Manifest | None, folder: CheckedFolder) -> dict[str, Any]:
    if documents.certificates and before is not None:
        _refuse_issued(
            documents.certificates, (*before.certificates, *SealedDocuments(folder, before.segments).certificates)
        )
    certificates = _write_certificates(documents.certificates, before.certificates if before else (), folder)
    log, segments = documents.log, before.segments if before else ()
    if documents.seal and len(certificates) > OPEN_CERTIFICATES:
        finished, log = _divided(log)
        hashes = folder.hashes(map(files.certificate_name, certificates))
        listed = {name: hashes[files.certificate_name(name)] for name in certificates}
        certificates, segments = (), (*segments, write_segment(folder, len(segments) + 1, listed, finished))
    return {
        "certificates": certificates,
        "segments": segments,
        "audit": folder.write_hashed(files.AUDIT, log) if log else None,
        "key": folder.write(files.KEY, documents.key, private=True) if documents.key else None,
        "pending": folder.write_hashed(files.PENDING, documents.pending, private=True) if documents.pending else None,
        "requests": _write_requests(documents, before, folder),
        "declared_items": _write_declared_items(documents, before, folder),
        "preferences": documents.preferences,
    }


def _write_requests(documents: Documents, before: Manifest | None, folder: CheckedFolder) -> str | None:
    if documents.requests is None:
        return before.requests if before else None
    return folder.write_hashed(files.REQUESTS, documents.requests, private=True)


def _write_declared_items(documents: Documents, before: Manifest | None, folder: CheckedFolder) -> str | None:
    if documents.declared_items is None:
        return before.declared_items if before else None
    return folder.write_hashed(files.DECLARED_ITEMS, documents.declared_items) if documents.declared_items else None


def _divided(log: bytes) -> tuple[bytes, bytes]:
    """Split off the last record, which stays unsealed because the next one refers to it."""
    end = log.rstrip(b"\n").rfind(b"\n") + 1
    return log[:end], log[end:]


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
    folder.write_below(files.CERTIFICATES, certificates)
    return (*earlier, *certificates)
