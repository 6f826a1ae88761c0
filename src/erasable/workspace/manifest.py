"""The manifest of a workspace, with the hash of every current file; preferences, and the documents of a commit."""

import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from erasable import fingerprint
from erasable.data.interactions import RatingScale
from erasable.data.values import TimeForm
from erasable.documents import format_in, newer, read_json, shortened
from erasable.errors import WorkspaceDamaged, WorkspaceError, WrongUse
from erasable.workspace import files


class Preferences(BaseModel):
    """Choices that hold for all later commands; fields that a newer version added are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    columns: tuple[tuple[str, str], ...] = ()
    """Pairs of a field (user, item, rating, time) and the input column it was read from."""
    time_kind: TimeForm | None = None
    """How times were written in the input."""
    users_are_numbers: bool = False
    """Whether user ids were given as integers, so that the library returns them as integers."""
    items_are_numbers: bool = False
    """The same for item ids."""
    do_not_learn: tuple[str, str] | None = None
    """The paths of the do-not-learn list and its key, relative to the workspace if they lie beside it."""
    do_not_learn_key: str | None = None
    """A digest made with the list's key, also written in the list, so that swapping the list is noticed."""
    without_do_not_learn: bool = False
    """Whether the owner declared that no such list is kept."""
    issuer: str | None = None
    """Who issues the certificates."""
    issuers: tuple[str, ...] = ()
    """Every issuer name ever set, including the current one."""
    queue: tuple[str, str] | None = None
    """The address of a Postgres without its password, and the schema, if the queue is not in the workspace."""
    queue_id: str | None = None
    """The random id of the queue, also stored in it; None before there is a queue, or if version 0.1 made it."""
    readable_by_group: bool = False
    """Whether the owner's group may read the files."""


NO_PREFERENCES = Preferences()


class Stamp(NamedTuple):
    """What identifies a version: its number, and 32 random bytes that are deleted with it."""

    version: int
    salt: str

    @staticmethod
    def after(version: int) -> "Stamp":
        """Return a stamp for the next version."""
        return Stamp(version + 1, secrets.token_hex(32))


def _nothing() -> bytes:
    return b""


@dataclass(frozen=True)
class Documents:
    """The documents of a version; they replace those of the version before, and empty ones are not kept."""

    log: bytes = b""
    """The log records that are not sealed yet; each holds the hash of the one before."""
    key: bytes = field(default=b"", repr=False)
    """The key that signs certificates."""
    key_hidden: bool = field(default=False, kw_only=True)
    """Whether there is a key that this reader may not read."""
    pending: bytes = field(default=b"", repr=False)
    """Requests that are being carried out; deleted afterwards, because they name people."""
    certificates: Mapping[str, bytes] = field(default_factory=dict)
    """New certificates by file name; earlier ones stay."""
    requests: bytes | None = field(default=None, repr=False)
    """The service's finished requests, as a database; None keeps the present file."""
    declared_items: bytes | None = field(default=None, repr=False)
    """Which items are hidden, and attributes of items, as a table; None keeps the present file, nothing removes it."""
    preferences: Preferences = NO_PREFERENCES
    """Choices that hold for all later commands."""
    seal: bool = False
    """Whether to seal finished documents if there are enough of them; only after a scan of them."""
    sealed_records: Callable[[], bytes] = field(default=_nothing, repr=False, compare=False)
    """Reads the log records that were sealed before."""

    def records(self) -> bytes:
        """Return all log records, oldest first."""
        return self.sealed_records() + self.log


NO_DOCUMENTS = Documents()


FORMAT = 5
RESTORE = "restore it from a copy made after the last erasure, or learn again"
_SEAL = re.compile(rb'"fingerprint": "([0-9a-f]*)"\n}\n\Z')


class _Record(BaseModel):
    # Fields that a newer version added are kept, and the seal covers them.
    model_config = ConfigDict(frozen=True, extra="allow")


class ScaleRecord(_Record):
    """The declared rating scale."""

    low: float
    high: float

    @model_validator(mode="after")
    def _is_a_scale(self) -> Self:
        try:
            RatingScale(self.low, self.high)
        except WrongUse as error:
            raise ValueError(str(error)) from None
        return self


class CatalogueRecord(_Record):
    """The file of the catalogue; without one, the catalogue is the items that people have."""

    file: str | None
    declared: bool
    """Whether the owner declared the list; the lists that version 0.1 froze were not declared."""
    versions: tuple[int, ...]
    """The number of items at first, and after each extension."""
    kept_items: str | None
    """The file of the items that the filter kept, if one was used."""
    features: str | None = None
    """The file of the declared features of items, if there are any; without them the field is left out."""


