"""The catalogue: the items that can be recommended, which are those that people have, or a declared list."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from erasable.data.encoding import encode_ids
from erasable.data.ids import LONGEST_ID, Ids
from erasable.data.interactions import Interactions
from erasable.data.source_file import numbered_lines
from erasable.errors import DataRefused, WrongUse


@dataclass(frozen=True)
class Catalogue:
    """A list of items with fixed numbers; each later version appends, so a number never changes its item."""

    items: Ids
    versions: tuple[int, ...]
    declared: bool
    """Whether it was declared; 0.1 froze the items of the data where it was not."""

    def __post_init__(self) -> None:
        ascending = all(early < late for early, late in zip(self.versions, self.versions[1:], strict=False))
        if not self.versions or not ascending or self.versions[-1] != len(self.items):
            raise WrongUse("catalogue versions are growing item counts that end at the number of items")
        if self.versions[0] < 1:
            raise DataRefused("the catalogue is empty: give it at least one item")

    @classmethod
    def from_items(cls, items: Iterable[str]) -> "Catalogue":
        """Declare items as the first version, by their UTF-8 bytes."""
        ids = (items if isinstance(items, Ids) else Ids.of(items)).sorted()
        return cls(ids, (len(ids),), declared=True)

    def grown(self, items: Iterable[str]) -> "Catalogue":
        """Return a later version with the items that are new, by their UTF-8 bytes; itself if none is."""
        new = Ids.of({item for item in items if item not in self.items}).sorted()
        if not len(new):
            return self
        joined = Ids.of([*self.items, *new])
        return Catalogue(joined, (*self.versions, len(joined)), self.declared)


def read_catalogue(path: str | Path) -> Catalogue:
    """Read a declared catalogue: one item id a line, as written; blank lines and repeats are skipped."""
    lines = [(number, text) for number, text in numbered_lines(Path(path)) if text.strip()]
    for number, text in lines:
        if len(text) > LONGEST_ID:
            raise DataRefused(f"{path}, line {number}: the item has more than {LONGEST_ID:,} characters: shorten it")
    texts = [text for _, text in lines]
    if not texts:
        raise DataRefused(f"{path}: the catalogue is empty: write one item id a line")
    return Catalogue.from_items(dict.fromkeys(texts))


def over_own_items(parts: Sequence[Interactions]) -> list[Interactions]:
    """Return the parts, all numbered by the items that some row of theirs has, in the order of their UTF-8 bytes.

    Parts that are numbered like this already are returned as they are.
    """
    had = [part.items.take(np.flatnonzero(np.bincount(part.item_index))).array for part in parts]
    items, _ = encode_ids(pa.concat_arrays(had))
    return [part if part.items == items else part.with_items(items) for part in parts]
