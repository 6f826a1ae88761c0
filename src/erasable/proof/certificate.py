"""Certificates: their fields, canonical JSON, signatures and salted digests, and reading those of every format."""

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Literal

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from erasable import fingerprint
from erasable.chain.checkpoints import (
    ORIGIN,
    CheckpointStore,
    Link,
)
from erasable.chain.dataset import (
    Dataset,
    State,
)
from erasable.documents import format_in, newer, read_json, says_more, sealed_bytes, with_seal
from erasable.errors import NewerDocument, Refused, WorkspaceDamaged

_LARGEST = 2**53 - 1


def canonical(value: Any) -> bytes:  # noqa: ANN401 - anything that JSON can say
    """Return canonical JSON (RFC 8785); integers beyond 2⁵³ become text.

    >>> canonical({"b": 1.0, "a": [2**63, "é"]}).decode()
    '{"a":["9223372036854775808","é"],"b":1}'
    """
    return rfc8785.dumps(_within_bounds(value))


def _within_bounds(value: Any) -> Any:  # noqa: ANN401 - anything that JSON can say
    if isinstance(value, dict):
        return {name: _within_bounds(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_within_bounds(part) for part in value]
    return str(value) if isinstance(value, int) and abs(value) > _LARGEST else value


def now() -> str:
    """Return the current time in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class FrozenDocument(BaseModel):
    """The base of everything that is written once and never changed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def new_key() -> bytes:
    """Return a new private key."""
    return Ed25519PrivateKey.generate().private_bytes_raw().hex().encode()


def public_key_of(key: bytes) -> str:
    """Return the public half of a private key."""
    return _private(key).public_key().public_bytes_raw().hex()


def sign(key: bytes, content: bytes) -> str:
    """Return the signature of some bytes."""
    return _private(key).sign(content).hex()


def is_signed(public_key: str, content: bytes, signature: str) -> bool:
    """Whether these bytes were signed with the private half of this key."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(bytes.fromhex(signature), content)
    except (ValueError, InvalidSignature):
        return False
    # Python also reads capitals and spaces, so one signature could be written in many ways.
    return bytes.fromhex(signature).hex() == signature


def _private(key: bytes) -> Ed25519PrivateKey:
    try:
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(key.decode()))
    except ValueError as error:
        raise WorkspaceDamaged("the signing key can't be read: restore it from a copy of the workspace") from error


SALT_BYTES = 32


def new_salt() -> str:
    """Return 32 random bytes in hexadecimal."""
    return secrets.token_hex(SALT_BYTES)


def salted_digest(salt: str, text: str) -> str:
    """Return a digest that no guess can be tested against, once the salt is deleted with its version."""
    return blake2b(text.encode(), key=bytes.fromhex(salt), digest_size=32).hexdigest()


def commitment(salt: str, user: str, items: Sequence[str] | None) -> str:
    """Return a commitment to who asked and for what, which reveals nothing without the salt."""
    asked = canonical({"user_id": user, "items": None if items is None else sorted(items)})
    return salted_digest(salt, asked.decode())


def reference_commitment(salt: str, reference: str | None) -> str:
    """Return a commitment to the text typed in with a request, which does not reveal whether there was any."""
    return salted_digest(salt, canonical({"reference": reference}).decode())


def data_digest(salt: str, dataset: Dataset | State) -> str:
    """Return a salted digest of all interactions, in their groups and in the holdout.

    That of a state has the form in which this version's records and certificates name it.
    """
    return salted_digest(salt, dataset.data_name)


def state_digest(salt: str, state: State) -> str:
    """Return a salted digest of the names of all checkpoints, which depend on everything that made them."""
    return salted_digest(salt, " ".join(link.fingerprint for link in state.named))


class CertifiedStep(FrozenDocument):
    """One stage of the chain; in documents of version 0.1 also the rows of a group."""

    model_config = ConfigDict(extra="ignore")

    kept: bool
    """Whether its checkpoint was kept in the erasure; if not, it was made again."""
    parent: str
    """The name of the checkpoint that it started from."""
    digest: str
    """The name of its checkpoint, which depends on everything that made it."""
    result: str
    """The arrays of its checkpoint."""


def certified_steps(
    state: State, checkpoints: CheckpointStore, salt: str, rerun: Sequence[int]
) -> tuple[CertifiedStep, ...]:
    """Return the steps of the chain with salted digests; `rerun` are the positions that were made again."""
    return tuple(_step(link, checkpoints, salt, place not in rerun) for place, link in enumerate(state.named))


def recorded_steps(record: Mapping[str, Any] | None) -> tuple[CertifiedStep, ...] | None:
    """Return the steps in a log record, None if it has none."""
    if record is None or "steps" not in record:
        return None
    return tuple(CertifiedStep.model_validate(step) for step in record["steps"])


def step_name(place: int, stages: int) -> str:
    """Return the name of a step, by its place in a chain with so many stages.

    >>> step_name(0, 2), step_name(2, 2)
    ('stage 1', 'rows of group 1')
    """
    return f"stage {place + 1}" if place < stages else f"rows of group {place - stages + 1}"


def _step(link: Link, checkpoints: CheckpointStore, salt: str, kept: bool) -> CertifiedStep:
    return CertifiedStep(
        kept=kept,
        parent=ORIGIN if link.parent == ORIGIN else salted_digest(salt, link.parent),
        digest=salted_digest(salt, link.fingerprint),
        result=salted_digest(salt, fingerprint.of_arrays(checkpoints.get(link.fingerprint).arrays())),
    )


KIND = "certificate of erasure"
FORMAT = 3
WHOLE: Literal["all data of one person"] = "all data of one person"
PART: Literal["some interactions of one person"] = "some interactions of one person"
Scope = Literal["all data of one person", "some interactions of one person"]
_SIGNATURE = re.compile("[0-9a-f]{128}")


class _Part(FrozenDocument):
    # Fields that a newer version added are kept, and the signature covers them.
    model_config = ConfigDict(extra="allow")


class CertifiedCatalogue(_Part):
    """The items that could be recommended."""

    declared: bool
    """Whether they were declared; if not, they are those that people had."""
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
    """About how many bytes were read."""
    kinds: tuple[str, ...]
    searched: tuple[str, ...]
    residues: Literal[0] = 0
    """Always 0: no certificate is issued while anything is found."""


class CertifiedUtility(_Part):
    """Quality on the holdout of the remaining users, rounded so coarsely that nobody can be identified."""

    protocol: str
    users: str
    """About how many people have held-out interactions."""
    grain: float
    """The step that measures are rounded to."""
    before: dict[str, float] | None
    after: dict[str, float]


class CertifiedDays(_Part):
    """The day of each step in UTC; exact times would show how long each took."""

    asked: str
    erased: str
    searched: str | None
    """None for a recommender in memory, which has no files."""
    issued: str


class CertifiedRecord(_Part):
    """A record of the log."""

    number: int
    hash: str


class Statement(_Part):
    """What a certificate says, in the newest format: the record of one erasure, free of personal data."""

    kind: Literal["certificate of erasure"] = "certificate of erasure"
    format: int = Field(FORMAT, ge=FORMAT)
    request_id: str = Field(pattern="^[0-9a-f]{32}$")
    issuer: str | None
    """Who issues it, if the workspace names an issuer."""
    scope: Scope
    subject: str
    """A commitment to who asked and for what; its salt is in the person's receipt and nowhere else."""
    reference: str
    """A commitment, with the same salt, to the case number or other text typed in, if any."""
    version: int
    """The version of the workspace after the erasure."""
    days: CertifiedDays
    duration: str
    """The longest that an erasure of anyone takes, without the scan and this certificate."""
    cost: str
    """The most that an erasure of anyone costs, as a share of retraining everything."""
    policy: str
    policy_means: str
    settings: dict[str, Any]
    """The settings of the model."""
    revision: int | None = None
    """The revision of the model's arithmetic that made the checkpoints; earlier certificates name none."""
    threads: int
    environment: dict[str, str]
    """The numeric environment: the processor and the libraries that the bytes depend on."""
    software: dict[str, str]
    """Other software that carried out the erasure."""
    catalogue: CertifiedCatalogue
    rating_scale: tuple[float, float]
    filter: str
    data: CertifiedData
    scan: CertifiedScan | None
    """None for a recommender in memory, which has no files."""
    utility: CertifiedUtility | None
    """None without a holdout."""
    audit: CertifiedRecord
    """The last record of the log before that of this erasure."""
    do_not_learn: str | None
    """What is kept so that an old file does not bring the person back, if anything is."""
    proves: str
    does_not_prove: str
    public_key: str = ""
    """The Ed25519 key, in hexadecimal, that checks the signature."""
    signature: str = ""
    """The signature of this file's bytes, with nothing between the quotes of this field."""

    def signed(self, key: bytes) -> bytes:
        """Return the certificate as canonical JSON (RFC 8785), signed."""
        fields = self.model_dump(mode="json") | {"public_key": public_key_of(key), "signature": ""}
        unsigned = canonical(fields)
        return with_seal(unsigned, "signature", sign(key, unsigned))


def signed_bytes(content: bytes, signature: str) -> bytes | None:
    """Return the bytes of a certificate without its signature; None if it does not stand there exactly once."""
    return sealed_bytes(content, "signature", signature) if _SIGNATURE.fullmatch(signature) else None


FORMAT_OF_0_1 = 2
FIELDS_OF_0_1 = {
    *("kind", "format", "request_id", "scope", "subject", "version", "times", "seconds", "policy", "settings", "seed"),
    *("threads", "environment", "software", "catalogue", "rating_scale", "filter", "data", "stages_rerun"),
    *("stages_total", "cost_ratio", "chain", "scan", "utility", "audit", "proves", "does_not_prove"),
    *("public_key", "signature"),
}
"""The fields of certificates of version 0.1."""


def signed_content(fields: dict[str, Any], content: bytes) -> bytes:
    """Return the bytes that the signature covers, including fields that are unknown here."""
    if not _is_canonical(fields, content):
        raise Refused("it is not written as certificates are (canonical JSON): it was changed")
    return canonical({name: value for name, value in fields.items() if name != "signature"})


def _is_canonical(fields: dict[str, Any], content: bytes) -> bool:
    try:
        return canonical(fields) == content
    except (ValueError, RecursionError):  # such as a lone surrogate, which can be read but not written
        return False


class _Needed(FrozenDocument):
    model_config = ConfigDict(extra="ignore")


class NamedCatalogue(_Needed):
    """The items that could be recommended."""

    declared: bool
    digest: str


class NamedData(_Needed):
    """The data that was held, as salted digests."""

    before: str
    after: str


class NamedRecord(_Needed):
    """A record of the log."""

    number: int
    hash: str


class Certificate(_Needed):
    """A certificate of any format: the fields needed to check it, and its full content."""

    content: bytes = Field(repr=False)
    """The file as it was read."""
    format: int
    request_id: str = Field(pattern="^[0-9a-f]{32}$")
    subject: str
    """A commitment to who asked and for what; its salt is in the person's receipt and nowhere else."""
    reference: str | None = None
    """A commitment to the reference in the receipt; format 2 has none."""
    version: int
    """The version of the workspace after the erasure."""
    policy: str
    settings: dict[str, Any]
    revision: int | None = None
    """The revision of the model; earlier certificates name none."""
    environment: dict[str, str]
    catalogue: NamedCatalogue
    rating_scale: tuple[float, float]
    data: NamedData
    audit: NamedRecord
    """The last record of the log before that of this erasure."""
    public_key: str
    chain: tuple[CertifiedStep, ...] | None = None
    """The steps of the chain in format 2; later formats leave them to the log."""
    newer: bool = False
    """Whether it has fields that this version does not know."""

    def digest(self) -> str:
        """Return the fingerprint of the file, as named in the log."""
        return fingerprint.of_bytes(self.content)


def read_certificate(content: bytes) -> Certificate:
    """Read a certificate of any format and check its signature; a single changed byte is refused."""
    fields = _fields(content)
    found = fields["format"]
    if not _is_signed(fields, content):
        # A later format may be signed in another way.
        later = f"; if not, it {newer(found, FORMAT)}" if found > FORMAT else ""
        raise Refused(f"its signature does not fit: it was changed, or signed by someone else{later}")
    if found > FORMAT:
        raise NewerDocument(f"it {newer(found, FORMAT)}")
    try:
        return Certificate.model_validate({**_needed(fields), "content": content})
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise Refused(f"its field {place} is not as certificates have it: it was changed") from None


def _fields(content: bytes) -> dict[str, Any]:
    """Return the fields of a certificate, whose format must be known."""
    try:
        fields = read_json(content)
    except ValueError:
        raise Refused(_unreadable(content)) from None
    if not isinstance(fields, dict) or fields.get("kind") != KIND:
        raise Refused("it is not a certificate of erasure: give the .json file that forget made")
    found = format_in(fields)
    if found is None or found < FORMAT_OF_0_1:
        raise Refused(f"it has the format {fields.get('format')!r}, which was never released: it was changed")
    return fields


def _unreadable(content: bytes) -> str:
    """Say what is wrong with refused JSON, which a less strict reader may accept."""
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return "it is not JSON: give the .json file that forget made"
    return "it can be read in more than one way, as no certificate can: it was changed"


def _is_signed(fields: dict[str, Any], content: bytes) -> bool:
    key, signature = str(fields.get("public_key")), str(fields.get("signature"))
    if fields["format"] == FORMAT_OF_0_1:
        return is_signed(key, signed_content(fields, content), signature)
    signed = signed_bytes(content, signature)
    return signed is not None and is_signed(key, signed, signature)


def _needed(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields needed of a certificate; a chain in a later format is not that of format 2."""
    if fields["format"] == FORMAT_OF_0_1:
        return fields | {"newer": not fields.keys() <= FIELDS_OF_0_1}
    known = {name: value for name, value in fields.items() if name != "chain"}
    return known | {"newer": says_more(Statement.model_validate(fields))}


def outcome_of(certificate: Certificate, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what pages show beside a certificate: its own facts, and those of its record in the log."""
    said = json.loads(certificate.content)
    scan, utility = said["scan"], said["utility"]
    kept = [step["kept"] for step in record.get("steps") or said.get("chain", ())]
    stages = record.get("stages", said.get("stages_total", len(kept)))
    return {
        "version": certificate.version,
        "duration": record.get("duration"),
        "stages_rerun": kept[:stages].count(False),
        "stages_total": stages,
        "cost": record.get("cost"),
        "kept": kept,
        "files_searched": record.get("files", scan["files"] if scan else 0),
        "utility": utility and {"before": utility["before"], "after": utility["after"], "grain": utility.get("grain")},
    }
