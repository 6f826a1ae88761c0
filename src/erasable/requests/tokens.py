"""Secrets: the cipher, receipt codes, tokens and browser sessions, and answers kept for idempotency keys."""

import base64
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Literal, get_args

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from erasable.errors import Refused, WrongUse
from erasable.requests.database import Connection, Database, Row, add_event
from erasable.requests.lease import Lease

_NONCE_BYTES = 12


def encrypt(key: bytes, content: bytes, about: str = "") -> bytes:
    """Encrypt bytes, bound to what they are about."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, content, about.encode())


def decrypt(key: bytes, sealed: bytes, about: str = "") -> bytes:
    """Decrypt bytes; raises InvalidTag if the key is wrong, or they are about something else."""
    return ChaCha20Poly1305(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], about.encode())


_CODE_BYTES = 20
_CODE_PART = 4


def new_receipt_code() -> str:
    """Return a random code that a person can type, from which the receipt's salt is derived."""
    letters = base64.b32encode(secrets.token_bytes(_CODE_BYTES)).decode()
    return "-".join(letters[start : start + _CODE_PART] for start in range(0, len(letters), _CODE_PART))


def salt_of_code(code: str) -> str:
    """Return the salt derived from a code, ignoring case, spaces and dashes.

    >>> salt_of_code("ABCD-EFGH") == salt_of_code(" abcdefgh ")
    True
    """
    return _code_digest(code, b"receipt salt")


def receipt_code_digest(code: str) -> str:
    """Return a digest that identifies a code without revealing it."""
    return _code_digest(code, b"receipt code")


def seal(code: str, under: str) -> bytes:
    """Encrypt a code with another code."""
    return encrypt(_key(under), code.encode())


def unseal(sealed: bytes, under: str) -> str:
    """Decrypt a code with another code."""
    return decrypt(_key(under), sealed).decode()


def _code_digest(code: str, purpose: bytes) -> str:
    letters = "".join(filter(str.isalnum, code.upper()))
    return blake2b(letters.encode("utf-8", "replace"), person=purpose, digest_size=32).hexdigest()


def _key(code: str) -> bytes:
    return blake2b(bytes.fromhex(salt_of_code(code)), person=b"sealed code", digest_size=32).digest()


Role = Literal["application", "officer", "operator"]
ROLES: tuple[Role, ...] = get_args(Role)
ACTOR = "command"
_VISIT_SECONDS = 12 * 3600
_SECRET_BYTES = 32


@dataclass(frozen=True)
class Caller:
    """A caller of the service: the number and the role of the token used."""

    token: str
    role: Role

    @property
    def actor(self) -> str:
        """The caller's name in events."""
        return f"{self.role} {self.token}"


@dataclass(frozen=True)
class Token:
    """What is kept of a token; its secret is not."""

    number: str
    role: Role
    label: str
    created: str
    revoked: str | None


class Tokens:
    """The tokens of a queue."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: Mapping[str, Caller] = {}
        self._mark: object = None

    def create(self, role: Role, label: str, now: datetime) -> tuple[str, str]:
        """Make a token, and return its number and its secret, which can't be shown again."""
        number, secret = secrets.token_hex(4), secrets.token_urlsafe(_SECRET_BYTES)

        def create(connection: Connection) -> None:
            written, at = self._database.labels.written(label), now.isoformat(timespec="seconds")
            values = (number, _digest(secret), role, written, at)
            connection.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, NULL)", values)
            add_event(connection, now, ACTOR, "token created", facts={"token": number, "role": role})

        self._database.change(create)
        self._mark = None  # so that this process accepts it at once
        return number, secret

    def revoke(self, number: str, now: datetime) -> None:
        """Revoke a token, and end its browser sessions."""

        def revoke(connection: Connection) -> None:
            changed = connection.execute(
                "UPDATE tokens SET revoked_time = ? WHERE token_number = ? AND revoked_time IS NULL "
                "RETURNING token_number",
                (now.isoformat(timespec="seconds"), number),
            )
            if not changed:
                raise Refused(f"there is no token {number} in use: erasable token list shows them")
            connection.execute("DELETE FROM visits WHERE token_number = ?", (number,))
            add_event(connection, now, ACTOR, "token revoked", facts={"token": number})

        self._database.change(revoke)
        self._mark = None

    def rename(self, number: str, label: str, now: datetime) -> None:
        """Change a token's label; nothing is left of the old one."""

        def rename(connection: Connection) -> None:
            statement = "UPDATE tokens SET label = ? WHERE token_number = ? RETURNING token_number"
            if not connection.execute(statement, (self._database.labels.written(label), number)):
                raise Refused(f"there is no token {number}: erasable token list shows them")
            add_event(connection, now, ACTOR, "token renamed", facts={"token": number})

        self._database.change(rename)
        self._database.wipe()

    def all(self) -> list[Token]:
        """Return all tokens, oldest first."""
        made = "SELECT facts, event_number FROM events WHERE event_name = 'token created' ORDER BY event_number"

        def found(connection: Connection) -> list[Token]:
            order = {json.loads(row["facts"])["token"]: row["event_number"] for row in connection.execute(made)}
            rows = connection.execute("SELECT * FROM tokens ORDER BY created_time")
            rows.sort(key=lambda row: (row["created_time"], order.get(row["token_number"], 0)))
            return [self._token(row) for row in rows]

        return self._database.read(found)

    def caller(self, secret: str) -> Caller | None:
        """Return the caller with this token, None if it is unknown or revoked."""
        mark = self._database.mark()
        if mark != self._mark:
            self._known, self._mark = self._in_use(), mark
        return self._known.get(_digest(secret))

    def begin_visit(self, caller: Caller) -> str:
        """Begin a browser session, and return its secret."""
        secret, now = secrets.token_urlsafe(_SECRET_BYTES), time.time()
        values = (_digest(secret), caller.token, now + _VISIT_SECONDS)

        def begin(connection: Connection) -> None:
            connection.execute("DELETE FROM visits WHERE end_time < ?", (now,))
            connection.execute("INSERT INTO visits VALUES (?, ?, ?)", values)

        self._database.change(begin)
        return secret

    def visitor(self, secret: str) -> Caller | None:
        """Return the caller of a browser session, None if it has ended."""
        statement = (
            "SELECT token_number, role_name FROM visits JOIN tokens USING (token_number) "
            "WHERE visit_digest = ? AND end_time > ? AND revoked_time IS NULL"
        )
        values = (_digest(secret), time.time())
        rows = self._database.read(lambda connection: connection.execute(statement, values))
        return Caller(rows[0]["token_number"], rows[0]["role_name"]) if rows else None

    def end_visit(self, secret: str) -> None:
        """End a browser session."""
        statement = "DELETE FROM visits WHERE visit_digest = ?"
        self._database.change(lambda connection: connection.execute(statement, (_digest(secret),)))

    def _token(self, row: Row) -> Token:
        label = self._database.labels.read(row["label"])
        return Token(row["token_number"], row["role_name"], label, row["created_time"], row["revoked_time"])

    def _in_use(self) -> dict[str, Caller]:
        statement = "SELECT * FROM tokens WHERE revoked_time IS NULL"
        rows = self._database.read(lambda connection: connection.execute(statement))
        return {row["token_digest"]: Caller(row["token_number"], row["role_name"]) for row in rows}


