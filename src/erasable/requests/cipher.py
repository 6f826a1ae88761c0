"""The one way in which something is sealed: ChaCha20-Poly1305, with a random nonce before what it makes."""

import secrets

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

_NONCE_BYTES = 12


def encrypt(key: bytes, content: bytes, about: str = "") -> bytes:
    """Return bytes sealed with a key; they open only as what they are about."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, content, about.encode())


def decrypt(key: bytes, sealed: bytes, about: str = "") -> bytes:
    """Return what was sealed with a key; InvalidTag if it was another, or about something else."""
    return ChaCha20Poly1305(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], about.encode())
