"""The manifest: which files of a workspace are current, with the hash of each; it seals itself."""

import json
import re
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from erasable import fingerprint
from erasable.errors import WorkspaceDamaged, WorkspaceError
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


class CatalogueRecord(_Record):
    """Where the items are, and what is declared about them."""

    file: str
    declared: bool
    versions: tuple[int, ...]
    kept_items: str | None
    """The file of the items that the filter kept, if there was one."""


class GroupRecord(_Record):
    """The group at one position of the chain."""

    position: int
    file: str
    users: int
    interactions: int
    cohesion: float | None = Field(allow_inf_nan=False)
    """The paper's ρ, if it is known."""
    cohesion_error: float | None = Field(allow_inf_nan=False)
    """Its standard error, 0 if all pairs were counted."""


class LinkRecord(_Record):
    """One stage of the chain and the file of its checkpoint."""

    fingerprint: str
    parent: str
    samples: int
    seconds: float
    file: str


class HoldoutRecord(_Record):
    """What is kept out of training."""

    file: str
    users: int
    interactions: int


class SegmentRecord(_Record):
    """A segment of finished papers."""

    certificates: str
    """The file that lists certificates with their hashes."""
    log: str
    """The file of records of the log."""
    erasures: int
    """How many certificates it lists, their pages apart."""


class Manifest(_Record):
    """One version of a workspace."""

    format: Literal[4] = 4
    version: int = Field(ge=1)
    """1 after learning, one more for each commit."""
    salt: str = Field(pattern="^[0-9a-f]{64}$")
    """32 random bytes that exist nowhere else and vanish with this version."""
    environment: dict[str, str]
    """The numeric environment that trained the checkpoints."""
    config: str
    """The file of the configuration."""
    scale: ScaleRecord
    catalogue: CatalogueRecord
    groups: tuple[GroupRecord, ...]
    holdout: HoldoutRecord
    chain: tuple[LinkRecord, ...]
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

    def sealed(self) -> "Manifest":
        """Return the same manifest with its fingerprint."""
        return self.model_copy(update={"fingerprint": _seal_of(encode_manifest(self))})

    def is_sealed(self) -> bool:
        """Whether the fingerprint is that of the rest."""
        return self.fingerprint == _seal_of(encode_manifest(self))


def encode_manifest(manifest: Manifest) -> bytes:
    """Write a manifest as readable JSON; its fingerprint stands last."""
    fields = manifest.model_dump(mode="json")
    fields["fingerprint"] = fields.pop("fingerprint")
    return _written(fields)


def decode_manifest(content: bytes, name: str) -> Manifest:
    """Read a manifest of any format that was released, or refuse a newer one or a byte that was changed."""
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _damaged(name) from error
    if not isinstance(fields, dict):
        raise _damaged(name)
    found = fields.get("format")
    if not isinstance(found, int) or found not in _READERS:
        known = f"{min(_READERS)} to {FORMAT}"
        raise WorkspaceError(
            f"{name} has the format {found!r} and this version of erasable reads {known}: use the version that wrote it"
        )
    try:
        manifest = _READERS[found](fields, content)
    except ValidationError as error:
        raise _damaged(name) from error
    if manifest is None:
        raise _damaged(name)
    return manifest


def _read_3(fields: dict[str, Any], content: bytes) -> Manifest | None:
    """Read what 0.1 wrote: sealed over the canonical form of what it says, written in one way only."""
    said = {name: value for name, value in fields.items() if name != "fingerprint"}
    if fields.get("fingerprint") != fingerprint.of_value(said) or _written(fields) != content:
        return None
    return Manifest.model_validate_json(json.dumps({**said, "format": FORMAT}))


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


def _damaged(name: str) -> WorkspaceDamaged:
    return WorkspaceDamaged(f"{name} is damaged: {RESTORE}")
