"""What is written about a recommender beside its state; the store keeps papers and does not know what they say."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from erasable.store.preferences import NO_PREFERENCES, Preferences


class Stamp(NamedTuple):
    """What tells a version from all others: its number, and 32 random bytes that vanish with it."""

    version: int
    salt: str

    @staticmethod
    def after(version: int) -> "Stamp":
        """Return the stamp of the version that comes next."""
        return Stamp(version + 1, secrets.token_hex(32))


def _nothing() -> bytes:
    return b""


@dataclass(frozen=True)
class Papers:
    """Replaces the papers of the version before; one that is empty is not kept."""

    audit: bytes = b""
    """The records of what was done that are not sealed yet: each holds the hash of the one before it."""
    key: bytes = field(default=b"", repr=False)
    """What certificates are signed with."""
    key_withheld: bool = field(default=False, kw_only=True)
    """Whether there is a key that is not for whoever reads this."""
    pending: bytes = field(default=b"", repr=False)
    """Requests that are being carried out; it names people, so it goes when they are done."""
    certificates: Mapping[str, bytes] = field(default_factory=dict)
    """Those to add to the ones that are there, by file name."""
    requests: bytes | None = field(default=None, repr=False)
    """The service's requests that have ended, as a database; None keeps those that are there."""
    preferences: Preferences = NO_PREFERENCES
    """What the workspace remembers of how it is used."""
    seal: bool = False
    """Whether what is finished is sealed when there is enough of it; it was searched just before."""
    sealed_records: Callable[[], bytes] = field(default=_nothing, repr=False, compare=False)
    """What reads the records that were sealed before."""

    def records(self) -> bytes:
        """Return all records, oldest first."""
        return self.sealed_records() + self.audit


NO_PAPERS = Papers()
