"""Whether papers are what they claim to be: signatures, the audit chain, and how the two belong together."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from erasable import fingerprint
from erasable.errors import NewerDocument, Refused, said
from erasable.proof.audit_chain import NO_RECORD, Head, Record, first_fault, head_before, newer_record, records_of
from erasable.proof.certificate import Certificate, read_certificate
from erasable.proof.issuing import named_catalogue, numeric_part
from erasable.proof.salting import data_digest, state_digest
from erasable.proof.signing import public_key_of
from erasable.proof.steps import certified_steps, recorded_steps, step_name
from erasable.store import Papers, Stamp
from erasable.training import CheckpointStore, State


def papers_fault(papers: Papers, issued: Mapping[str, bytes]) -> str | None:
    """Say what is wrong with the audit chain or with a certificate of a workspace, if anything is."""
    certificates: list[Certificate] = []
    for name, content in issued.items():
        if name.endswith(".json"):
            try:
                certificates.append(read_certificate(content))
            except NewerDocument as newer:
                raise NewerDocument(f"certificates/{name}: ", newer.said) from None
            except Refused as refused:
                return said(f"certificates/{name}: ", refused.said)
            if name != f"{certificates[-1].request_id}.json":
                return f"certificates/{name} is the certificate of another request: it was moved there"
    return next(_faults(papers, certificates, issued), None)


def newest_papers_fault(papers: Papers, issued: Mapping[str, bytes], sealed: bool) -> str | None:
    """Say what is wrong with signing key, the newest certificate and the records that are not sealed, if anything is.

    That is what an erasure goes on from; how much of it there is does not grow with the erasures ever carried out.
    """
    try:
        newest = newest_certificate(issued)
    except NewerDocument as newer:
        raise NewerDocument("the newest certificate: ", newer.said) from None
    except Refused as refused:
        return said("the newest certificate: ", refused.said)
    return next(_newest_faults(papers, issued, newest, sealed), None)


def _newest_faults(
    papers: Papers, issued: Mapping[str, bytes], newest: Certificate | None, sealed: bool
) -> Iterator[str]:
    log = papers.audit
    pinned = () if newest is None else (Head(newest.audit.number, newest.audit.hash),)
    yield from _chain_faults(log, pinned, head_before(log) if sealed else NO_RECORD)
    named = {one: f"{one}.json" for one in _recorded(log, "certificates")}
    held = {one: fingerprint.of_bytes(issued[name]) for one, name in named.items() if name in issued}
    yield from _named_faults(log, issued, held)
    key = newest.public_key if newest and sealed else signing_public_key(papers)
    if newest and newest.public_key != key:
        yield "the newest certificate was signed with another key"
    yield from _key_faults(papers, key)


def _chain_faults(log: bytes, pinned: tuple[Head, ...], before: Head = NO_RECORD) -> Iterator[str]:
    fault = first_fault(log, pinned, before)
    if fault and fault == newer_record(log, before):
        raise NewerDocument(f"the audit chain: {fault}")
    if fault:
        yield f"the audit chain: {fault}"
    if not log:
        yield "the audit chain has no record"


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
    if last.get("version") != stamp.version:
        recorded = last.get("version", "none")
        return f"the workspace is at version {stamp.version}, its last record at {recorded}: one was put back"
    if last.get("state", state_digest(stamp.salt, state)) != state_digest(stamp.salt, state):
        return f"the checkpoints of version {stamp.version} are not those that were recorded"
    if last.get("data", data_digest(stamp.salt, state.knowledge)) != data_digest(stamp.salt, state.knowledge):
        return f"the data of version {stamp.version} are not those that were recorded"
    return None


def certificate_fault(
    certificate: Certificate, papers: Papers, issued: Mapping[str, bytes], stamp: Stamp
) -> str | None:
    """Say why a certificate is not one of this workspace, if it is not."""
    if issued.get(f"{certificate.request_id}.json") == certificate.content:
        return None
    if certificate.public_key != signing_public_key(papers):
        return "the certificate was signed with another key: it is of another workspace"
    if certificate.version > stamp.version:
        return (
            f"the workspace is at version {stamp.version} and the certificate is of version {certificate.version}: "
            "an older copy of the workspace was put back; erase again, or take the newest copy"
        )
    if f"{certificate.request_id}.json" in issued:
        return "the workspace has another certificate for the same request: one of the two was changed and signed again"
    return "the workspace does not have this certificate: it was removed there"


def held_fault(certificate: Certificate, state: State, stamp: Stamp, environment: Mapping[str, str]) -> str | None:
    """Say what of data, settings and environment is not what the certificate of the current version names.

    Only what a certificate names is compared: a version may have settings that an earlier one had not.
    """
    if certificate.version != stamp.version:
        return None  # its digests were salted by a version that is gone, and so can't be compared any more
    knowledge, salt = state.knowledge, stamp.salt
    settings = knowledge.config.flat()
    named = {
        "data": (certificate.data.after, data_digest(salt, knowledge)),
        "settings": _in_both(certificate.settings, settings),
        "model's revision": (certificate.revision or knowledge.config.revision, knowledge.config.revision),
        "catalogue": (certificate.catalogue, named_catalogue(knowledge, salt)),
        "rating scale": (certificate.rating_scale, (knowledge.scale.low, knowledge.scale.high)),
        "numeric environment": _in_both(numeric_part(certificate.environment), environment),
    }
    changed = next((name for name, (certified, found) in named.items() if certified != found), None)
    return f"the {changed} held is not what the certificate names" if changed else None


def records_about(request_ids: Collection[str], papers: Papers) -> dict[str, Record]:
    """Return the records of the log about some erasures; the newest are found without reading all of it."""
    found = _about(request_ids, papers.audit)
    return found if len(found) == len(request_ids) else _about(request_ids, papers.records())


def _about(request_ids: Collection[str], log: bytes) -> dict[str, Record]:
    named = {one: record for record in records_of(log) for one in record.get("certificates", {})}
    return {one: named[one] for one in request_ids if one in named}


def chain_fault(
    certificate: Certificate, record: Mapping[str, Any] | None, state: State, checkpoints: CheckpointStore, stamp: Stamp
) -> str | None:
    """Say which step is not the one that the certificate of the current version, or its record in the log, names."""
    named = certificate.chain or recorded_steps(record)
    if certificate.version != stamp.version or named is None:
        return None
    if len(named) != len(state.named):
        return "the chain has another length than certified"
    again = [place for place, step in enumerate(named) if not step.kept]
    held = certified_steps(state, checkpoints, stamp.salt, again)
    changed = next((place for place, step in enumerate(named) if step != held[place]), None)
    if changed is None:
        return None
    whose = "its record names" if certificate.chain is None else "the certificate names"
    return f"{step_name(changed, state.knowledge.stages)} is not the one that {whose}"


def _in_both(certified: Mapping[str, Any], held: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    names = certified.keys() & held.keys()
    return {name: certified[name] for name in names}, {name: held[name] for name in names}


def _faults(papers: Papers, certificates: list[Certificate], issued: Mapping[str, bytes]) -> Iterator[str]:
    log = papers.records()
    yield from _chain_faults(log, tuple(Head(one.audit.number, one.audit.hash) for one in certificates))
    yield from _named_faults(log, issued, {one.request_id: one.digest() for one in certificates})
    key = signing_public_key(papers)
    foreign = next((one for one in certificates if one.public_key != key), None)
    if foreign:
        yield f"certificates/{foreign.request_id}.json was signed with another key"
    yield from _key_faults(papers, key)


def _named_faults(log: bytes, issued: Mapping[str, bytes], held: Mapping[str, str]) -> Iterator[str]:
    """Say which certificate or page is not the one that a record names, by the digests of those that are held."""
    recorded, pages = _recorded(log, "certificates"), _recorded(log, "pages")
    for request_id in sorted({*recorded, *held}):
        if request_id not in held:
            yield f"certificates/{request_id}.json is missing: the audit chain names it"
        elif recorded.get(request_id) != held[request_id]:
            yield f"certificates/{request_id}.json is not the one that the audit chain names"
        page = issued.get(f"{request_id}.html", b"")
        if request_id in pages and pages[request_id] != fingerprint.of_bytes(page):
            yield f"certificates/{request_id}.html is not the one that the audit chain names"


def _key_faults(papers: Papers, named: str) -> Iterator[str]:
    if not papers.key and not papers.key_withheld:
        yield "the signing key is missing"
    if papers.key and public_key_of(papers.key) != named:
        yield "the signing key is not the one that the audit chain and the certificates name"


def _recorded(audit: bytes, what: str) -> dict[str, str]:
    return {name: digest for record in records_of(audit) for name, digest in (record.get(what) or {}).items()}