class GroupRecord(_Record):
    """The group at one position of the chain."""

    position: int
    file: str | None = None
    """The file of its training data, in workspaces of before format 5 that were not upgraded."""
    users: int = Field(ge=0)
    interactions: int = Field(ge=0)
    cohesion: float | None = Field(allow_inf_nan=False)
    """The paper's ρ, if it is known."""
    cohesion_error: float | None = Field(allow_inf_nan=False)
    """Its standard error; 0 if all pairs were counted."""


class BucketRecord(_Record):
    """The people of a run of slots."""

    file: str
    slot: int = Field(ge=0, lt=4096)
    """The first slot; the run ends where that of the next bucket begins."""


class CountsRecord(_Record):
    """The files of what is known of all people without reading a bucket."""

    items: str
    """All items, and how many people have each."""
    slots: str
    """How many people each slot has, and digests of them."""
    histories: str
    """How many people have a history of which length."""
    held_out: int = Field(ge=0)
    """How many interactions are held out."""


class LinkRecord(_Record):
    """One stage of the chain and the files of its checkpoint."""

    fingerprint: str
    parent: str
    samples: int = Field(ge=0)
    seconds: float = Field(ge=0)
    file: str
    blocks: tuple[str, ...] = ()
    """The files of its arrays by item, in item order, if its model stores them in blocks."""
    environment: int = Field(0, ge=0)
    """The index of its environment in the manifest's list."""


class HoldoutRecord(_Record):
    """The interactions kept out of training."""

    file: str
    users: int = Field(ge=0)
    interactions: int = Field(ge=0)


class SegmentRecord(_Record):
    """A segment of finished documents."""

    certificates: str
    """The file that lists certificates with their hashes."""
    log: str
    """The file of log records."""
    erasures: int = Field(ge=0)
    """How many certificates it lists, not counting their HTML pages."""


class Manifest(_Record):
    """One version of a workspace."""

    format: Literal[5] = 5
    version: int = Field(ge=1)
    """1 after learning; each commit adds 1."""
    salt: str = Field(pattern="^[0-9a-f]{64}$")
    """32 random bytes that are stored nowhere else and deleted with this version."""
    environments: tuple[dict[str, str], ...]
    """The numeric environments that made the checkpoints, each once."""
    config: str
    """The file of the configuration."""
    scale: ScaleRecord
    catalogue: CatalogueRecord
    groups: tuple[GroupRecord, ...] = Field(min_length=1)
    holdout: HoldoutRecord | None = None
    """The file of the holdout, in workspaces of before format 5 that were not upgraded."""
    buckets: tuple[BucketRecord, ...] = ()
    """The people, in the order of their slots."""
    counts: CountsRecord | None = None
    chain: tuple[LinkRecord, ...]
    names: Literal["0.1", "0.2"] | None = None
    """The earlier version that named the checkpoints and wrote the files of groups, if it was one."""
    certificates: tuple[str, ...]
    """File names in the folder `certificates`, oldest first, without sealed ones."""
    segments: tuple[SegmentRecord, ...] = ()
    """Segments of finished documents, oldest first."""
    audit: str | None
    """The file of the log records that are not sealed yet, if there are any."""
    key: str | None
    """The file of the key that signs certificates, if there is one."""
    pending: str | None
    """The file of the requests that are being carried out, if there are any."""
    requests: str | None = None
    """The file of the service's finished requests that are sealed, if there are any."""
    declared_items: str | None = None
    """The file of declared items, if there are any: which are hidden, and their attributes."""
    preferences: Preferences = NO_PREFERENCES
    files: dict[str, str]
    """The hash of every current file."""
    fingerprint: str = ""
    """The fingerprint of the manifest's bytes, without this value."""

    _written_in: int = PrivateAttr(FORMAT)

    @property
    def written_in(self) -> int:
        """The format of the file that it was read from; the newest if it is new."""
        return self._written_in

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if any(link.environment >= len(self.environments) for link in self.chain):
            raise ValueError("a checkpoint names an environment that is not listed")
        if [group.position for group in self.groups] != list(range(len(self.groups))):
            raise ValueError("the groups are not in the order of their positions")
        if self.names is None:
            self._check_buckets()
        elif self.holdout is None or any(group.file is None for group in self.groups):
            raise ValueError("a group or the holdout has no file")
        return self

    def _check_buckets(self) -> None:
        slots = [bucket.slot for bucket in self.buckets]
        if self.counts is None or slots[:1] != [0] or slots != sorted({*slots}):
            raise ValueError("the buckets are not in the order of their slots")

    def sealed(self) -> "Manifest":
        """Return the manifest with its fingerprint, in the newest format."""
        sealed = self.model_copy(update={"fingerprint": _seal_of(encode_manifest(self))})
        sealed._written_in = FORMAT
        return sealed


