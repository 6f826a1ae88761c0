"""From the files of a version to a state and back; interactions and items are stored as Parquet."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel

from erasable.chain.dataset import Dataset, Link, State
from erasable.chain.settings import Config
from erasable.chain.tasks import Environment, distinct, link_names
from erasable.data.catalogue import Catalogue, over_own_items
from erasable.data.ids import ArrowColumn, Ids
from erasable.data.interactions import Interactions, RatingScale
from erasable.documents import says_more
from erasable.errors import DataRefused, WorkspaceError, WrongUse
from erasable.grouping.groups import Cohesion
from erasable.models.base import Model
from erasable.workspace import files
from erasable.workspace._settings_file import (
    NAMED_BY_0_1,
    Recipe,
    chain_from_0_1,
    config_of_0_1,
    decode_settings,
    encode_settings,
    settings_of_0_1,
)
from erasable.workspace.checkpoints import DiskCheckpoints
from erasable.workspace.files import MANIFEST
from erasable.workspace.folder import OPEN_CERTIFICATES, CheckedFolder, SealedDocuments, write_segment
from erasable.workspace.manifest import (
    CatalogueRecord,
    Documents,
    GroupRecord,
    HoldoutRecord,
    LinkRecord,
    Manifest,
    ScaleRecord,
    Stamp,
    damaged,
    named_files,
)

_IDS = ["user_id", "item_id"]


def encode_interactions(interactions: Interactions) -> bytes:
    """Write interactions as (user_id, item_id, rating[, time]); an unknown time is NaN."""
    columns = {
        "user_id": _texts(interactions.users, interactions.user_index),
        "item_id": _texts(interactions.items, interactions.item_index),
        "rating": pa.array(interactions.rating),
    }
    if interactions.time is not None:
        columns["time"] = pa.array(interactions.time)
    return _encode(pa.table(columns))


def decode_interactions(content: bytes, items: Ids | None = None) -> Interactions:
    """Read interactions; items are numbered by the list given, or sorted by their UTF-8 bytes."""
    table = _decode(content, read_dictionary=_IDS)
    time = np.asarray(table["time"]) if "time" in table.column_names else None
    read, _ = Interactions.from_columns(table["user_id"], table["item_id"], np.asarray(table["rating"]), time)
    return read if items is None else read.with_items(items)


def encode_items(items: Ids) -> bytes:
    """Write item ids, in order."""
    return _encode(pa.table({"item_id": items.array}))


def decode_items(content: bytes) -> Ids:
    """Read item ids, in order."""
    table = _decode(content)
    return Ids(pa.concat_arrays([pa.array([], pa.string()), *table["item_id"].chunks]))


def _decode(content: bytes, **options: Any) -> Any:  # noqa: ANN401 - Arrow's own
    # Not pq.read_table: it always reads in a thread of Arrow's pool, which may release the content, a Python object,
    # only while the interpreter shuts down; then the process aborts.
    with pq.ParquetFile(pa.BufferReader(content), **options) as file:
        return file.read(use_threads=False)


def _texts(ids: Ids, index: NDArray[np.int32]) -> ArrowColumn:
    # Parquet would write the whole dictionary; the file must only hold ids that occur in a row.
    used = np.zeros(len(ids), dtype=bool)
    used[index] = True
    place = (np.cumsum(used) - 1).astype(np.int32)
    values = ids.array.take(pa.array(np.flatnonzero(used)))
    numbers: ArrowColumn = pa.array(place[index])
    return pa.DictionaryArray.from_arrays(numbers, values)


def _encode(table: ArrowColumn) -> bytes:
    sink: Any = pa.BufferOutputStream()
    # Without Arrow's own schema every reader sees plain text.
    pq.write_table(table, sink, compression="zstd", store_schema=False)
    content: bytes = sink.getvalue().to_pybytes()
    return content


_Content = TypeVar("_Content")


class StoredGroups(Sequence[Interactions]):
    """The interactions of each group, read when first used."""

    def __init__(
        self, records: Sequence[GroupRecord], read: Callable[[str], Interactions], loaded: Iterable[Interactions] = ()
    ) -> None:
        self._records = tuple(records)
        self._read = read
        self._loaded = dict(enumerate(loaded))

    @overload
    def __getitem__(self, position: int) -> Interactions: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[Interactions, ...]: ...
    def __getitem__(self, position: int | slice) -> Interactions | tuple[Interactions, ...]:
        """Return the group at a position, or several."""
        if isinstance(position, slice):
            return tuple(self[place] for place in range(*position.indices(len(self))))
        place = range(len(self))[position]
        if place not in self._loaded:
            self._loaded[place] = self._read(self._records[place].file)
        return self._loaded[place]

    def __len__(self) -> int:
        return len(self._records)

    def file_of(self, position: int, group: Interactions) -> str | None:
        """Return the file that these rows were read from, if they are unchanged; items may have been renumbered."""
        loaded = self._loaded.get(position)
        return self._records[position].file if loaded is not None and loaded.has_rows_of(group) else None


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
    """Return the state that a manifest describes; its model is a registered one, or the class passed in."""
    catalogue = _load_catalogue(folder, manifest.catalogue)
    groups, held_out = _load_data(folder, manifest, catalogue)
    dataset = Dataset(
        config=_load_config(folder, manifest, model),
        catalogue=catalogue,
        scale=RatingScale(manifest.scale.low, manifest.scale.high),
        groups=groups,
        held_out=held_out,
        kept_items=_load_kept_items(folder, manifest.catalogue),
        cohesion=tuple(map(_cohesion_in, manifest.groups)),
    )
    state = _with_chain(dataset, folder, manifest)
    if not len({link.fingerprint for link in state.chain}) == len(state.chain) == dataset.stages:
        raise damaged(folder.root / MANIFEST)
    return state


def _with_chain(dataset: Dataset, folder: CheckedFolder, manifest: Manifest) -> State:
    """Return the state with its chain; checkpoints named by version 0.1 get today's names."""
    chain, catalogue = tuple(_link(link, manifest.environments) for link in manifest.chain), dataset.catalogue
    if manifest.names != NAMED_BY_0_1 or catalogue is None:
        return State(dataset, chain)
    settings = settings_of_0_1(folder.read(manifest.config), str(folder.root / manifest.config))
    versions, highest = manifest.catalogue.versions, manifest.scale.high
    recipe = Recipe(settings, catalogue.items, versions, highest, dataset.groups)
    return State(dataset, chain_from_0_1(chain, recipe.names(), link_names(dataset)), recorded=chain)


