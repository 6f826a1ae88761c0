"""Ranking for the people of a test set elsewhere, bucket by bucket: the same rankings as here."""

from collections.abc import Mapping
from typing import Any

from erasable.chain.dataset import Dataset
from erasable.data.interactions import Interactions
from erasable.evaluation.protocols import Protocol, no_case, rank_people
from erasable.evaluation.utility import Ranking
from erasable.models.base import Effort
from erasable.operations.remote import CarryOut, Facts
from erasable.operations.storage import Session
from erasable.operations.work import RayCluster, on_cluster
from erasable.workspace.portable import get_rows, put_rows
from erasable.workspace.scratch import Scratch
from erasable.workspace.workspace import Workspace

Rankings = Mapping[str, Ranking]
"""What was ranked for each known user."""


def ranked_elsewhere(
    session: Session, test: Interactions, protocol: Protocol, most: int, cluster: RayCluster
) -> list[Ranking]:
    """Rank for the known users of a test set, in its order; each task has the test rows of one bucket."""
    dataset, found = session.state().dataset, dict[str, Ranking]()
    if protocol == "held-out-only":
        dataset.scale.check(test.rating)
    parts = _by_bucket(dataset, test)
    with on_cluster(cluster, session) as executor:
        remote = RemoteRanking(session.stamp.version, protocol, most)
        for _, rankings in executor.run(remote, parts, Effort()):
            found |= rankings
    if not found:
        raise no_case()
    return [found[user] for user in test.users if user in found]


def _by_bucket(dataset: Dataset, test: Interactions) -> list[Interactions]:
    return [test.at(places) for places in dataset.buckets.by_bucket(test.users).values()]


class RemoteRanking:
    """Ranking for the users of one bucket."""

    @property
    def carry_out(self) -> CarryOut:
        """Ranks for some users."""
        return rank_part

    def __init__(self, version: int, protocol: Protocol, most: int) -> None:
        self._facts: dict[str, Any] = {"version": version, "protocol": protocol, "most": most}

    def order(self, task: Interactions, scratch: Scratch) -> Facts:
        """Write down the test rows."""
        return {**self._facts, "rows": put_rows(scratch, task)}

    def outcome(self, task: Interactions, facts: Facts, scratch: Scratch) -> Rankings:
        """Read what was ranked for each user."""
        return {user: Ranking(*fields) for user, fields in facts["rankings"].items()}


def rank_part(scratch: Scratch, facts: Facts, effort: Effort) -> Facts:
    """Rank for some users, in a worker."""
    workspace = Workspace.of_a_task(scratch.root, facts["version"])
    state, rows, protocol = workspace.state(), get_rows(scratch, facts["rows"]), facts["protocol"]
    known = [user for user in rows.users if state.dataset.buckets.find(user) is not None]
    if not known:  # others may be
        return {"rankings": {}}
    found = rank_people(state, workspace.checkpoints, rows, effort.threads, (protocol,), facts["most"])[protocol]
    return {"rankings": dict(zip(known, found, strict=True))}
