"""The manifest: which files of a workspace are current, with the hash of each; it seals itself."""

import json
import re
from collections.abc import Callable
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from erasable import fingerprint
from erasable.data import RatingScale
from erasable.documents import format_in, newer, read_json, shortened
from erasable.errors import WorkspaceDamaged, WorkspaceError, WrongUse
from erasable.store import layout
from erasable.store.preferences import NO_PREFERENCES, Preferences

FORMAT = 4
RESTORE = "restore it from a copy made after the last erasure, or learn again"
_SEAL = re.compile(rb'"fingerprint": "([0-9a-f]*)"\n}\n\Z')


class _Record(BaseModel):
    # A field that a newer version has added is kept, and the seal covers it.
    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)


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
    """Where declared items are; without a file, items follow the people."""

    file: str | None
    declared: bool
    """Whether the list was declared; what 0.1 froze was not."""
    versions: tuple[int, ...]
    """How many items the list had at first, and after each time that it was extended."""
    kept_items: str | None
    """The file of the items that the filter kept, if there was one."""


class GroupRecord(_Record):
    """The group at one position of the chain."""

    position: int
    file: str
    users: int = Field(ge=0)
    interactions: int = Field(ge=0)
    cohesion: float | None = Field(allow_inf_nan=False)
    """The paper's ρ, if it is known."""
    cohesion_error: float | None = Field(allow_inf_nan=False)
    """Its standard error, 0 if all pairs were counted."""


class LinkRecord(_Record):
    """One stage of the chain and the files of its checkpoint."""

    fingerprint: str
    parent: str
    samples: int = Field(ge=0)
    seconds: float = Field(ge=0)
    file: str
    blocks: tuple[str, ...] = ()
    """The files of its arrays by item, in the order of the items, if its model has them in blocks."""
    environment: int = Field(0, ge=0)
    """Which of the manifest's environments made it."""


class HoldoutRecord(_Record):
    """What is kept out of training."""

    file: str
    users: int = Field(ge=0)
    interactions: int = Field(ge=0)


class SegmentRecord(_Record):
    """A segment of finished papers."""

    certificates: str
    """The file that lists certificates with their hashes."""
    log: str
    """The file of records of the log."""
    erasures: int = Field(ge=0)
    """How many certificates it lists, their pages apart."""


class Manifest(_Record):
    """One version of a workspace."""

    format: Literal[4] = 4
    version: int = Field(ge=1)
    """1 after learning, one more for each commit."""
    salt: str = Field(pattern="^[0-9a-f]{64}$")
    """32 random bytes that exist nowhere else and vanish with this version."""
    environments: tuple[dict[str, str], ...]
    """The numeric environments that made the checkpoints, each once."""
    config: str
    """The file of the configuration."""
    scale: ScaleRecord
    catalogue: CatalogueRecord
    groups: tuple[GroupRecord, ...] = Field(min_length=1)
    holdout: HoldoutRecord
    chain: tuple[LinkRecord, ...]
    names: Literal["0.1"] | None = None
    """Which version named the checkpoints of the chain and wrote the settings, if it was an earlier one."""
    certificates: tuple[str, ...]
    """File names in the folder `certificates` that are not sealed yet, oldest first."""
    segments: tuple[SegmentRecord, ...] = ()
    """Finished papers, oldest first."""
    audit: str | None
    """The file of the records that are not sealed yet, if there are any."""
    key: str | None
    """The file of the key that signs certificates, if there is one."""
    pending: str | None
    """The file of requests that are being carried out, if there are any."""
    requests: str | None = None
    """The file of the service's requests that have ended and are sealed, if there are any."""
    preferences: Preferences = NO_PREFERENCES
    files: dict[str, str]
    """The hash of every current file."""
    fingerprint: str = ""
    """The fingerprint of the file as it lies there, this one left out."""

    _written_in: int = PrivateAttr(FORMAT)

    @property
    def written_in(self) -> int:
        """The number of the format of the file that it was read from; the newest if it was read from none."""
        return self._written_in

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if any(link.environment >= len(self.environments) for link in self.chain):
            raise ValueError("a checkpoint of an environment that is not there")
        if [group.position for group in self.groups] != list(range(len(self.groups))):
            raise ValueError("a group at a position that is not its own")
        return self

    def sealed(self) -> "Manifest":
        """Return the same manifest with its fingerprint, to be written in the newest format."""
        sealed = self.model_copy(update={"fingerprint": _seal_of(encode_manifest(self))})
        sealed._written_in = FORMAT
        return sealed


def encode_manifest(manifest: Manifest) -> bytes:
    """Write a manifest as readable JSON; its fingerprint stands last."""
    fields = manifest.model_dump(mode="json")
    fields["fingerprint"] = fields.pop("fingerprint")
    return _written(fields)


def named_files(manifest: Manifest) -> set[str]:
    """Return every file that a manifest names."""
    names = {manifest.config, manifest.holdout.file}
    names |= {group.file for group in manifest.groups}
    names |= {name for link in manifest.chain for name in (link.file, *link.blocks)}
    names |= {layout.certificate_name(name) for name in manifest.certificates}
    names |= {name for record in manifest.segments for name in (record.certificates, record.log)}
    optional = {manifest.catalogue.file, manifest.catalogue.kept_items, manifest.audit, manifest.key}
    optional |= {manifest.pending, manifest.requests}
    return names | {name for name in optional if name is not None}


def decode_manifest(content: bytes, name: str) -> Manifest:
    """Read a manifest of any format that was released, or refuse a newer one or a byte that was changed."""
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
    """Whether every file has its hash and lies inside the folder, where it goes when nothing names it any more."""
    named, listed = named_files(manifest), manifest.preferences.do_not_learn or ()
    return (
        named <= manifest.files.keys()
        and all(map(layout.is_plain, manifest.files))
        and all(map(layout.is_own, named))
        and not any("\0" in place for place in listed)
    )


def _read_3(fields: dict[str, Any], content: bytes) -> Manifest | None:
    """Read what 0.1 wrote: sealed over the canonical form of what it says, written in one way only."""
    said = {name: value for name, value in fields.items() if name != "fingerprint"}
    if fields.get("fingerprint") != fingerprint.of_value(said) or _written(fields) != content:
        return None
    environments = [said.pop("environment", None)]  # one for all checkpoints
    new = {"format": FORMAT, "environments": environments, "names": "0.1"}
    manifest = Manifest.model_validate_json(json.dumps({**said, **new}))
    manifest._written_in = 3
    return manifest


def _read_4(fields: dict[str, Any], content: bytes) -> Manifest | None:
    """Read a manifest that is sealed over its bytes."""
    seal = _seal_of(content)
    return Manifest.model_validate_json(content) if seal and fields.get("fingerprint") == seal else None


_READERS: dict[int, Callable[[dict[str, Any], bytes], Manifest | None]] = {3: _read_3, FORMAT: _read_4}


def _seal_of(content: bytes) -> str | None:
    """Return the fingerprint of a manifest's bytes without the fingerprint that stands at their end."""
    seal = _SEAL.search(content)
    return None if seal is None else fingerprint.of_bytes(content[: seal.start(1)] + content[seal.end(1) :])


def _written(fields: dict[str, Any]) -> bytes:
    text = json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def damaged(place: object) -> WorkspaceDamaged:
    """Say that a file is not what it must be."""
    return WorkspaceDamaged(f"{place} is damaged: {RESTORE}")
