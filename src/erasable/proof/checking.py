"""Checking documents: signatures, the log, and whether certificates, log and workspace agree."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from erasable import fingerprint
from erasable.chain.checkpoints import CheckpointStore
from erasable.chain.dataset import State
from erasable.errors import NewerDocument, Refused, said
from erasable.proof.certificate import (
    Certificate,
    certified_steps,
    data_digest,
    public_key_of,
    read_certificate,
    recorded_steps,
    state_digest,
    step_name,
)
from erasable.proof.issuing import named_catalogue, numeric_part
from erasable.proof.log import NO_RECORD, Head, Record, first_fault, head_before, newer_record, records_of
from erasable.workspace.manifest import Documents, Stamp


def documents_fault(documents: Documents, issued: Mapping[str, bytes]) -> str | None:
    """Return the first fault in the log or a certificate of a workspace, if there is one."""
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
    return next(_faults(documents, certificates, issued), None)


def newest_documents_fault(documents: Documents, issued: Mapping[str, bytes], sealed: bool) -> str | None:
    """Return the first fault in the signing key, the newest certificate or the unsealed records, if there is one.

    An erasure builds on these only, so the cost of this check does not grow with the number of past erasures.
    """
    try:
        newest = newest_certificate(issued)
    except NewerDocument as newer:
        raise NewerDocument("the newest certificate: ", newer.said) from None
    except Refused as refused:
        return said("the newest certificate: ", refused.said)
    return next(_newest_faults(documents, issued, newest, sealed), None)


def _newest_faults(
    documents: Documents, issued: Mapping[str, bytes], newest: Certificate | None, sealed: bool
) -> Iterator[str]:
    log = documents.log
    pinned = () if newest is None else (Head(newest.audit.number, newest.audit.hash),)
    yield from _chain_faults(log, pinned, head_before(log) if sealed else NO_RECORD)
    named = {one: f"{one}.json" for one in _recorded(log, "certificates")}
    held = {one: fingerprint.of_bytes(issued[name]) for one, name in named.items() if name in issued}
    yield from _named_faults(log, issued, held)
    key = newest.public_key if newest and sealed else signing_public_key(documents)
    if newest and newest.public_key != key:
        yield "the newest certificate was signed with another key"
    yield from _key_faults(documents, key)


def _chain_faults(log: bytes, pinned: tuple[Head, ...], before: Head = NO_RECORD) -> Iterator[str]:
    fault = first_fault(log, pinned, before)
    if fault and fault == newer_record(log, before):
        raise NewerDocument(f"the log: {fault}")
    if fault:
        yield f"the log: {fault}"
    if not log:
        yield "the log has no record"


def signing_public_key(documents: Documents) -> str:
    """Return the public key as named in the first record of the log, so that the private key need not be read."""
    first = next(iter(records_of(documents.records().split(b"\n", 1)[0])), {})
    named: str = first.get("public_key", "")
    return named or (public_key_of(documents.key) if documents.key else "")


def newest_certificate(issued: Mapping[str, bytes]) -> Certificate | None:
    """Return the newest certificate, if there is one."""
    names = [name for name in issued if name.endswith(".json")]
    return read_certificate(issued[names[-1]]) if names else None


def version_fault(documents: Documents, stamp: Stamp, state: State) -> str | None:
    """Return a fault if the last record is about another version: then log or workspace was restored from a copy.

    Verifications don't count: one may begin before the current version is made, and end after.
    """
    made = [record for record in records_of(documents.log) if record["what"] != "verify"]
    last = made[-1] if made else {"version": stamp.version}
    if last.get("version") != stamp.version:
        recorded = last.get("version", "none")
        return (
            f"the workspace is at version {stamp.version}, its last record at {recorded}: one was restored from a copy"
        )
    if last.get("state", state_digest(stamp.salt, state)) != state_digest(stamp.salt, state):
        return f"the checkpoints of version {stamp.version} are not those that were recorded"
    if last.get("data", data_digest(stamp.salt, state)) != data_digest(stamp.salt, state):
        return f"the data of version {stamp.version} are not those that were recorded"
    return None


def certificate_fault(
    certificate: Certificate, documents: Documents, issued: Mapping[str, bytes], stamp: Stamp
) -> str | None:
    """Return why a certificate does not belong to this workspace, if it does not."""
    if issued.get(f"{certificate.request_id}.json") == certificate.content:
        return None
    if certificate.public_key != signing_public_key(documents):
        return "the certificate was signed with another key: it is of another workspace"
    if certificate.version > stamp.version:
        return (
            f"the workspace is at version {stamp.version} and the certificate is of version {certificate.version}: "
            "an older copy of the workspace was restored; erase again, or take the newest copy"
        )
    if f"{certificate.request_id}.json" in issued:
        return "the workspace has another certificate for the same request: one of the two was changed and signed again"
    return "the workspace does not have this certificate: it was removed there"


def held_fault(certificate: Certificate, state: State, stamp: Stamp, environment: Mapping[str, str]) -> str | None:
    """Return which of data, settings and environment differs from the certificate of the current version, if any.

    Only settings that the certificate names are compared: a later version may have more.
    """
    if certificate.version != stamp.version:
        return None  # the salt of its digests is gone with its version, so they can't be compared
    dataset, salt = state.dataset, stamp.salt
    settings = dataset.config.flat()
    named = {
        "data": (certificate.data.after, data_digest(salt, state)),
        "settings": _in_both(certificate.settings, settings),
        "model's revision": (certificate.revision or dataset.config.revision, dataset.config.revision),
        "catalogue": (certificate.catalogue, named_catalogue(dataset, salt)),
        "rating scale": (certificate.rating_scale, (dataset.scale.low, dataset.scale.high)),
        "numeric environment": _in_both(numeric_part(certificate.environment), environment),
    }
    changed = next((name for name, (certified, found) in named.items() if certified != found), None)
    return f"the {changed} held is not what the certificate names" if changed else None


def records_about(request_ids: Collection[str], documents: Documents) -> dict[str, Record]:
    """Return the log records of some erasures; recent ones are found without reading the whole log."""
    found = _about(request_ids, documents.log)
    return found if len(found) == len(request_ids) else _about(request_ids, documents.records())


def _about(request_ids: Collection[str], log: bytes) -> dict[str, Record]:
    named = {one: record for record in records_of(log) for one in record.get("certificates", {})}
    return {one: named[one] for one in request_ids if one in named}


def chain_fault(
    certificate: Certificate, record: Mapping[str, Any] | None, state: State, checkpoints: CheckpointStore, stamp: Stamp
) -> str | None:
    """Return the first step that differs from the certificate of the current version or its record, if any."""
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
    return f"{step_name(changed, state.dataset.stages)} is not the one that {whose}"


def _in_both(certified: Mapping[str, Any], held: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    names = certified.keys() & held.keys()
    return {name: certified[name] for name in names}, {name: held[name] for name in names}


def _faults(documents: Documents, certificates: list[Certificate], issued: Mapping[str, bytes]) -> Iterator[str]:
    log = documents.records()
    yield from _chain_faults(log, tuple(Head(one.audit.number, one.audit.hash) for one in certificates))
    yield from _named_faults(log, issued, {one.request_id: one.digest() for one in certificates})
    key = signing_public_key(documents)
    foreign = next((one for one in certificates if one.public_key != key), None)
    if foreign:
        yield f"certificates/{foreign.request_id}.json was signed with another key"
    yield from _key_faults(documents, key)


def _named_faults(log: bytes, issued: Mapping[str, bytes], held: Mapping[str, str]) -> Iterator[str]:
    """Yield certificates and pages that are missing, or differ from the digests in the log."""
    recorded, pages = _recorded(log, "certificates"), _recorded(log, "pages")
    for request_id in sorted({*recorded, *held}):
        if request_id not in held:
            yield f"certificates/{request_id}.json is missing: the log names it"
        elif recorded.get(request_id) != held[request_id]:
            yield f"certificates/{request_id}.json is not the one that the log names"
        page = issued.get(f"{request_id}.html", b"")
        if request_id in pages and pages[request_id] != fingerprint.of_bytes(page):
            yield f"certificates/{request_id}.html is not the one that the log names"


def _key_faults(documents: Documents, named: str) -> Iterator[str]:
    if not documents.key and not documents.key_hidden:
        yield "the signing key is missing"
    if documents.key and public_key_of(documents.key) != named:
        yield "the signing key is not the one that the log and the certificates name"


def _recorded(log: bytes, what: str) -> dict[str, str]:
    return {name: digest for record in records_of(log) for name, digest in (record.get(what) or {}).items()}
