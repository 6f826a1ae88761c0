"""Certificates: the record of one erasure, free of personal data; signing and scanning are not done here."""

import json
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from erasable.training import Knowledge, State, numeric_environment
from erasable.unlearning import Plan, Request

PROVES = (
    "By construction, the parameters of this version are what training from scratch gives on the data that is left, in "
    "groups as the policy says, with the settings and seed named here. `erasable verify` repeats that training when "
    "asked and compares every byte; this certificate does not hold the result of such a replay."
)
DOES_NOT_PROVE = (
    "It says nothing about copies outside this workspace: the input file, exports, backups, snapshots, and blocks that "
    "a disk has freed but not overwritten. Under the policy fixed, the groups, their order and a filter, if there was "
    "one, were decided while the person's data was there; under independent, only the filter was; under regroup, they "
    "were all decided anew without it. Under any policy the catalogue and the rating scale, where they were not "
    "declared, are those of the first learning."
)


def issue_certificates(
    requests: Sequence[Request], state: State, plan: Plan, salt_and_seconds: tuple[str, float]
) -> dict[str, bytes]:
    """Return a certificate for each person by a random request id."""
    salt, seconds = salt_and_seconds
    people: dict[str, list[Request]] = {}
    for request in requests:
        people.setdefault(request.user, []).append(request)
    common = _common_facts(state, plan, salt) | {"seconds": round(seconds, 3)}
    certificates = {}
    for asked in people.values():
        identifier = secrets.token_hex(16)
        everything = any(request.everything for request in asked)
        facts = {
            "request_id": identifier,
            "scope": "all data of one person" if everything else "some interactions of one person",
            **common,
        }
        certificates[identifier] = json.dumps(facts, indent=2, ensure_ascii=False).encode()
    return certificates


def salted_digest(salt: str, fingerprint: str) -> str:
    """Return a digest that can't be tested against a guess once the salt is destroyed with its version."""
    return blake2b(fingerprint.encode(), key=bytes.fromhex(salt), digest_size=32).hexdigest()


def _common_facts(state: State, plan: Plan, salt: str) -> dict[str, Any]:
    knowledge = state.knowledge
    config = knowledge.config
    return {
        "kind": "certificate of erasure",
        "format": 1,
        "issued_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": numeric_environment(),
        "policy": config.policy,
        "settings": config.model_dump(mode="json"),
        "catalogue": {
            "declared": knowledge.catalogue.declared,
            "items": len(knowledge.catalogue.items),
            "digest": salted_digest(salt, knowledge.catalogue.digest()),
        },
        "filter": _filter(knowledge),
        "rating_scale": [knowledge.scale.low, knowledge.scale.high],
        "stages_rerun": plan.stages_rerun,
        "stages_total": plan.stages_total,
        "cost_ratio": plan.cost_ratio,
        "chain": [
            {
                "position": position,
                "kept": position not in plan.rerun,
                "digest": salted_digest(salt, link.fingerprint),
            }
            for position, link in enumerate(state.chain)
        ],
        "proves": PROVES,
        "does_not_prove": DOES_NOT_PROVE,
    }


def _filter(knowledge: Knowledge) -> str:
    if knowledge.kept_items is None:
        return "none"
    return "applied anew" if knowledge.config.policy == "regroup" else "frozen"
