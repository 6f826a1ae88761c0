"""Certificates that were issued, by the id of their request, and what the log says of their erasures."""

from collections.abc import Collection, Mapping
from typing import Any

from erasable.errors import UnknownRequest
from erasable.operations.home import Home
from erasable.proof import Certificate, read_certificate, records_about


def certificates_of(home: Home, request_ids: Collection[str]) -> dict[str, Certificate]:
    """Return the certificates of some requests, as far as there are such."""
    with home.reading() as session:
        issued = session.issued()
        found = {one: issued[f"{one}.json"] for one in request_ids if f"{one}.json" in issued}
    return {request_id: read_certificate(content) for request_id, content in found.items()}


def erasure_records(home: Home, request_ids: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return what the log says of the erasures of some requests: what was kept and made again is not for everyone."""
    with home.reading() as session:
        return records_about(request_ids, session.papers())


def certificate_file(home: Home, name: str) -> bytes:
    """Return the file of a certificate, or of its page, as it was issued."""
    with home.reading() as session:
        issued = session.issued()
        if name not in issued:
            raise UnknownRequest("there is no certificate of that request: it is issued when the erasure is done")
        return issued[name]
