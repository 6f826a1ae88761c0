"""Whether papers are what they claim to be: signatures, the audit chain, and how the two belong together."""

from collections.abc import Iterator, Mapping

from erasable.errors import Refused
from erasable.proof.audit_chain import Head, first_fault, records_of
from erasable.proof.certificate import Certificate, read_certificate
from erasable.proof.issuing import certified_chain
from erasable.proof.salting import data_digest, state_digest
from erasable.proof.signing import public_key_of
from erasable.store import Papers, Stamp
from erasable.training import CheckpointStore, State


def papers_fault(papers: Papers, issued: Mapping[str, bytes]) -> str | None:
    """Say what is wrong with the audit chain or with a certificate of a workspace, if anything is."""
    certificates: list[Certificate] = []
    for name, content in issued.items():
        if name.endswith(".json"):
            try:
                certificates.append(read_certificate(content))
            except Refused as refused:
                return f"certificates/{name}: {refused}"
    faults = _faults(papers, certificates)
    return next(faults, None)


def version_fault(papers: Papers, stamp: Stamp, state: State) -> str | None:
    """Say whether the last record is about another version than the current one: then one of the two was put back.

    A verification does not count: it may have begun before the current version was made, and ended after.
    """
    made = [record for record in records_of(papers.audit) if record["what"] != "verify"]
    last = made[-1] if made else {"version": stamp.version}
    if last["version"] != stamp.version:
        return f"the workspace is at version {stamp.version}, its last record at {last['version']}: one was put back"
    if last.get("state", state_digest(stamp.salt, state)) != state_digest(stamp.salt, state):
        return f"the checkpoints of version {stamp.version} are not those that were recorded"
    return None


def certificate_fault(
    certificate: Certificate, papers: Papers, issued: Mapping[str, bytes], stamp: Stamp
) -> str | None:
    """Say why a certificate is not one of this workspace, if it is not."""
    if certificate.encoded() in issued.values():
        return None
    if not papers.key or certificate.public_key != public_key_of(papers.key):
        return "the certificate was signed with another key: it is of another workspace"
    if certificate.version > stamp.version:
        return (
            f"the workspace is at version {stamp.version} and the certificate is of version {certificate.version}: "
            "an older copy of the workspace was put back; erase again, or take the newest copy"
        )
    return "the workspace does not have this certificate: it was removed there"


def outcome_fault(certificate: Certificate, state: State, checkpoints: CheckpointStore, stamp: Stamp) -> str | None:
    """Say where the data or the chain differ from what the certificate of the current version says, if they do."""
    if certificate.version != stamp.version:
        return None  # its digests were salted by a version that is gone, and so can't be compared any more
    if certificate.data.after != data_digest(stamp.salt, state.knowledge):
        return "the data held are not those that the certificate names"
    rerun = tuple(stage.position for stage in certificate.chain if not stage.kept)
    for certified, held in zip(certificate.chain, certified_chain(state, checkpoints, stamp.salt, rerun), strict=False):
        if certified != held:
            return f"stage {certified.position + 1} is not the one that the certificate names"
    return None if len(certificate.chain) == len(state.chain) else "the chain has another length than certified"


def _faults(papers: Papers, certificates: list[Certificate]) -> Iterator[str]:
    fault = first_fault(papers.audit, tuple(Head(one.audit.number, one.audit.hash) for one in certificates))
    if fault:
        yield f"the audit chain: {fault}"
        return
    recorded = _recorded_certificates(papers.audit)
    held = {certificate.request_id: certificate.digest() for certificate in certificates}
    for request_id in sorted({*recorded, *held}):
        if request_id not in held:
            yield f"certificates/{request_id}.json is missing: the audit chain names it"
        elif recorded.get(request_id) != held[request_id]:
            yield f"certificates/{request_id}.json is not the one that the audit chain names"
    key = public_key_of(papers.key) if papers.key else ""
    if key not in {record.get("public_key", key) for record in records_of(papers.audit)[:1]}:
        yield "the signing key is not the one that the first record names"
    foreign = next((one for one in certificates if one.public_key != key), None)
    if foreign:
        yield f"certificates/{foreign.request_id}.json was signed with another key"


def _recorded_certificates(audit: bytes) -> dict[str, str]:
    records = records_of(audit)
    return {name: digest for record in records for name, digest in record.get("certificates", {}).items()}
