"""From a manifest and its files to a state; the data of a group is read when it is first asked for."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar, overload

import pyarrow as pa

from erasable.data import Catalogue, Interactions, RatingScale, over_own_items
from erasable.errors import DataRefused, WrongUse
from erasable.grouping import Cohesion
from erasable.models import Model
from erasable.store import from_0_1
from erasable.store.folder import CheckedFolder
from erasable.store.layout import MANIFEST
from erasable.store.manifest import CatalogueRecord, GroupRecord, LinkRecord, Manifest, damaged
from erasable.store.sealing import SealedPapers
from erasable.store.settings_file import decode_settings
from erasable.store.tables import decode_interactions, decode_items
from erasable.training import Config, Knowledge, Link, State

_Content = TypeVar("_Content")


class StoredGroups(Sequence[Interactions]):
    """The interactions of each group, each read once."""

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
        """Return the file that these very rows were read from, if they were; their items may have other numbers."""
        loaded = self._loaded.get(position)
        return self._records[position].file if loaded is not None and loaded.has_rows_of(group) else None


class IssuedFiles(Mapping[str, bytes]):
    """Certificates by file name, oldest first; each is read when it is looked at, inside the block."""

    def __init__(self, names: Sequence[str], read: Callable[[str], bytes], sealed: SealedPapers) -> None:
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
    """Return the state that a manifest describes; its model is one that is registered, or the one handed over."""
    catalogue = _load_catalogue(folder, manifest.catalogue)
    groups, held_out = _load_data(folder, manifest, catalogue)
    knowledge = Knowledge(
        config=_load_config(folder, manifest, model),
        catalogue=catalogue,
        scale=RatingScale(manifest.scale.low, manifest.scale.high),
        groups=groups,
        held_out=held_out,
        kept_items=_load_kept_items(folder, manifest.catalogue),
        cohesion=tuple(map(_cohesion, manifest.groups)),
    )
    state = _with_chain(knowledge, folder, manifest)
    if not len({link.fingerprint for link in state.chain}) == len(state.chain) == knowledge.stages:
        raise damaged(folder.root / MANIFEST)
    return state


def _with_chain(knowledge: Knowledge, folder: CheckedFolder, manifest: Manifest) -> State:
    """Return the state with the chain that a manifest names; that of 0.1 is handed on under the names of today."""
    chain, catalogue = tuple(_link(link, manifest.environments) for link in manifest.chain), knowledge.catalogue
    if manifest.names != from_0_1.VERSION or catalogue is None:
        return State(knowledge, chain)
    settings = from_0_1.settings_of_0_1(folder.read(manifest.config), str(folder.root / manifest.config))
    versions, highest = manifest.catalogue.versions, manifest.scale.high
    recipe = from_0_1.Recipe(settings, catalogue.items, versions, highest, knowledge.groups)
    return State(knowledge, from_0_1.chain_from_0_1(knowledge, chain, recipe.names()), recorded=chain)


def _link(record: LinkRecord, environments: Sequence[Mapping[str, str]]) -> Link:
    environment = environments[record.environment]
    return Link(record.fingerprint, record.parent, record.samples, record.seconds, environment)


def _load_config(folder: CheckedFolder, manifest: Manifest, model: type[Model] | None) -> Config:
    content, file = folder.read(manifest.config), str(folder.root / manifest.config)
    if manifest.names == from_0_1.VERSION:
        return from_0_1.config_of_0_1(from_0_1.settings_of_0_1(content, file), file)
    return decode_settings(content, file, model)


def _decoded(folder: CheckedFolder, name: str, decode: Callable[[bytes], _Content]) -> _Content:
    """Return what a file of a table holds; one that is no such table is damaged."""
    content = folder.read(name)
    try:
        return decode(content)
    except (pa.ArrowException, ValueError, KeyError, TypeError, WrongUse, DataRefused) as error:
        raise damaged(folder.root / name) from error


def _load_data(
    folder: CheckedFolder, manifest: Manifest, catalogue: Catalogue | None
) -> tuple[StoredGroups, Interactions]:
    """Return the groups and what is held out; if items follow the people, all of it is read to find them."""

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


def _cohesion(group: GroupRecord) -> Cohesion | None:
    return None if group.cohesion is None else Cohesion(group.cohesion, group.cohesion_error or 0.0)
