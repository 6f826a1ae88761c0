"""Whether papers are what they claim to be: signatures, the audit chain, and how the two belong together."""

from collections.abc import Iterator, Mapping

from erasable import fingerprint
from erasable.errors import Refused
from erasable.proof.audit_chain import Head, first_fault, records_of
from erasable.proof.certificate import Certificate, read_certificate
from erasable.proof.issuing import certified_catalogue, certified_chain
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
            if name != f"{certificates[-1].request_id}.json":
                return f"certificates/{name} is the certificate of another request: it was moved there"
    return next(_faults(papers, certificates, issued), None)


def signing_public_key(papers: Papers) -> str:
    """Return the public half of the signing key as the first record names it, for who may not read the key itself."""
    first = next(iter(records_of(papers.records().split(b"\n", 1)[0])), {})
    named: str = first.get("public_key", "")
    return named or (public_key_of(papers.key) if papers.key else "")


def newest_certificate(issued: Mapping[str, bytes]) -> Certificate | None:
    """Return the certificate that was issued last, if any was."""
    names = [name for name in issued if name.endswith(".json")]
    return read_certificate(issued[names[-1]]) if names else None


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
    if last.get("data", data_digest(stamp.salt, state.knowledge)) != data_digest(stamp.salt, state.knowledge):
        return f"the data of version {stamp.version} are not those that were recorded"
    return None


def certificate_fault(
    certificate: Certificate, papers: Papers, issued: Mapping[str, bytes], stamp: Stamp
) -> str | None:
    """Say why a certificate is not one of this workspace, if it is not."""
    if certificate.encoded() in issued.values():
        return None
    if certificate.public_key != signing_public_key(papers):
        return "the certificate was signed with another key: it is of another workspace"
    if certificate.version > stamp.version:
        return (
            f"the workspace is at version {stamp.version} and the certificate is of version {certificate.version}: "
            "an older copy of the workspace was put back; erase again, or take the newest copy"
        )
    return "the workspace does not have this certificate: it was removed there"


def held_fault(certificate: Certificate, state: State, stamp: Stamp, environment: Mapping[str, str]) -> str | None:
    """Say what of data, settings and environment is not what the certificate of the current version names."""
    if certificate.version != stamp.version:
        return None  # its digests were salted by a version that is gone, and so can't be compared any more
    knowledge, salt = state.knowledge, stamp.salt
    held = {
        "data": (certificate.data.after, data_digest(salt, knowledge)),
        "settings": (certificate.settings, knowledge.config.model_dump(mode="json", exclude={"seed"})),
        "seed": (certificate.seed, str(knowledge.config.seed)),
        "catalogue": (certificate.catalogue, certified_catalogue(knowledge, salt)),
        "rating scale": (certificate.rating_scale, (knowledge.scale.low, knowledge.scale.high)),
        "numeric environment": (certificate.environment, dict(environment)),
    }
    changed = next((name for name, (certified, found) in held.items() if certified != found), None)
    return f"the {changed} held is not what the certificate names" if changed else None


def chain_fault(certificate: Certificate, state: State, checkpoints: CheckpointStore, stamp: Stamp) -> str | None:
    """Say which stage is not the one that the certificate of the current version names."""
    if certificate.version != stamp.version:
        return None
    if len(certificate.chain) != len(state.chain):
        return "the chain has another length than certified"
    rerun = tuple(stage.position for stage in certificate.chain if not stage.kept)
    held = certified_chain(state, checkpoints, stamp.salt, rerun)
    changed = [one.position for one, other in zip(certificate.chain, held, strict=True) if one != other]
    return f"{certificate.step_name(changed[0])} is not the one that the certificate names" if changed else None


def _faults(papers: Papers, certificates: list[Certificate], issued: Mapping[str, bytes]) -> Iterator[str]:
    log = papers.records()
    fault = first_fault(log, tuple(Head(one.audit.number, one.audit.hash) for one in certificates))
    if fault:
        yield f"the audit chain: {fault}"
        return
    recorded, pages = _recorded(log, "certificates"), _recorded(log, "pages")
    held = {certificate.request_id: certificate.digest() for certificate in certificates}
    for request_id in sorted({*recorded, *held}):
        if request_id not in held:
            yield f"certificates/{request_id}.json is missing: the audit chain names it"
        elif recorded.get(request_id) != held[request_id]:
            yield f"certificates/{request_id}.json is not the one that the audit chain names"
        page = issued.get(f"{request_id}.html", b"")
        if request_id in pages and pages[request_id] != fingerprint.of_bytes(page):
            yield f"certificates/{request_id}.html is not the one that the audit chain names"
    key = signing_public_key(papers)
    if papers.key and key != public_key_of(papers.key):
        yield "the signing key is not the one that the first record names"
    foreign = next((one for one in certificates if one.public_key != key), None)
    if foreign:
        yield f"certificates/{foreign.request_id}.json was signed with another key"


def _recorded(audit: bytes, what: str) -> dict[str, str]:
    return {name: digest for record in records_of(audit) for name, digest in record.get(what, {}).items()}
