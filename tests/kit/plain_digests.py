"""Digests of rows that have no salt: a guess could be tested against them, so no document may have one."""

from collections.abc import Iterator

from erasable.chain import Dataset


def slot_digests(dataset: Dataset) -> set[str]:
    """Return those of slots, as they lie beside the data: of everything, and of the learners of each stage."""
    counts = dataset.counts
    return {
        digest.tobytes().hex() for digests in (counts.whole, *counts.of_stages) for digest in digests if digest.any()
    }


def plain_digests(dataset: Dataset) -> Iterator[str]:
    """Yield all of them: of slots, of everything, of what stages learn from, of groups, holdout, users and items."""
    yield from slot_digests(dataset)
    yield dataset.data_name
    yield from (dataset.learners_name(position).rows for position in range(dataset.stages))
    for part in (*dataset.groups, dataset.held_out):
        yield from (part.digest(), part.users.digest())
    yield dataset.items.digest()
