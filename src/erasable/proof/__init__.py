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
from erasable.proof.receipt import Receipt, read_receipt
from erasable.proof.salting import data_digest, salted_digest, state_digest
from erasable.proof.search_file import NOTHING_SOUGHT, Erased, Search, Sought, read_search
from erasable.proof.signing import new_key, public_key_of
from erasable.proof.statement import CertifiedScan, Statement
from erasable.proof.steps import CertifiedStep, certified_steps, recorded_steps

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
    "first_fault",
    "head_of",
    "held_fault",
    "issue_certificates",
    "new_key",
    "newest_certificate",
    "newest_papers_fault",
    "now",
    "papers_fault",
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
