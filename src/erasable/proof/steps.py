"""The stages of a chain as salted digests; in what 0.1 wrote, also the rows of each group where they were solved."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ConfigDict

from erasable import fingerprint
from erasable.proof.paper import Paper
from erasable.proof.salting import salted_digest
from erasable.training import ORIGIN, CheckpointStore, Link, State


class CertifiedStep(Paper):
    """One stage of the chain; in what 0.1 wrote, also the rows of a group."""

    model_config = ConfigDict(extra="ignore")

    kept: bool
    """Whether its checkpoint is the one from before the erasure; if not, it was made again."""
    parent: str
    """The name of the checkpoint that it began from."""
    digest: str
    """The name of its checkpoint, which covers everything that made it."""
    result: str
    """The arrays of its checkpoint."""


def certified_steps(
    state: State, checkpoints: CheckpointStore, salt: str, rerun: Sequence[int]
) -> tuple[CertifiedStep, ...]:
    """Return the chain: names, parents and results, salted; `rerun` are the places that were made again."""
    return tuple(_step(link, checkpoints, salt, place not in rerun) for place, link in enumerate(state.named))


def recorded_steps(record: Mapping[str, Any] | None) -> tuple[CertifiedStep, ...] | None:
    """Return the steps that a record of the log names; None if it names none."""
    if record is None or "steps" not in record:
        return None
    return tuple(CertifiedStep.model_validate(step) for step in record["steps"])


def step_name(place: int, stages: int) -> str:
    """Say what stands at a place of a chain with so many stages.

    >>> step_name(0, 2), step_name(2, 2)
    ('stage 1', 'rows of group 1')
    """
    return f"stage {place + 1}" if place < stages else f"rows of group {place - stages + 1}"


def _step(link: Link, checkpoints: CheckpointStore, salt: str, kept: bool) -> CertifiedStep:
    return CertifiedStep(
        kept=kept,
        parent=ORIGIN if link.parent == ORIGIN else salted_digest(salt, link.parent),
        digest=salted_digest(salt, link.fingerprint),
        result=salted_digest(salt, fingerprint.of_arrays(checkpoints.get(link.fingerprint).arrays())),
    )
