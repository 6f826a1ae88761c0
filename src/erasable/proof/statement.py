"""What a certificate says in the newest format, and how it is written and signed.

It is meant for anyone, so it tells nothing that depends on whom it is about: no stages, no seed, no moments, and
figures only as classes that are the same for everyone in the recommender.
"""

import re
from typing import Any, Literal

from pydantic import ConfigDict, Field

from erasable.documents import sealed_bytes, with_seal
from erasable.proof.canonical import canonical
from erasable.proof.paper import Paper
from erasable.proof.signing import public_key_of, sign

KIND = "certificate of erasure"
FORMAT = 3
WHOLE: Literal["all data of one person"] = "all data of one person"
PART: Literal["some interactions of one person"] = "some interactions of one person"
Scope = Literal["all data of one person", "some interactions of one person"]
_SIGNATURE = re.compile("[0-9a-f]{128}")


class _Part(Paper):
    # A field that a newer version has added is kept, and the signature covers it.
    model_config = ConfigDict(extra="allow")


class CertifiedCatalogue(_Part):
    """The items that could be recommended."""

    declared: bool
    """Whether they were given, or are those that people had."""
    items: str
    """About how many there are."""
    origin: str
    """Where they come from, in words."""
    digest: str


class CertifiedData(_Part):
    """The data that was held, as salted digests."""

    before: str
    after: str


class CertifiedScan(_Part):
    """What was searched for the person after the erasure, and how."""

    files: str
    """About how many files were searched."""
    size: str
    """About how much was read."""
    kinds: tuple[str, ...]
    searched: tuple[str, ...]
    residues: Literal[0] = 0
    """No certificate is written while something is found."""


class CertifiedUtility(_Part):
    """How well it recommends, measured on the holdout of those who are left; coarse, so that nobody can be made out."""

    protocol: str
    users: str
    """About how many people had something held out."""
    grain: float
    """The step that the measures are rounded to."""
    before: dict[str, float] | None
    after: dict[str, float]


class CertifiedDays(_Part):
    """On which day each step was done, in universal time; moments would tell how long each took."""

    asked: str
    erased: str
    searched: str | None
    """None for a recommender in memory, which has no files."""
    issued: str


class CertifiedRecord(_Part):
    """A record of the audit chain."""

    number: int
    hash: str


class Statement(_Part):
    """The record of one erasure, free of personal data, in the newest format."""

    kind: Literal["certificate of erasure"] = "certificate of erasure"
    format: int = Field(FORMAT, ge=FORMAT)
    request_id: str = Field(pattern="^[0-9a-f]{32}$")
    issuer: str | None
    """Who issues it, if the workspace says so."""
    scope: Scope
    subject: str
    """A commitment to who asked and for what; its salt is in the subject's receipt and nowhere else."""
    reference: str
    """A commitment, under the same salt, to the case number or what else was typed in, if anything was."""
    version: int
    """The version of the workspace that the erasure made."""
    days: CertifiedDays
    duration: str
    """How long an erasure takes at most, whoever it is about; the scan and this certificate apart."""
    cost: str
    """What an erasure costs at most, whoever it is about, as a share of retraining all at once."""
    policy: str
    policy_means: str
    settings: dict[str, Any]
    """Those of the model that is used."""
    revision: int | None = None
    """Which revision of the model's arithmetic made the checkpoints; those of before say nothing of it."""
    threads: int
    environment: dict[str, str]
    """The processor and the libraries that the bytes depend on."""
    software: dict[str, str]
    """What else the erasure was carried out with."""
    catalogue: CertifiedCatalogue
    rating_scale: tuple[float, float]
    filter: str
    data: CertifiedData
    scan: CertifiedScan | None
    """None for a recommender in memory, which has no files."""
    utility: CertifiedUtility | None
    """None without a holdout."""
    audit: CertifiedRecord
    """The last record of the audit chain before this erasure's own."""
    do_not_learn: str | None
    """What is kept so that the person does not come back with an old file, if anything is."""
    proves: str
    does_not_prove: str
    public_key: str = ""
    """The Ed25519 key, in hexadecimal, that checks the signature."""
    signature: str = ""
    """Of the bytes of this file as they are with nothing between the quotes of this field."""

    def signed(self, key: bytes) -> bytes:
        """Return the certificate as canonical JSON (RFC 8785), signed."""
        fields = self.model_dump(mode="json") | {"public_key": public_key_of(key), "signature": ""}
        unsigned = canonical(fields)
        return with_seal(unsigned, "signature", sign(key, unsigned))


def signed_bytes(content: bytes, signature: str) -> bytes | None:
    """Return the bytes of a certificate without its signature; None if they can't be told."""
    return sealed_bytes(content, "signature", signature) if _SIGNATURE.fullmatch(signature) else None
