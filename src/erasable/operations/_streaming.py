"""From a source to a dataset bucket by bucket, never all in memory: where nobody's group depends on others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.chain.buckets import Bucket, Buckets, StoredBucket, cuts
from erasable.chain.counts import Counts, Rules
from erasable.chain.dataset import Dataset
from erasable.chain.settings import Config
from erasable.data.catalogue import Catalogue
from erasable.data.ids import Ids, encode_ids
from erasable.data.interactions import Interactions, RatingScale
from erasable.data.item_features import ItemFeatures
from erasable.data.slots import SLOTS
from erasable.grouping.groups import independent_labels
from erasable.operations.storage import Session
from erasable.operations.work import Work
from erasable.proof.do_not_learn import NONE_LISTED, DoNotLearnList, ListedCount
from erasable.workspace.dealing import SHARES, Dealing

_IN_MEMORY = 4  # buckets that stay in memory, so that a small data set is not read again
Positions = Mapping[str, int]


def can_stream(config: Config, positions: Positions | None) -> bool:
    """Whether the group of each person, and which rows are kept, follow from that person's own rows."""
    alone = positions is not None or config.grouping == "independent" or config.groups == 1
    return alone and not config.min_interactions and config.risk_threshold is None


@dataclass
class Dealt:
    """People dealt out to buckets, and what is counted of them and of what was left out."""

    config: Config
    catalogue: Catalogue | None
    positions: Positions | None
    erased: DoNotLearnList | None
    features: ItemFeatures | None = None
    users: int = 0
    """How many people the source has."""
    left: int = 0
    """How many of them are not on the do-not-learn list."""
    repeated: int = 0
    listed: ListedCount = NONE_LISTED
    without_group: int = 0
    lowest: float = np.inf
    highest: float = -np.inf
    parts: list[Bucket | StoredBucket] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    _items: Ids = field(default_factory=lambda: Ids.of([]))
    _counts: Counts | None = None
    _loaded: dict[int, Bucket] = field(default_factory=dict)

    @cached_property
    def group_count(self) -> int:
        """How many groups there are."""
        return max([self.config.groups, *(1 + position for position in (self.positions or {}).values())])

    def take(self, dealing: Dealing, session: Session, work: Work) -> None:
        """Make buckets of the rows of each share, leaving out what is on the do-not-learn list."""
        runs = list(pairwise(cuts(dealing.people)))
        together, waiting = max(1, SHARES // len(runs)), list[Interactions]()
        for share, (rows, repeated) in enumerate(dealing, start=1):
            waiting.append(self._kept(rows, repeated, work))
            if share % together == 0:
                end = SLOTS * share // SHARES
                begin = SLOTS * (share - together) // SHARES
                self._add(session, _numbered_alike(waiting), [run for run in runs if begin <= run[0] < end])
                waiting = []

    def _kept(self, rows: Interactions, repeated: int, work: Work) -> Interactions:
        """Return rows without those on the do-not-learn list, and count them."""
        self.users += len(rows.users)
        self.repeated += repeated
        if self.erased is not None and len(rows):
            erased, listed = self.erased.interactions_among(rows, work.threads)
            counts = self.listed.users + listed.users, self.listed.interactions + listed.interactions
            self.listed, rows = ListedCount(*counts), rows.select(~erased) if erased.any() else rows
        self.left += len(rows.users)
        return rows

    def _add(self, session: Session, rows: Interactions, runs: Sequence[tuple[int, int]]) -> None:
        """Make buckets of these people, one for each run of slots, and keep them."""
        rows = rows.with_items(self.catalogue.items) if self.catalogue else rows
        if len(rows):
            self.lowest = min(self.lowest, float(rows.rating.min()))
            self.highest = max(self.highest, float(rows.rating.max()))
        training, held_out = self.config.splitting.of(rows)
        groups = self._groups_of(training)
        whole = Bucket.of(training, held_out, groups, self.config.seed)
        for first, end in runs:
            bucket, number = whole.part(first, end), len(self.parts)
            self._count(bucket)
            if number < _IN_MEMORY:
                self._loaded[number] = bucket
            self.starts.append(first)
            self.parts.append(session.keep(bucket, number, self.config.seed, self.group_count))

    def _groups_of(self, training: Interactions) -> NDArray[np.int64]:
        """Return each person's group; those whose group is not given are counted."""
        if self.positions is None:
            return independent_labels(training, self.config.groups, self.config.seed)
        found = [self.positions.get(user, -1) for user in training.users]
        self.without_group += found.count(-1)
        return np.maximum(np.array(found, np.int64), 0)

    def _count(self, bucket: Bucket) -> None:
        """Count a bucket; items are numbered anew where it brings some."""
        counts = Counts.of(bucket, Rules.of(self.config, self.group_count))
        own = bucket.training.items
        if self._counts is None:
            self._items, self._counts = own, counts
            return
        items = self._items
        if own is not items and (items.positions_of(own.array) < 0).any():
            items = encode_ids(pa.concat_arrays([items.array, own.array]))[0]
            self._counts = self._counts.over(items.positions_of(self._items.array), len(items))
            self._items = items
        numbered = counts if own is items else counts.over(items.positions_of(own.array), len(items))
        self._counts = Counts.together([self._counts, numbered])

    def dataset(self, scale: RatingScale) -> Dataset:
        """Return the dataset of everyone who was dealt out."""
        found = Buckets(self.parts, self.starts, self._items, self.config.seed)
        found.remember({number: bucket.over(self._items) for number, bucket in self._loaded.items()})
        count = self.group_count
        dataset = Dataset(
            self.config, self.catalogue, scale, found, count, cohesion=(None,) * count, counted=self._counts
        )
        return replace(dataset, features=self.features).tidied()


def _numbered_alike(parts: Sequence[Interactions]) -> Interactions:
    """Return the rows of some parts one after another, numbered by their own items."""
    had = [part.items.take(np.unique(part.item_index)).array for part in parts]
    items, _ = encode_ids(pa.concat_arrays(had))
    return Interactions.joined([part.with_items(items) for part in parts])
