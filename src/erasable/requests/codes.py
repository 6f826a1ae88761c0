"""Receipt codes: the secret with which a person follows a request, and later shows that a certificate is about them.

The queue keeps digests. Whoever submits again gets a code of their own, under which that of the first is sealed.
"""

import base64
import secrets
from hashlib import blake2b

from erasable.requests.cipher import decrypt, encrypt

_CODE_BYTES = 20
_CODE_PART = 4


def new_receipt_code() -> str:
    """Return a secret that a person can type, from which the salt of the receipt is made."""
    letters = base64.b32encode(secrets.token_bytes(_CODE_BYTES)).decode()
    return "-".join(letters[start : start + _CODE_PART] for start in range(0, len(letters), _CODE_PART))


def salt_of_code(code: str) -> str:
    """Return the salt that a code stands for, however it is typed.

    >>> salt_of_code("ABCD-EFGH") == salt_of_code(" abcdefgh ")
    True
    """
    return _digest(code, b"receipt salt")


def receipt_code_digest(code: str) -> str:
    """Return what tells a code from others and does not show it."""
    return _digest(code, b"receipt code")


def seal(code: str, under: str) -> bytes:
    """Return a code, sealed under another."""
    return encrypt(_key(under), code.encode())


def unseal(sealed: bytes, under: str) -> str:
    """Return the code that was sealed under another."""
    return decrypt(_key(under), sealed).decode()


def _digest(code: str, purpose: bytes) -> str:
    letters = "".join(filter(str.isalnum, code.upper()))
    return blake2b(letters.encode("utf-8", "replace"), person=purpose, digest_size=32).hexdigest()


def _key(code: str) -> bytes:
    return blake2b(bytes.fromhex(salt_of_code(code)), person=b"sealed code", digest_size=32).digest()
