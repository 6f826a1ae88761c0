"""From an erasure that was carried out and scanned to the certificates of the people who asked for it."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from erasable.evaluation import Utility
from erasable.proof import coarse, wording
from erasable.proof.audit_chain import Head
from erasable.proof.certificate import Certificate, NamedCatalogue, read_certificate
from erasable.proof.clock import now
from erasable.proof.salting import commitment, data_digest, reference_commitment, salted_digest
from erasable.proof.search_file import Erased, Sought
from erasable.proof.statement import (
    PART,
    WHOLE,
    CertifiedCatalogue,
    CertifiedData,
    CertifiedDays,
    CertifiedRecord,
    CertifiedScan,
    CertifiedUtility,
    Scope,
    Statement,
)
from erasable.store import Stamp
from erasable.training import Knowledge, State
from erasable.training.environment import OF_THE_CODE

_SOFTWARE = ("erasable", "pyarrow", "safetensors", "cryptography", "rfc8785")


@dataclass(frozen=True)
class Outcome:
    """What is current after an erasure, and what is known about it."""

    state: State
    environment: dict[str, str]
    stamp: Stamp
    audit: Head
    scan: CertifiedScan | None
    scanned: str
    utility: Utility | None
    issuer: str | None = None
    files: int | None = None
    """How many files were searched, for the log: their number says nothing about a person, and grows."""


def issue_certificates(erased: Erased, outcome: Outcome, key: bytes) -> list[Certificate]:
    """Return a signed certificate for each person of an erasure."""
    common = _common_facts(erased, outcome)
    return [
        read_certificate(_statement(sought, erased, outcome.scanned, common).signed(key)) for sought in erased.people
    ]


def named_catalogue(knowledge: Knowledge, salt: str) -> NamedCatalogue:
    """Return the catalogue as certificates of all formats name it."""
    declared = knowledge.catalogue is not None and knowledge.catalogue.declared
    return NamedCatalogue(declared=declared, digest=salted_digest(salt, knowledge.items.digest()))


def numeric_part(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment bytes depend on."""
    return {name: value for name, value in environment.items() if name not in OF_THE_CODE}


def _statement(sought: Sought, erased: Erased, scanned: str, common: dict[str, Any]) -> Statement:
    scope: Scope = WHOLE if sought.items is None else PART
    days = CertifiedDays(
        asked=_day(sought.received),
        erased=_day(erased.at),
        searched=_day(scanned) if common["scan"] else None,
        issued=_day(now()),
    )
    return Statement(
        request_id=sought.request_id,
        scope=scope,
        subject=commitment(sought.salt, sought.user, sought.items),
        reference=reference_commitment(sought.salt, sought.reference),
        days=days,
        do_not_learn=wording.about_list(scope, common["scan"] is not None) if erased.suppression else None,
        **common,
    )


def _common_facts(erased: Erased, outcome: Outcome) -> dict[str, Any]:
    knowledge, salt = outcome.state.knowledge, outcome.stamp.salt
    on_disk = outcome.scan is not None
    return {
        "issuer": outcome.issuer,
        "version": outcome.stamp.version,
        "duration": coarse.NOT_SAID if erased.seconds_at_most is None else coarse.duration(erased.seconds_at_most),
        "cost": coarse.NOT_SAID if erased.cost_at_most is None else coarse.share(erased.cost_at_most),
        "policy": knowledge.config.policy,
        "policy_means": wording.policy_means(knowledge),
        "settings": wording.model_settings(knowledge.config),
        "revision": knowledge.config.revision,
        "threads": erased.threads,
        "environment": numeric_part(outcome.environment),
        "software": {"python": platform.python_version()} | {name: version(name) for name in _SOFTWARE},
        "catalogue": _catalogue(knowledge, salt),
        "rating_scale": (knowledge.scale.low, knowledge.scale.high),
        "filter": wording.filter_state(knowledge),
        "data": CertifiedData(before=erased.data_before, after=data_digest(salt, knowledge)),
        "scan": outcome.scan,
        "utility": _utility(erased, outcome.utility),
        "audit": CertifiedRecord(**outcome.audit._asdict()),
        "proves": wording.proves(knowledge, on_disk),
        "does_not_prove": wording.does_not_prove(knowledge, on_disk),
    }


def _catalogue(knowledge: Knowledge, salt: str) -> CertifiedCatalogue:
    named = named_catalogue(knowledge, salt)
    items = coarse.count(len(knowledge.items))
    return CertifiedCatalogue(**named.model_dump(), items=items, origin=wording.catalogue_origin(knowledge))


def _utility(erased: Erased, after: Utility | None) -> CertifiedUtility | None:
    if after is None:
        return None
    grain = coarse.grain_for(after.users)
    return CertifiedUtility(
        protocol=after.protocol,
        users=coarse.count(after.users),
        grain=grain,
        before=None if erased.utility_before is None else _rounded(erased.utility_before, grain),
        after=_rounded(after.values, grain),
    )


def _rounded(measures: Mapping[str, float], grain: float) -> dict[str, float]:
    return {name: coarse.rounded(value, grain) for name, value in measures.items()}


def _day(moment: str) -> str:
    return datetime.fromisoformat(moment).astimezone(UTC).date().isoformat()
