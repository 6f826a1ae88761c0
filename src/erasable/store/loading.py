"""From a manifest and its files to a state; the data of a group is read when it is first asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload

from pydantic import ValidationError

from erasable.data import Catalogue, Interactions, RatingScale
from erasable.errors import WorkspaceError
from erasable.grouping import Cohesion
from erasable.store.folder import CheckedFolder
from erasable.store.manifest import CatalogueRecord, GroupRecord, Manifest
from erasable.store.sealing import SealedPapers
from erasable.store.tables import decode_interactions, decode_items
from erasable.training import Config, Knowledge, Link, State


class StoredGroups(Sequence[Interactions]):
    """The interactions of each group, each read once."""

    def __init__(self, records: Sequence[GroupRecord], read: Callable[[str], Interactions]) -> None:
        self._records = tuple(records)
        self._read = read
        self._loaded: dict[int, Interactions] = {}

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
        """Return the file that this very object was read from, if it was."""
        return self._records[position].file if self._loaded.get(position) is group else None


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


def load_state(folder: CheckedFolder, manifest: Manifest) -> State:
    """Return the state that a manifest describes."""
    catalogue = _load_catalogue(folder, manifest.catalogue)

    def read(name: str) -> Interactions:
        return decode_interactions(folder.read(name), catalogue.items)

    knowledge = Knowledge(
        config=_load_config(folder, manifest.config),
        catalogue=catalogue,
        scale=RatingScale(manifest.scale.low, manifest.scale.high),
        groups=StoredGroups(manifest.groups, read),
        held_out=read(manifest.holdout.file),
        kept_items=_load_kept_items(folder, manifest.catalogue),
        cohesion=tuple(map(_cohesion, manifest.groups)),
    )
    links = (Link(link.fingerprint, link.parent, link.samples, link.seconds) for link in manifest.chain)
    return State(knowledge, tuple(links))


def _load_config(folder: CheckedFolder, name: str) -> Config:
    try:
        return Config.model_validate_json(folder.read(name))
    except ValidationError as error:
        # Its hash is right, so it was written like this.
        raise WorkspaceError(
            f"{folder.root / name} has settings that this version of erasable does not know: "
            "use the version that wrote it, or learn again"
        ) from error


def _load_catalogue(folder: CheckedFolder, record: CatalogueRecord) -> Catalogue:
    return Catalogue(decode_items(folder.read(record.file)), record.versions, record.declared)


def _load_kept_items(folder: CheckedFolder, record: CatalogueRecord) -> frozenset[str] | None:
    return None if record.kept_items is None else frozenset(decode_items(folder.read(record.kept_items)))


def _cohesion(group: GroupRecord) -> Cohesion | None:
    return None if group.cohesion is None else Cohesion(group.cohesion, group.cohesion_error or 0.0)