def _link(record: LinkRecord, environments: Sequence[Mapping[str, str]]) -> Link:
    environment = environments[record.environment]
    return Link(record.fingerprint, record.parent, record.samples, record.seconds, environment)


def _load_config(folder: CheckedFolder, manifest: Manifest, model: type[Model] | None) -> Config:
    content, file = folder.read(manifest.config), str(folder.root / manifest.config)
    if manifest.names == NAMED_BY_0_1:
        return config_of_0_1(settings_of_0_1(content, file), file)
    return decode_settings(content, file, model)


def _decoded(folder: CheckedFolder, name: str, decode: Callable[[bytes], _Content]) -> _Content:
    """Read a Parquet file, or report it as damaged."""
    content = folder.read(name)
    try:
        return decode(content)
    except (pa.ArrowException, ValueError, KeyError, TypeError, WrongUse, DataRefused) as error:
        raise damaged(folder.root / name) from error


def _load_data(
    folder: CheckedFolder, manifest: Manifest, catalogue: Catalogue | None
) -> tuple[StoredGroups, Interactions]:
    """Return the groups and the holdout; without a catalogue file, all are read at once to find the items."""

    def read(name: str) -> Interactions:
        items = catalogue.items if catalogue else None
        return _decoded(folder, name, lambda content: decode_interactions(content, items))

    if catalogue is not None:
        return StoredGroups(manifest.groups, read), read(manifest.holdout.file)
    *groups, held_out = over_own_items([*(read(group.file) for group in manifest.groups), read(manifest.holdout.file)])
    return StoredGroups(manifest.groups, read, groups), held_out


def _load_catalogue(folder: CheckedFolder, record: CatalogueRecord) -> Catalogue | None:
    if record.file is None:
        return None
    return _decoded(
        folder, record.file, lambda content: Catalogue(decode_items(content), record.versions, record.declared)
    )


def _load_kept_items(folder: CheckedFolder, record: CatalogueRecord) -> frozenset[str] | None:
    return None if record.kept_items is None else frozenset(_decoded(folder, record.kept_items, decode_items))


def _cohesion_in(group: GroupRecord) -> Cohesion | None:
    return None if group.cohesion is None else Cohesion(group.cohesion, group.cohesion_error or 0.0)


_CERTIFICATE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.(json|html)")


@dataclass(frozen=True)
class Version:
    """What a commit starts from: the previous manifest, if any, and its files."""

    manifest: Manifest | None
    folder: CheckedFolder
    checkpoints: DiskCheckpoints
    groups: StoredGroups | None
    """The groups that were read; those that are committed unchanged need not be written."""


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
        "catalogue": _write_catalogue(folder, dataset.catalogue, dataset.kept_items),
        "groups": _write_groups(dataset, before),
        "holdout": _write_holdout(folder, dataset.held_out),
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


def _write_groups(dataset: Dataset, before: Version) -> tuple[GroupRecord, ...]:
    return tuple(
        GroupRecord(
            position=position,
            file=_write_group(position, group, before),
            users=len(group.users),
            interactions=len(group),
            cohesion=None if known is None else known.value,
            cohesion_error=None if known is None else known.error,
        )
        for position, (group, known) in enumerate(zip(dataset.groups, _cohesion(dataset), strict=True))
    )


def _cohesion(dataset: Dataset) -> Sequence[Cohesion | None]:
    count, known = len(dataset.groups), dataset.cohesion
    if not known:
        return [None] * count
    if len(known) != count:
        raise WrongUse(f"cohesion of {len(known)} groups for {count} groups: give one number for each")
    return known


def _write_group(position: int, group: Interactions, before: Version) -> str:
    file = before.groups.file_of(position, group) if before.groups else None
    return file or before.folder.write_hashed(f"{files.DATA}/group-{position:03d}.parquet", encode_interactions(group))


def _write_holdout(folder: CheckedFolder, held_out: Interactions) -> HoldoutRecord:
    return HoldoutRecord(
        file=folder.write_hashed(f"{files.HOLDOUT}/held-out.parquet", encode_interactions(held_out)),
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
        "preferences": documents.preferences,
    }


def _write_requests(documents: Documents, before: Manifest | None, folder: CheckedFolder) -> str | None:
    if documents.requests is None:
        return before.requests if before else None
    return folder.write_hashed(files.REQUESTS, documents.requests, private=True)


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
