"""Tokens: who may do what. A token is shown once and kept as a digest; a visit is a token's stay in a browser."""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Literal, get_args

from erasable.errors import Refused
from erasable.service.events import add_event
from erasable.store.ledger import Ledger

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
    """The tokens of a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        # Of its own: who asks for recommendations waits for nobody who writes.
        self._watch = Ledger(ledger.path, with_ended=False)
        self._known: Mapping[str, Caller] = {}
        self._mark: int | None = None

    def create(self, role: Role, label: str, now: datetime) -> tuple[str, str]:
        """Make a token, and return its number and the secret, which is shown this once."""
        number, secret = secrets.token_hex(4), secrets.token_urlsafe(_SECRET_BYTES)
        with self._ledger.writing() as connection:
            values = (number, _digest(secret), role, label, now.isoformat(timespec="seconds"))
            connection.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, NULL)", values)
            add_event(connection, now, ACTOR, "token created", facts={"token": number, "role": role})
        return number, secret

    def revoke(self, number: str, now: datetime) -> None:
        """Make a token worthless, and end its visits."""
        with self._ledger.writing() as connection:
            changed = connection.execute(
                "UPDATE tokens SET revoked_time = ? WHERE token_number = ? AND revoked_time IS NULL",
                (now.isoformat(timespec="seconds"), number),
            ).rowcount
            if not changed:
                raise Refused(f"there is no token {number} in use: erasable token list shows them")
            connection.execute("DELETE FROM visits WHERE token_number = ?", (number,))
            add_event(connection, now, ACTOR, "token revoked", facts={"token": number})

    def rename(self, number: str, label: str, now: datetime) -> None:
        """Give a token another label; nothing is left of the one before."""
        with self._ledger.writing() as connection:
            changed = connection.execute("UPDATE tokens SET label = ? WHERE token_number = ?", (label, number)).rowcount
            if not changed:
                raise Refused(f"there is no token {number}: erasable token list shows them")
            add_event(connection, now, ACTOR, "token renamed", facts={"token": number})
        self._ledger.wipe()

    def all(self) -> list[Token]:
        """Return what is kept of all tokens, oldest first."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT * FROM tokens ORDER BY created_time, rowid").fetchall()
        return [
            Token(row["token_number"], row["role_name"], row["label"], row["created_time"], row["revoked_time"])
            for row in rows
        ]

    def caller(self, secret: str) -> Caller | None:
        """Return whose token this is, None if it is nobody's any more."""
        mark = self._watch.change_mark()
        if mark != self._mark:
            self._known, self._mark = self._in_use(), mark
        return self._known.get(_digest(secret))

    def begin_visit(self, caller: Caller) -> str:
        """Let a caller in by browser, and return the secret of the visit."""
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        with self._ledger.writing() as connection:
            connection.execute("DELETE FROM visits WHERE end_time < ?", (time.time(),))
            connection.execute(
                "INSERT INTO visits VALUES (?, ?, ?)", (_digest(secret), caller.token, time.time() + _VISIT_SECONDS)
            )
        return secret

    def visitor(self, secret: str) -> Caller | None:
        """Return who came by browser, None if the visit is over."""
        with self._watch.reading() as connection:
            row = connection.execute(
                "SELECT token_number, role_name FROM visits JOIN tokens USING (token_number) "
                "WHERE visit_digest = ? AND end_time > ? AND revoked_time IS NULL",
                (_digest(secret), time.time()),
            ).fetchone()
        return Caller(row["token_number"], row["role_name"]) if row else None

    def end_visit(self, secret: str) -> None:
        """Let nobody in with this visit any more."""
        with self._ledger.writing() as connection:
            connection.execute("DELETE FROM visits WHERE visit_digest = ?", (_digest(secret),))

    def _in_use(self) -> dict[str, Caller]:
        with self._watch.reading() as connection:
            rows = connection.execute("SELECT * FROM tokens WHERE revoked_time IS NULL").fetchall()
        return {row["token_digest"]: Caller(row["token_number"], row["role_name"]) for row in rows}


def _digest(secret: str) -> str:
    # The secrets are random, so that a fast digest is as good as a slow one.
    return blake2b(secret.encode("utf-8", "replace"), person=b"erasable token", digest_size=32).hexdigest()
