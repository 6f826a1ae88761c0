"""Measuring recommendations elsewhere, bucket by bucket: the same means as here."""

from collections.abc import Mapping
from typing import Any

from erasable.chain.dataset import Dataset
from erasable.data.interactions import Interactions
from erasable.errors import Refused
from erasable.evaluation.protocols import Protocol, Utility, cases_of, no_case, utility_of, values_of_cases
from erasable.models.base import Effort
from erasable.operations.remote import CarryOut, Facts
from erasable.operations.storage import Session
from erasable.operations.work import RayCluster, on_cluster
from erasable.workspace.portable import get_rows, put_rows
from erasable.workspace.scratch import Scratch
from erasable.workspace.workspace import Workspace

Values = Mapping[str, list[float]]
"""The metrics of each known user."""


def measured_elsewhere(session: Session, test: Interactions, protocol: Protocol, cluster: RayCluster) -> Utility:
    """Measure recommendations by one protocol; each task has the test rows of one bucket."""
    dataset, found = session.state().dataset, dict[str, list[float]]()
    if protocol == "held-out-only":
        dataset.scale.check(test.rating)
    parts = _by_bucket(dataset, test)
    with on_cluster(cluster, session) as executor:
        remote = RemoteMeasuring(session.stamp.version, protocol)
        for _, values in executor.run(remote, parts, Effort()):
            found |= values
    if not found:
        raise no_case()
    return utility_of(protocol, [found[user] for user in test.users if user in found])


def _by_bucket(dataset: Dataset, test: Interactions) -> list[Interactions]:
    return [test.at(places) for places in dataset.buckets.by_bucket(test.users).values()]


class RemoteMeasuring:
    """Measuring on the users of one bucket."""

    @property
    def carry_out(self) -> CarryOut:
        """Measures on some users."""
        return measure_part

    def __init__(self, version: int, protocol: Protocol) -> None:
        self._facts: dict[str, Any] = {"version": version, "protocol": protocol}

    def order(self, task: Interactions, scratch: Scratch) -> Facts:
        """Write down the test rows."""
        return {**self._facts, "rows": put_rows(scratch, task)}

    def outcome(self, task: Interactions, facts: Facts, scratch: Scratch) -> Values:
        """Read the metrics of each user."""
        values: Values = facts["values"]
        return values


def measure_part(scratch: Scratch, facts: Facts, effort: Effort) -> Facts:
    """Measure on some users, in a worker."""
    workspace = Workspace.of_a_task(scratch.root, facts["version"])
    state, rows = workspace.state(), get_rows(scratch, facts["rows"])
    try:
        cases = cases_of(state.dataset, rows)
    except Refused:  # none of these users is known; others may be
        return {"values": {}}
    protocols = (facts["protocol"],)
    found = values_of_cases(state, workspace.checkpoints, rows, cases, effort.threads, protocols)
    return {"values": {case.user: values for case, (values,) in zip(cases, found, strict=True)}}
