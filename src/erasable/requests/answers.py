"""Answers that can be repeated: who sends a request again under the same key gets the answer of the first time.

An answer is sealed with the key that the caller chose. The queue keeps digests of the key and of the body under that
key, so that whoever reads it learns nothing from it, and can't test a guess about whom it was.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

from erasable.errors import Refused, WrongUse
from erasable.requests.cipher import decrypt, encrypt
from erasable.requests.database import Connection, Database
from erasable.requests.lease import Lease

_SECONDS_KEPT = 86_400


class AnsweredBefore(Exception):
    """Another server has answered under the same key meanwhile: what was done for this answer is taken back."""

    def __init__(self, answer: bytes) -> None:
        super().__init__()
        self.answer = answer
        """What was answered."""


class Answers:
    """Keeps answers under the keys of callers."""

    def __init__(self, database: Database) -> None:
        self._database = database
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
        name = _digest(key, b"answer key")
        statement = "SELECT * FROM answers WHERE key_digest = ?"
        rows = self._database.read(lambda connection: connection.execute(statement, (name,)))
        if not rows:
            return None
        (row,) = rows
        if row["body_digest"] != _body_digest(key, body):
            raise WrongUse("this Idempotency-Key came with another body before: take a new key for a new request")
        return decrypt(_seal_key(key), bytes(row["sealed_bytes"]))

    def keep(self, key: str, body: bytes, answer: bytes) -> None:
        """Keep an answer; in the change that it tells of, which comes to nothing where there is another answer."""
        sealed = encrypt(_seal_key(key), answer)
        values = (_digest(key, b"answer key"), time.time(), _body_digest(key, body), sealed)
        statement = "INSERT INTO answers (key_digest, answer_time, body_digest, sealed_bytes) VALUES (?, ?, ?, ?)"

        def keep(connection: Connection) -> None:
            earlier = self.earlier(key, body)  # since it was looked for before the change began
            if earlier is not None:
                raise AnsweredBefore(earlier)
            connection.execute(statement, values)

        self._database.change(keep)

    def drop_old(self, lease: Lease) -> bool:
        """Drop answers that nobody repeats any more, as the holder of the lease; say whether there were any."""
        old = time.time() - _SECONDS_KEPT
        looked_at = "SELECT 1 FROM answers WHERE answer_time < ? LIMIT 1"
        if not self._database.read(lambda connection: connection.execute(looked_at, (old,))):
            return False
        lease.change(lambda connection: connection.execute("DELETE FROM answers WHERE answer_time < ?", (old,)))
        return True


def _digest(text: str, purpose: bytes) -> str:
    return blake2b(text.encode(), person=purpose, digest_size=32).hexdigest()


def _seal_key(key: str) -> bytes:
    return blake2b(key.encode(), person=b"answer seal", digest_size=32).digest()


def _body_digest(key: str, body: bytes) -> str:
    return blake2b(body, key=_seal_key(key), person=b"answer body", digest_size=32).hexdigest()