def encode_manifest(manifest: Manifest) -> bytes:
    """Write a manifest as readable JSON, with its fingerprint last."""
    fields = manifest.model_dump(mode="json")
    if fields["catalogue"]["features"] is None:
        del fields["catalogue"]["features"]
    fields["fingerprint"] = fields.pop("fingerprint")
    return _written(fields)


def named_files(manifest: Manifest) -> set[str]:
    """Return every file that a manifest names."""
    names = {manifest.config, *(bucket.file for bucket in manifest.buckets)}
    if manifest.counts is not None:
        names |= {manifest.counts.items, manifest.counts.slots, manifest.counts.histories}
    names |= {name for link in manifest.chain for name in (link.file, *link.blocks)}
    names |= {files.certificate_name(name) for name in manifest.certificates}
    names |= {name for record in manifest.segments for name in (record.certificates, record.log)}
    optional = {manifest.catalogue.file, manifest.catalogue.kept_items, manifest.audit, manifest.key}
    optional |= {manifest.holdout.file if manifest.holdout else None, *(group.file for group in manifest.groups)}
    optional |= {manifest.pending, manifest.requests, manifest.declared_items, manifest.catalogue.features}
    return names | {name for name in optional if name is not None}


def decode_manifest(content: bytes, name: str) -> Manifest:
    """Read a manifest of any released format; refuse a newer one, or one with a changed byte."""
    try:
        fields = read_json(content)
    except ValueError as error:
        raise damaged(name) from error
    if not isinstance(fields, dict):
        raise damaged(name)
    found = format_in(fields)
    if found is not None and found > FORMAT:
        raise WorkspaceError(f"{name} {newer(found, FORMAT)}")
    if found is None or found not in _READERS:
        raise WorkspaceDamaged(
            f"{name} has the format {shortened(fields.get('format'))}, which no release wrote: {RESTORE}"
        )
    try:
        manifest = _READERS[found](fields, content)
    except (ValidationError, RecursionError) as error:
        raise damaged(name) from error
    if manifest is None or not _names_well(manifest):
        raise damaged(name)
    return manifest


def _names_well(manifest: Manifest) -> bool:
    """Whether every named file has a hash and is one of the workspace's own, which are swept once unnamed."""
    named, listed = named_files(manifest), manifest.preferences.do_not_learn or ()
    return (
        named <= manifest.files.keys()
        and all(map(files.is_plain, manifest.files))
        and all(map(files.is_own, named))
        and not any("\0" in place for place in listed)
    )


def _read_3(fields: dict[str, Any], content: bytes) -> Manifest | None:
    """Read the format of version 0.1: its seal covers the canonical form of its fields."""
    said = {name: value for name, value in fields.items() if name != "fingerprint"}
    if fields.get("fingerprint") != fingerprint.of_value(said) or _written(fields) != content:
        return None
    environments = [said.pop("environment", None)]  # one for all checkpoints
    new = {"format": FORMAT, "environments": environments, "names": "0.1"}
    manifest = Manifest.model_validate_json(json.dumps({**said, **new}))
    manifest._written_in = 3
    return manifest


def _read_4(fields: dict[str, Any], content: bytes) -> Manifest | None:
    """Read the format of version 0.2, with a file for each group: its seal covers its bytes."""
    seal = _seal_of(content)
    if not seal or fields.get("fingerprint") != seal:
        return None
    new = {"format": FORMAT, "names": fields.get("names") or "0.2"}
    manifest = Manifest.model_validate_json(json.dumps({**fields, **new}))
    manifest._written_in = 4
    return manifest


def _read_5(fields: dict[str, Any], content: bytes) -> Manifest | None:
    """Read the current format: its seal covers its bytes."""
    seal = _seal_of(content)
    return Manifest.model_validate_json(content) if seal and fields.get("fingerprint") == seal else None


_READERS: dict[int, Callable[[dict[str, Any], bytes], Manifest | None]] = {3: _read_3, 4: _read_4, FORMAT: _read_5}


def _seal_of(content: bytes) -> str | None:
    """Return the fingerprint of a manifest's bytes, without the fingerprint at their end."""
    seal = _SEAL.search(content)
    return None if seal is None else fingerprint.of_bytes(content[: seal.start(1)] + content[seal.end(1) :])


def _written(fields: dict[str, Any]) -> bytes:
    text = json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def damaged(place: object) -> WorkspaceDamaged:
    """Return the error for a damaged file."""
    return WorkspaceDamaged(f"{place} is damaged: {RESTORE}")
