"""Proof: the certificate of an erasure."""

from erasable.proof.certificate import issue_certificates, salted_digest

__all__ = ["issue_certificates", "salted_digest"]
