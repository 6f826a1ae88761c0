"""Signatures: Ed25519 over bytes, keys and signatures in hexadecimal; what is signed is not known here."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from erasable.errors import WorkspaceDamaged


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
    """Whether a signature of these bytes was made with the private half of this key."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(bytes.fromhex(signature), content)
    except (ValueError, InvalidSignature):
        return False
    # Python reads capitals and spaces as well, so that one signature could be written in many ways.
    return bytes.fromhex(signature).hex() == signature


def _private(key: bytes) -> Ed25519PrivateKey:
    try:
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(key.decode()))
    except ValueError as error:
        raise WorkspaceDamaged("the signing key can't be read: restore it from a copy of the workspace") from error
