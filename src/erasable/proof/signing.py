"""What certificates and the log share: canonical JSON, signatures, salted digests, and the certified steps."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import BaseModel, ConfigDict

from erasable import fingerprint
from erasable.chain.checkpoint import CheckpointStore
from erasable.chain.dataset import Dataset, Link, State
from erasable.chain.tasks import ORIGIN
from erasable.errors import WorkspaceDamaged

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

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


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


def data_digest(salt: str, dataset: Dataset) -> str:
    """Return a salted digest of all interactions, in their groups and in the holdout."""
    parts = [*(group.digest() for group in dataset.groups), dataset.held_out.digest()]
    return salted_digest(salt, " ".join(parts))


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
