"""The manifest: which files of a workspace are current, with the hash of each; it seals itself."""

import json
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from erasable import fingerprint
from erasable.errors import WorkspaceDamaged, WorkspaceError

FORMAT = 3
RESTORE = "restore it from a copy made after the last erasure, or learn again"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


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


class Manifest(_Record):
    """One version of a workspace."""

    format: Literal[3] = 3
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
    """File names in the folder `certificates`, oldest first."""
    audit: str | None
    """The file of the chain of records, if there is one."""
    key: str | None
    """The file of the key that signs certificates, if there is one."""
    pending: str | None
    """The file of requests that are being carried out, if there are any."""
    files: dict[str, str]
    """The hash of every current file."""
    fingerprint: str = ""
    """The fingerprint of all of the above."""

    def sealed(self) -> "Manifest":
        """Return the same manifest with its fingerprint."""
        return self.model_copy(update={"fingerprint": self._seal()})

    def is_sealed(self) -> bool:
        """Whether the fingerprint is that of the rest."""
        return self.fingerprint == self._seal()

    def _seal(self) -> str:
        return fingerprint.of_value(self.model_dump(mode="json", exclude={"fingerprint"}))


def encode_manifest(manifest: Manifest) -> bytes:
    """Write a manifest as readable JSON."""
    text = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def decode_manifest(content: bytes, name: str) -> Manifest:
    """Read a manifest, or refuse another format or a byte that was changed."""
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _damaged(name) from error
    if not isinstance(fields, dict):
        raise _damaged(name)
    if fields.get("format") != FORMAT:
        raise WorkspaceError(
            f"{name} has the format {fields.get('format')!r} and this version of erasable reads {FORMAT}: "
            "use the version that wrote it, or learn again"
        )
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError as error:
        raise _damaged(name) from error
    # The seal covers what is said; comparing the bytes also covers how it is written.
    if not manifest.is_sealed() or encode_manifest(manifest) != content:
        raise _damaged(name)
    return manifest


def _damaged(name: str) -> WorkspaceDamaged:
    return WorkspaceDamaged(f"{name} is damaged: {RESTORE}")
