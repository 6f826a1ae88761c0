"""The subject's receipt: what lets a person show that a certificate is about them; kept by nobody else."""

from typing import Literal

from pydantic import ConfigDict, Field

from erasable.documents import format_in, newer, read_json, says_more
from erasable.errors import NewerDocument, Refused, Said
from erasable.proof.canonical import canonical
from erasable.proof.certificate import Certificate
from erasable.proof.paper import Paper
from erasable.proof.salting import commitment, reference_commitment
from erasable.proof.search_file import Sought

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
    def of(sought: Sought) -> "Receipt":
        """Return the receipt of who was erased."""
        return Receipt(
            format=FORMAT,
            request_id=sought.request_id,
            user_id=sought.user,
            items=sought.items,
            reference=sought.reference,
            salt=sought.salt,
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
