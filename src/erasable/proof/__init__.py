"""Proof: certificates and receipts, the audit chain, the search for residues, the suppression list."""

from erasable.proof.audit_chain import Head, add_record, first_fault, head_of, records_of
from erasable.proof.certificate import Certificate, CertifiedScan, read_certificate
from erasable.proof.checking import certificate_fault, outcome_fault, papers_fault, version_fault
from erasable.proof.clock import now
from erasable.proof.issuing import Outcome, certified_chain, issue_certificates, rounded
from erasable.proof.page import certificate_page
from erasable.proof.pending import NOTHING_PENDING, Accepted, Erased, Pending, read_pending
from erasable.proof.receipt import Receipt, read_receipt
from erasable.proof.salting import data_digest, salted_digest, state_digest
from erasable.proof.signing import new_key, public_key_of

__all__ = [
    "NOTHING_PENDING",
    "Accepted",
    "Certificate",
    "CertifiedScan",
    "Erased",
    "Head",
    "Outcome",
    "Pending",
    "Receipt",
    "add_record",
    "certificate_fault",
    "certificate_page",
    "certified_chain",
    "data_digest",
    "first_fault",
    "head_of",
    "issue_certificates",
    "new_key",
    "now",
    "outcome_fault",
    "papers_fault",
    "public_key_of",
    "read_certificate",
    "read_pending",
    "read_receipt",
    "records_of",
    "rounded",
    "salted_digest",
    "state_digest",
    "version_fault",
]
