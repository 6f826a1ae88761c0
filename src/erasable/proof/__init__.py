"""Proof: certificates and receipts, the audit chain, the search for residues, the do-not-learn list."""

from erasable.proof import coarse
from erasable.proof.audit_chain import Head, add_record, first_fault, head_of, records_of, says_more_than_known
from erasable.proof.certificate import Certificate, read_certificate
from erasable.proof.checking import (
    certificate_fault,
    chain_fault,
    held_fault,
    newest_certificate,
    newest_papers_fault,
    papers_fault,
    records_about,
    signing_public_key,
    version_fault,
)
from erasable.proof.clock import now
from erasable.proof.issuing import Outcome, issue_certificates
from erasable.proof.page import certificate_page
from erasable.proof.pending import NOTHING_PENDING, Accepted, Erased, Pending, Trace, read_pending
from erasable.proof.receipt import Receipt, new_receipt_code, read_receipt, receipt_code_digest, salt_of_code
from erasable.proof.salting import data_digest, salted_digest, state_digest
from erasable.proof.signing import new_key, public_key_of
from erasable.proof.statement import CertifiedScan, Statement
from erasable.proof.steps import CertifiedStep, certified_steps, recorded_steps

__all__ = [
    "NOTHING_PENDING",
    "Accepted",
    "Certificate",
    "CertifiedScan",
    "CertifiedStep",
    "Erased",
    "Head",
    "Outcome",
    "Pending",
    "Receipt",
    "Statement",
    "Trace",
    "add_record",
    "certificate_fault",
    "certificate_page",
    "certified_steps",
    "chain_fault",
    "coarse",
    "data_digest",
    "first_fault",
    "head_of",
    "held_fault",
    "issue_certificates",
    "new_key",
    "new_receipt_code",
    "newest_certificate",
    "newest_papers_fault",
    "now",
    "papers_fault",
    "public_key_of",
    "read_certificate",
    "read_pending",
    "read_receipt",
    "receipt_code_digest",
    "recorded_steps",
    "records_about",
    "records_of",
    "salt_of_code",
    "salted_digest",
    "says_more_than_known",
    "signing_public_key",
    "state_digest",
    "version_fault",
]
