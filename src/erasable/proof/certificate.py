"""The certificate of one erasure: what it says, how it is written and signed, and how it is read again."""

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from erasable import fingerprint
from erasable.errors import Refused
from erasable.proof.canonical import canonical
from erasable.proof.signing import is_signed, public_key_of, sign

Scope = Literal["all data of one person", "some interactions of one person"]


class Paper(BaseModel):
    """What is written once and never changed."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class CertifiedCatalogue(Paper):
    """The items that could be recommended."""

    declared: bool
    """Whether they were given, or are those of the first learning."""
    items: int
    digest: str


class CertifiedData(Paper):
    """The data that was held, as salted digests."""

    before: str
    after: str


class CertifiedStage(Paper):
    """One step of the chain, as salted digests: a stage, or the rows of a group."""

    position: int
    """Its place in the chain: the stages come first, then the rows of each group if they were solved."""
    kept: bool
    """Whether its checkpoint is the one from before the erasure; if not, it was made again."""
    parent: str
    """The name of the checkpoint that it began from."""
    digest: str
    """The name of its checkpoint, which covers everything that made it."""
    result: str
    """The arrays of its checkpoint."""


class CertifiedScan(Paper):
    """What was searched for the person after the erasure, and how."""

    files: int
    megabytes: float
    """How much was read, rounded up to a tenth."""
    kinds: dict[str, int]
    searched: tuple[str, ...]
    residues: Literal[0] = 0
    """No certificate is written while something is found."""


class CertifiedUtility(Paper):
    """How well it recommends, measured on the holdout of those who are left; coarse, so that nobody can be made out."""

    protocol: str
    users: int
    """About how many people had something held out."""
    before: dict[str, float] | None
    after: dict[str, float]


class CertifiedTimes(Paper):
    """When each step was done, in universal time."""

    received: str
    erased: str
    scanned: str
    issued: str


class CertifiedRecord(Paper):
    """A record of the audit chain."""

    number: int
    hash: str


class Certificate(Paper):
    """The record of one erasure, free of personal data."""

    kind: Literal["certificate of erasure"] = "certificate of erasure"
    format: Literal[2] = 2
    request_id: str = Field(pattern="^[0-9a-f]{32}$")
    scope: Scope
    subject: str
    """A commitment to who asked and for what; its salt is in the subject's receipt and nowhere else."""
    version: int
    """The version of the workspace that the erasure made."""
    times: CertifiedTimes
    seconds: float
    """How long the erasure took, the scan and this certificate apart."""
    policy: str
    settings: dict[str, Any]
    seed: str
    threads: int
    environment: dict[str, str]
    """The processor and the libraries that the bytes depend on."""
    software: dict[str, str]
    """What else the erasure was carried out with."""
    catalogue: CertifiedCatalogue
    rating_scale: tuple[float, float]
    filter: str
    data: CertifiedData
    stages_rerun: int
    stages_total: int
    cost_ratio: float
    """Samples visited over those of retraining, about."""
    chain: tuple[CertifiedStage, ...]
    scan: CertifiedScan | None
    """None for a recommender in memory, which has no files."""
    utility: CertifiedUtility | None
    """None without a holdout."""
    audit: CertifiedRecord
    """The last record of the audit chain before this erasure's own."""
    proves: str
    does_not_prove: str
    public_key: str
    """The Ed25519 key, in hexadecimal, that checks the signature."""
    signature: str = ""
    """Of the canonical JSON (RFC 8785) of all other fields."""

    def step_name(self, position: int) -> str:
        """Say what stands at a place of the chain."""
        rows = position - self.stages_total
        return f"stage {position + 1}" if rows < 0 else f"rows of group {rows + 1}"

    def signed(self, key: bytes) -> "Certificate":
        """Return the same certificate with its signature."""
        unsigned = self.model_copy(update={"public_key": public_key_of(key)})
        return unsigned.model_copy(update={"signature": sign(key, unsigned.signed_content())})

    def is_signed(self) -> bool:
        """Whether the signature belongs to the rest and to the key that is named."""
        return is_signed(self.public_key, self.signed_content(), self.signature)

    def signed_content(self) -> bytes:
        """Return the bytes that the signature is about."""
        return canonical(self.model_dump(mode="json", exclude={"signature"}))

    def encoded(self) -> bytes:
        """Return the certificate as canonical JSON."""
        return canonical(self.model_dump(mode="json"))

    def digest(self) -> str:
        """Return the fingerprint of the certificate, which the audit chain names it by."""
        return fingerprint.of_bytes(self.encoded())


def read_certificate(content: bytes) -> Certificate:
    """Read a certificate and check its signature; one byte that was changed is refused."""
    try:
        certificate = Certificate.model_validate_json(content)
    except ValidationError as error:
        raise Refused(_in_words(error, content)) from None
    if not _is_canonical(certificate, content):
        raise Refused("it is not written as certificates are (canonical JSON): it was changed")
    if not certificate.is_signed():
        raise Refused("its signature does not fit: it was changed, or signed by someone else")
    return certificate


def _is_canonical(certificate: Certificate, content: bytes) -> bool:
    try:
        return certificate.encoded() == content
    except ValueError:  # such as NaN, which can be read and not be written
        return False


def _in_words(error: ValidationError, content: bytes) -> str:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return "it is no JSON: give the .json file that forget made"
    if not isinstance(found, dict) or found.get("kind") != "certificate of erasure":
        return "it is no certificate of erasure: give the .json file that forget made"
    place = ".".join(map(str, error.errors()[0]["loc"]))
    return f"its field {place} is not as certificates have it: it was changed, or another version wrote it"
