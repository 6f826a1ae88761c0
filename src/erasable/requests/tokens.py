"""Tokens: who may do what. A token is shown once and kept as a digest; a visit is a token's stay in a browser."""

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Literal, get_args

from erasable.errors import Refused
from erasable.requests.database import Connection, Database, Row
from erasable.requests.events import add_event

Role = Literal["application", "officer", "operator"]
ROLES: tuple[Role, ...] = get_args(Role)
ACTOR = "command"
_VISIT_SECONDS = 12 * 3600
_SECRET_BYTES = 32


@dataclass(frozen=True)
class Caller:
    """Whoever asks: the number of the token and its role."""

    token: str
    role: Role

    @property
    def actor(self) -> str:
        """How events name the caller."""
        return f"{self.role} {self.token}"


@dataclass(frozen=True)
class Token:
    """What is kept of a token."""

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
        """Make a token, and return its number and the secret, which is shown this once."""
        number, secret = secrets.token_hex(4), secrets.token_urlsafe(_SECRET_BYTES)

        def create(connection: Connection) -> None:
            written, at = self._database.labels.written(label), now.isoformat(timespec="seconds")
            values = (number, _digest(secret), role, written, at)
            connection.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, NULL)", values)
            add_event(connection, now, ACTOR, "token created", facts={"token": number, "role": role})

        self._database.change(create)
        self._mark = None  # known here at once
        return number, secret

    def revoke(self, number: str, now: datetime) -> None:
        """Make a token worthless, and end its visits."""

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
        """Give a token another label; nothing is left of the one before."""

        def rename(connection: Connection) -> None:
            statement = "UPDATE tokens SET label = ? WHERE token_number = ? RETURNING token_number"
            if not connection.execute(statement, (self._database.labels.written(label), number)):
                raise Refused(f"there is no token {number}: erasable token list shows them")
            add_event(connection, now, ACTOR, "token renamed", facts={"token": number})

        self._database.change(rename)
        self._database.wipe()

    def all(self) -> list[Token]:
        """Return what is kept of all tokens, oldest first."""
        made = "SELECT facts, event_number FROM events WHERE event_name = 'token created' ORDER BY event_number"

        def found(connection: Connection) -> list[Token]:
            order = {json.loads(row["facts"])["token"]: row["event_number"] for row in connection.execute(made)}
            rows = connection.execute("SELECT * FROM tokens ORDER BY created_time")
            rows.sort(key=lambda row: (row["created_time"], order.get(row["token_number"], 0)))
            return [self._token(row) for row in rows]

        return self._database.read(found)

    def caller(self, secret: str) -> Caller | None:
        """Return whose token this is, None if it is nobody's any more."""
        mark = self._database.mark()
        if mark != self._mark:
            self._known, self._mark = self._in_use(), mark
        return self._known.get(_digest(secret))

    def begin_visit(self, caller: Caller) -> str:
        """Let a caller in by browser, and return the secret of the visit."""
        secret, now = secrets.token_urlsafe(_SECRET_BYTES), time.time()
        values = (_digest(secret), caller.token, now + _VISIT_SECONDS)

        def begin(connection: Connection) -> None:
            connection.execute("DELETE FROM visits WHERE end_time < ?", (now,))
            connection.execute("INSERT INTO visits VALUES (?, ?, ?)", values)

        self._database.change(begin)
        return secret

    def visitor(self, secret: str) -> Caller | None:
        """Return who came by browser, None if the visit is over."""
        statement = (
            "SELECT token_number, role_name FROM visits JOIN tokens USING (token_number) "
            "WHERE visit_digest = ? AND end_time > ? AND revoked_time IS NULL"
        )
        values = (_digest(secret), time.time())
        rows = self._database.read(lambda connection: connection.execute(statement, values))
        return Caller(rows[0]["token_number"], rows[0]["role_name"]) if rows else None

    def end_visit(self, secret: str) -> None:
        """Let nobody in with this visit any more."""
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
    # The secrets are random, so that a fast digest is as good as a slow one.
    return blake2b(secret.encode("utf-8", "replace"), person=b"erasable token", digest_size=32).hexdigest()
