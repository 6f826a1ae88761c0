"""Proof: certificates and receipts, the log, the do-not-learn list."""

from typing import TYPE_CHECKING

from erasable.front_door import load_on_first_use
from erasable.proof import coarse

if TYPE_CHECKING:
    from erasable.proof.certificate import (
        Certificate,
        CertifiedScan,
        CertifiedStep,
        Statement,
        certified_steps,
        data_digest,
        new_key,
        now,
        public_key_of,
        read_certificate,
        recorded_steps,
        salted_digest,
        state_digest,
    )
    from erasable.proof.checking import (
        certificate_fault,
        chain_fault,
        documents_fault,
        held_fault,
        newest_certificate,
        newest_documents_fault,
        records_about,
        signing_public_key,
        version_fault,
    )
    from erasable.proof.issuing import Outcome, Receipt, certificate_page, issue_certificates, read_receipt
    from erasable.proof.log import Head, add_record, first_fault, head_of, records_of, says_more_than_known
    from erasable.proof.search_file import NOTHING_SOUGHT, Erased, Search, Sought, read_search
else:
    load_on_first_use(
        __name__,
        {
            "erasable.proof.certificate": (
                "Certificate CertifiedScan CertifiedStep Statement certified_steps data_digest new_key now "
                "public_key_of read_certificate recorded_steps salted_digest state_digest"
            ),
            "erasable.proof.checking": (
                "certificate_fault chain_fault documents_fault held_fault newest_certificate "
                "newest_documents_fault records_about signing_public_key version_fault"
            ),
            "erasable.proof.issuing": "Outcome Receipt certificate_page issue_certificates read_receipt",
            "erasable.proof.log": "Head add_record first_fault head_of records_of says_more_than_known",
            "erasable.proof.search_file": "NOTHING_SOUGHT Erased Search Sought read_search",
        },
    )

__all__ = [
    "NOTHING_SOUGHT",
    "Certificate",
    "CertifiedScan",
    "CertifiedStep",
    "Erased",
    "Head",
    "Outcome",
    "Receipt",
    "Search",
    "Sought",
    "Statement",
    "add_record",
    "certificate_fault",
    "certificate_page",
    "certified_steps",
    "chain_fault",
    "coarse",
    "data_digest",
    "documents_fault",
    "first_fault",
    "head_of",
    "held_fault",
    "issue_certificates",
    "new_key",
    "newest_certificate",
    "newest_documents_fault",
    "now",
    "public_key_of",
    "read_certificate",
    "read_receipt",
    "read_search",
    "recorded_steps",
    "records_about",
    "records_of",
    "salted_digest",
    "says_more_than_known",
    "signing_public_key",
    "state_digest",
    "version_fault",
]
