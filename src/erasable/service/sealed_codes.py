"""A receipt code under another: whoever submits again gets a code of their own, which opens that of the first.

The ledger keeps neither: of the second a digest, of the first what only the second opens.
"""

import secrets
from hashlib import blake2b

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from erasable.proof import salt_of_code

_NONCE_BYTES = 12


def seal(code: str, under: str) -> bytes:
    """Return a code, sealed under another."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + _cipher(under).encrypt(nonce, code.encode(), None)


def unseal(sealed: bytes, under: str) -> str:
    """Return the code that was sealed under another."""
    return _cipher(under).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None).decode()


def _cipher(code: str) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(blake2b(bytes.fromhex(salt_of_code(code)), person=b"sealed code", digest_size=32).digest())
