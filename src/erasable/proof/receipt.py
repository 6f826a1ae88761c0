"""The subject's receipt: what lets a person show that a certificate is about them; kept by nobody else."""

import base64
import secrets
from hashlib import blake2b
from typing import Literal

from pydantic import ConfigDict, Field

from erasable.documents import format_in, newer, read_json, says_more
from erasable.errors import NewerDocument, Refused, Said
from erasable.proof.canonical import canonical
from erasable.proof.certificate import Certificate
from erasable.proof.paper import Paper
from erasable.proof.pending import Accepted
from erasable.proof.salting import commitment, reference_commitment

FORMAT = 2
"""Receipts of 0.1 name no format; that is 1."""
ABOUT = (
    "Keep this: with what stands in it, and only with that, it can be shown that the certificate is about you. What "
    "you asked for was erased, and the recommender keeps no copy of this receipt."
)


class Receipt(Paper):
    """Who asked for what, and the salt of the commitments in the certificate."""

    model_config = ConfigDict(extra="allow")

    kind: Literal["receipt of erasure"] = "receipt of erasure"
    format: int = Field(1, ge=1, strict=True)
    request_id: str
    user_id: str = Field(repr=False)
    items: tuple[str, ...] | None = Field(None, repr=False)
    reference: str | None = Field(None, repr=False)
    """A case number, or what else was typed in beside the request."""
    salt: str = Field(pattern="^[0-9a-f]{64}$", repr=False)
    about: str = ABOUT

    @staticmethod
    def of(accepted: Accepted) -> "Receipt":
        """Return the receipt of an accepted request."""
        return Receipt(
            format=FORMAT,
            request_id=accepted.request_id,
            user_id=accepted.user,
            items=accepted.items,
            reference=accepted.reference,
            salt=accepted.salt,
        )

    def opens(self, certificate: Certificate) -> bool:
        """Whether the certificate is about whom this receipt names, and about what they asked for.

        A receipt that was put together from what a person remembers may lack the reference; a wrong one opens nothing.
        """
        same = self.request_id == certificate.request_id and self._names_reference(certificate)
        return same and commitment(self.salt, self.user_id, self.items) == certificate.subject

    def _names_reference(self, certificate: Certificate) -> bool:
        return self.reference is None or reference_commitment(self.salt, self.reference) == certificate.reference

    @property
    def newer(self) -> bool:
        """Whether it says something that this version does not know."""
        return says_more(self)

    def encoded(self) -> bytes:
        """Return it as canonical JSON."""
        return canonical(self.model_dump(mode="json"))

    def in_short(self) -> str:
        """Return what can't be known otherwise, on one line; it reads as a receipt, too."""
        return canonical(self.model_dump(mode="json", exclude_defaults=True)).decode()


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


def _digest(code: str, purpose: bytes) -> str:
    letters = "".join(filter(str.isalnum, code.upper()))
    return blake2b(letters.encode("utf-8", "replace"), person=purpose, digest_size=32).hexdigest()


def read_receipt(content: bytes) -> Receipt:
    """Read a receipt."""
    try:
        fields = read_json(content)
        found = format_in(fields, unnamed=1) if isinstance(fields, dict) else None
        if found is not None and found > FORMAT:
            raise NewerDocument(f"it {newer(found, FORMAT)}")
        return Receipt.model_validate(fields)
    except ValueError:  # also what pydantic finds
        made = Said("a file that forget made", "the file that forget --receipts made")
        raise Refused("it is no receipt of erasure: give ", made) from None
