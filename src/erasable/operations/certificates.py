"""Certificates that were issued, by the id of their request."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from erasable.errors import UnknownRequest
from erasable.operations.home import Home
from erasable.proof import Certificate, read_certificate, record_of


@dataclass(frozen=True)
class Certified:
    """A certificate that was issued, and what the log says of its erasure, which is not for everyone."""

    certificate: Certificate
    record: Mapping[str, Any]


def certificates_of(home: Home, request_ids: Collection[str]) -> dict[str, Certified]:
    """Return the certificates of some requests, as far as there are such."""
    with home.reading() as session:
        issued, papers = session.issued(), session.papers()
        names = {one: f"{one}.json" for one in request_ids}
        found = {one: read_certificate(issued[name]) for one, name in names.items() if name in issued}
        return {one: Certified(certificate, record_of(certificate, papers) or {}) for one, certificate in found.items()}


def certificate_file(home: Home, name: str) -> bytes:
    """Return the file of a certificate, or of its page, as it was issued."""
    with home.reading() as session:
        issued = session.issued()
        if name not in issued:
            raise UnknownRequest("there is no certificate of that request: it is issued when the erasure is done")
        return issued[name]
