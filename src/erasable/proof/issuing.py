"""From an erasure that was carried out and scanned to the certificates of the people who asked for it."""

import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from erasable import fingerprint
from erasable.evaluation import Utility
from erasable.proof.audit_chain import Head
from erasable.proof.certificate import (
    Certificate,
    CertifiedCatalogue,
    CertifiedData,
    CertifiedRecord,
    CertifiedScan,
    CertifiedStage,
    CertifiedTimes,
    CertifiedUtility,
)
from erasable.proof.clock import now
from erasable.proof.pending import Accepted, Erased, Pending
from erasable.proof.salting import commitment, data_digest, salted_digest
from erasable.store import Stamp
from erasable.training import ORIGIN, CheckpointStore, Knowledge, Link, State

_PEOPLE_HIDDEN = 10
_SOFTWARE = ("erasable", "pyarrow", "safetensors", "cryptography", "rfc8785")

PROVES = (
    "Whoever holds the signing key states that the person's data was erased as this certificate says. The parameters "
    "of this version are, by construction, what training from scratch gives on the data that is left, in groups as the "
    "policy says, with the settings and seed named here; `erasable verify --certificate` repeats that training and "
    "compares every byte, as long as this version is the current one."
)
SEARCHED = (
    " After the erasure the files of the workspace were searched for what was erased, in the ways that are listed, and "
    "nothing was found."
)
DOES_NOT_PROVE = (
    "It says nothing about copies outside this workspace: the input file, exports, backups, snapshots, and blocks that "
    "a disk has freed but not overwritten. Under the policy fixed, the groups, their order and a filter, if there was "
    "one, were decided while the person's data was there; under independent, only the filter was; under regroup, they "
    "were all decided anew without it. Under any policy the catalogue and the rating scale, where they were not "
    "declared, are those of the first learning. The signature shows that nothing was changed since, not that its "
    "holder is honest: the replay is what can be checked."
)


@dataclass(frozen=True)
class Outcome:
    """What is current after an erasure, and what is known about it."""

    state: State
    checkpoints: CheckpointStore
    environment: dict[str, str]
    stamp: Stamp
    audit: Head
    scan: CertifiedScan | None
    scanned: str
    utility: Utility | None


def issue_certificates(pending: Pending, outcome: Outcome, key: bytes) -> list[Certificate]:
    """Return a signed certificate for each person."""
    if pending.erased is None:
        raise ValueError("nothing was erased yet")
    common = _common_facts(pending.erased, outcome)
    return [_certificate(accepted, pending.erased, outcome, common).signed(key) for accepted in pending.accepted]


def certified_chain(
    state: State, checkpoints: CheckpointStore, salt: str, rerun: tuple[int, ...]
) -> list[CertifiedStage]:
    """Return the chain as a certificate has it: names, parents and results, salted."""
    return [_stage(place, link, checkpoints, salt, rerun) for place, link in enumerate(state.chain)]


def certified_catalogue(knowledge: Knowledge, salt: str) -> CertifiedCatalogue:
    """Return the catalogue as a certificate has it."""
    return CertifiedCatalogue(
        declared=knowledge.catalogue.declared,
        items=len(knowledge.catalogue.items),
        digest=salted_digest(salt, knowledge.catalogue.digest()),
    )


def rounded(utility: Utility) -> dict[str, float]:
    """Return measures as certificates have them: so coarse that ten people's scores make no difference.

    Two certificates in a row are about the same model measured on one person more and less: finer figures could be
    subtracted to give that person's own score.
    """
    step = _PEOPLE_HIDDEN / max(utility.users, _PEOPLE_HIDDEN)
    return {name: round(round(value / step) * step, 4) for name, value in utility.values.items()}


def _significant(number: float, digits: int = 2) -> float:
    return float(f"{number:.{digits}g}")


def _certificate(accepted: Accepted, erased: Erased, outcome: Outcome, common: dict[str, Any]) -> Certificate:
    return Certificate(
        request_id=accepted.request_id,
        scope="all data of one person" if accepted.items is None else "some interactions of one person",
        subject=commitment(accepted.salt, accepted.user, accepted.items),
        times=CertifiedTimes(received=accepted.received, erased=erased.at, scanned=outcome.scanned, issued=now()),
        public_key="",
        **common,
    )


def _common_facts(erased: Erased, outcome: Outcome) -> dict[str, Any]:
    knowledge, salt = outcome.state.knowledge, outcome.stamp.salt
    config = knowledge.config
    return {
        "version": outcome.stamp.version,
        "seconds": round(erased.seconds, 3),
        "policy": config.policy,
        "settings": config.model_dump(mode="json", exclude={"seed"}),
        "seed": str(config.seed),
        "threads": erased.threads,
        "environment": outcome.environment,
        "software": {"python": platform.python_version()} | {name: version(name) for name in _SOFTWARE},
        "catalogue": certified_catalogue(knowledge, salt),
        "rating_scale": (knowledge.scale.low, knowledge.scale.high),
        "filter": _filter(knowledge),
        "data": CertifiedData(before=erased.data_before, after=data_digest(salt, knowledge)),
        "stages_rerun": sum(place < knowledge.stages for place in erased.rerun),
        "stages_total": knowledge.stages,
        "cost_ratio": _significant(erased.cost_ratio),
        "chain": certified_chain(outcome.state, outcome.checkpoints, salt, erased.rerun),
        "scan": outcome.scan,
        "utility": _utility(erased, outcome.utility),
        "audit": CertifiedRecord(**outcome.audit._asdict()),
        "proves": PROVES + (SEARCHED if outcome.scan else ""),
        "does_not_prove": DOES_NOT_PROVE,
    }


def _stage(place: int, link: Link, checkpoints: CheckpointStore, salt: str, rerun: tuple[int, ...]) -> CertifiedStage:
    return CertifiedStage(
        position=place,
        kept=place not in rerun,
        parent=ORIGIN if link.parent == ORIGIN else salted_digest(salt, link.parent),
        digest=salted_digest(salt, link.fingerprint),
        result=salted_digest(salt, fingerprint.of_arrays(checkpoints.get(link.fingerprint).arrays())),
    )


def _utility(erased: Erased, after: Utility | None) -> CertifiedUtility | None:
    if after is None:
        return None
    return CertifiedUtility(
        protocol="whole-catalogue",
        users=int(_significant(after.users)),
        before=erased.utility_before,
        after=rounded(after),
    )


def _filter(knowledge: Knowledge) -> str:
    if knowledge.kept_items is None:
        return "none"
    return "applied anew" if knowledge.config.policy == "regroup" else "frozen"
