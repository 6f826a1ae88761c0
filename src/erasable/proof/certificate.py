"""Certificates: what the rest of the code needs of them, and how those of every format are read.

What is signed are the bytes that lie there, never what they were read into: a field that this version does not know
changes nothing, and one byte that was changed is found.
"""

import json
from typing import Any

from pydantic import ConfigDict, Field, ValidationError

from erasable import fingerprint
from erasable.documents import format_in, newer, read_json, says_more
from erasable.errors import NewerDocument, Refused
from erasable.proof import certificate_2
from erasable.proof.paper import Paper
from erasable.proof.signing import is_signed
from erasable.proof.statement import FORMAT, KIND, Statement, signed_bytes
from erasable.proof.steps import CertifiedStep


class _Needed(Paper):
    model_config = ConfigDict(extra="ignore")


class NamedCatalogue(_Needed):
    """The items that could be recommended."""

    declared: bool
    digest: str


class NamedData(_Needed):
    """The data that was held, as salted digests."""

    before: str
    after: str


class NamedRecord(_Needed):
    """A record of the audit chain."""

    number: int
    hash: str


class Certificate(_Needed):
    """A certificate of any format, as far as it is needed to check it; all that it says is in its content."""

    content: bytes = Field(repr=False)
    """The file as it was read."""
    format: int
    request_id: str = Field(pattern="^[0-9a-f]{32}$")
    subject: str
    """A commitment to who asked and for what; its salt is in the subject's receipt and nowhere else."""
    reference: str | None = None
    """A commitment to what else stands in the receipt; format 2 has none."""
    version: int
    """The version of the workspace that the erasure made."""
    policy: str
    settings: dict[str, Any]
    revision: int | None = None
    """The revision of the model; certificates of before name none."""
    environment: dict[str, str]
    catalogue: NamedCatalogue
    rating_scale: tuple[float, float]
    data: NamedData
    audit: NamedRecord
    """The last record of the audit chain before this erasure's own."""
    public_key: str
    chain: tuple[CertifiedStep, ...] | None = None
    """The steps of the chain in format 2; later formats leave them to the log."""
    newer: bool = False
    """Whether it says something that this version does not know."""

    def digest(self) -> str:
        """Return the fingerprint of the file, which the audit chain names it by."""
        return fingerprint.of_bytes(self.content)


def read_certificate(content: bytes) -> Certificate:
    """Read a certificate of any format and check its signature; one byte that was changed is refused."""
    fields = _fields(content)
    found = fields["format"]
    if not _is_signed(fields, content):
        # How a later format is signed is not known here.
        later = f"; if not, it {newer(found, FORMAT)}" if found > FORMAT else ""
        raise Refused(f"its signature does not fit: it was changed, or signed by someone else{later}")
    if found > FORMAT:
        raise NewerDocument(f"it {newer(found, FORMAT)}")
    try:
        return Certificate.model_validate({**_needed(fields), "content": content})
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise Refused(f"its field {place} is not as certificates have it: it was changed") from None


def _fields(content: bytes) -> dict[str, Any]:
    """Return what a certificate says, in a format that can be read."""
    try:
        fields = read_json(content)
    except ValueError:
        raise Refused(_unreadable(content)) from None
    if not isinstance(fields, dict) or fields.get("kind") != KIND:
        raise Refused("it is no certificate of erasure: give the .json file that forget made")
    found = format_in(fields)
    if found is None or found < certificate_2.FORMAT:
        raise Refused(f"it has the format {fields.get('format')!r}, which was never released: it was changed")
    return fields


def _unreadable(content: bytes) -> str:
    """Say what is wrong with JSON that was refused: whoever is less strict may read it."""
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return "it is no JSON: give the .json file that forget made"
    return "it can be read in more than one way, as no certificate can: it was changed"


def _is_signed(fields: dict[str, Any], content: bytes) -> bool:
    key, signature = str(fields.get("public_key")), str(fields.get("signature"))
    if fields["format"] == certificate_2.FORMAT:
        return is_signed(key, certificate_2.signed_content(fields, content), signature)
    signed = signed_bytes(content, signature)
    return signed is not None and is_signed(key, signed, signature)


def _needed(fields: dict[str, Any]) -> dict[str, Any]:
    """Return what is needed of a certificate; a chain that a later version names is not that of format 2."""
    if fields["format"] == certificate_2.FORMAT:
        return fields | {"newer": not fields.keys() <= certificate_2.FIELDS}
    known = {name: value for name, value in fields.items() if name != "chain"}
    return known | {"newer": says_more(Statement.model_validate(fields))}
