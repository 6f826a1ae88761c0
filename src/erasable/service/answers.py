"""Answers that can be repeated: who sends a request again under the same key gets the answer of the first time.

An answer is sealed with the key that the caller chose. The ledger keeps digests of the key and of the body under that
key, so that whoever reads the ledger learns nothing from it, and can't test a guess about whom it was.
"""

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from erasable.errors import Refused, WrongUse
from erasable.store.ledger import Ledger

_NONCE_BYTES = 12


class Answers:
    """Keeps answers under the keys of callers."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._in_flight: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def under(self, key: str) -> Iterator[None]:
        """Be the only one who answers under a key; whoever comes meanwhile is refused."""
        name = _digest(key, b"answer key")
        with self._lock:
            if name in self._in_flight:
                raise Refused("a request with this Idempotency-Key is being answered: wait for it, then try again")
            self._in_flight.add(name)
        try:
            yield
        finally:
            with self._lock:
                self._in_flight.discard(name)

    def earlier(self, key: str, body: bytes) -> bytes | None:
        """Return the answer that was given to the same under this key; another body is refused."""
        with self._ledger.reading() as connection:
            row = connection.execute(
                "SELECT * FROM answers WHERE key_digest = ?", (_digest(key, b"answer key"),)
            ).fetchone()
        if row is None:
            return None
        if row["body_digest"] != _body_digest(key, body):
            raise WrongUse("this Idempotency-Key came with another body before: take a new key for a new request")
        sealed: bytes = row["sealed_bytes"]
        return ChaCha20Poly1305(_seal_key(key)).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)

    def keep(self, key: str, body: bytes, answer: bytes) -> None:
        """Keep an answer."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = nonce + ChaCha20Poly1305(_seal_key(key)).encrypt(nonce, answer, None)
        with self._ledger.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)",
                (_digest(key, b"answer key"), time.time(), _body_digest(key, body), sealed),
            )


def _digest(text: str, purpose: bytes) -> str:
    return blake2b(text.encode(), person=purpose, digest_size=32).hexdigest()


def _seal_key(key: str) -> bytes:
    return blake2b(key.encode(), person=b"answer seal", digest_size=32).digest()


def _body_digest(key: str, body: bytes) -> str:
    return blake2b(body, key=_seal_key(key), person=b"answer body", digest_size=32).hexdigest()