def _digest(secret: str) -> str:
    # The secrets are random, so a fast digest is as good as a slow one.
    return blake2b(secret.encode("utf-8", "replace"), person=b"erasable token", digest_size=32).hexdigest()


_SECONDS_KEPT = 86_400


class AnsweredBefore(Exception):
    """Another server answered with the same key meanwhile, so this change is rolled back."""

    def __init__(self, answer: bytes) -> None:
        super().__init__()
        self.answer = answer
        """The answer that was given."""


class Answers:
    """Answers by Idempotency-Key, so that a repeated call gets the same answer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._in_flight: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def under(self, key: str) -> Iterator[None]:
        """Hold a key while its answer is prepared; other calls with it are refused."""
        name = _digest_for(key, b"answer key")
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
        """Return the earlier answer to this key; refused if the body was another."""
        name = _digest_for(key, b"answer key")
        statement = "SELECT * FROM answers WHERE key_digest = ?"
        rows = self._database.read(lambda connection: connection.execute(statement, (name,)))
        if not rows:
            return None
        (row,) = rows
        if row["body_digest"] != _body_digest(key, body):
            raise WrongUse("this Idempotency-Key was used with another body: use a new key for a new request")
        return decrypt(_seal_key(key), bytes(row["sealed_bytes"]))

    def keep(self, key: str, body: bytes, answer: bytes) -> None:
        """Keep an answer, inside the change that it reports; rolls that back if there is an answer already."""
        sealed = encrypt(_seal_key(key), answer)
        values = (_digest_for(key, b"answer key"), time.time(), _body_digest(key, body), sealed)
        statement = "INSERT INTO answers (key_digest, answer_time, body_digest, sealed_bytes) VALUES (?, ?, ?, ?)"

        def keep(connection: Connection) -> None:
            earlier = self.earlier(key, body)  # one may have come since the first look, before this change
            if earlier is not None:
                raise AnsweredBefore(earlier)
            connection.execute(statement, values)

        self._database.change(keep)

    def drop_old(self, lease: Lease) -> bool:
        """Drop answers older than a day, as the holder of the lease; return whether there were any."""
        old = time.time() - _SECONDS_KEPT
        looked_at = "SELECT 1 FROM answers WHERE answer_time < ? LIMIT 1"
        if not self._database.read(lambda connection: connection.execute(looked_at, (old,))):
            return False
        lease.change(lambda connection: connection.execute("DELETE FROM answers WHERE answer_time < ?", (old,)))
        return True


def _digest_for(text: str, purpose: bytes) -> str:
    return blake2b(text.encode(), person=purpose, digest_size=32).hexdigest()


def _seal_key(key: str) -> bytes:
    return blake2b(key.encode(), person=b"answer seal", digest_size=32).digest()


def _body_digest(key: str, body: bytes) -> str:
    return blake2b(body, key=_seal_key(key), person=b"answer body", digest_size=32).hexdigest()
