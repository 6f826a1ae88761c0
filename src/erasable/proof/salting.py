"""Salted digests: what can be compared while the salt is there, and not even guessed once it is destroyed."""

import secrets
from collections.abc import Sequence
from hashlib import blake2b

from erasable.proof.canonical import canonical
from erasable.training import Knowledge, State

SALT_BYTES = 32


def new_salt() -> str:
    """Return 32 random bytes in hexadecimal."""
    return secrets.token_hex(SALT_BYTES)


def salted_digest(salt: str, text: str) -> str:
    """Return a digest that can't be tested against a guess once the salt is destroyed with its version."""
    return blake2b(text.encode(), key=bytes.fromhex(salt), digest_size=32).hexdigest()


def commitment(salt: str, user: str, items: Sequence[str] | None) -> str:
    """Return a digest that binds to who asked and for what, and says nothing without the salt."""
    asked = canonical({"user_id": user, "items": None if items is None else sorted(items)})
    return salted_digest(salt, asked.decode())


def reference_commitment(salt: str, reference: str | None) -> str:
    """Return a digest that binds to what was typed in beside a request; it does not even tell whether anything was."""
    return salted_digest(salt, canonical({"reference": reference}).decode())


def data_digest(salt: str, knowledge: Knowledge) -> str:
    """Return a salted digest of all interactions that are held, in their groups and held out."""
    parts = [*(group.digest() for group in knowledge.groups), knowledge.held_out.digest()]
    return salted_digest(salt, " ".join(parts))


def state_digest(salt: str, state: State) -> str:
    """Return a salted digest of the names of all checkpoints, which cover everything that made them."""
    return salted_digest(salt, " ".join(link.fingerprint for link in state.named))
