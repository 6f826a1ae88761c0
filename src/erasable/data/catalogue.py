"""The catalogue: the items that can be recommended, frozen when learning starts; nothing personal here."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from erasable.data.ids import LONGEST_ID, Ids
from erasable.data.source_file import numbered_lines
from erasable.errors import DataRefused, WrongUse


@dataclass(frozen=True)
class Catalogue:
    """Items with fixed numbers; each later version appends, so a number never changes its item."""

    items: Ids
    versions: tuple[int, ...]
    declared: bool

    def __post_init__(self) -> None:
        ascending = all(early < late for early, late in zip(self.versions, self.versions[1:], strict=False))
        if not self.versions or not ascending or self.versions[-1] != len(self.items):
            raise WrongUse("catalogue versions are growing item counts that end at the number of items")
        if self.versions[0] < 1:
            raise DataRefused("the catalogue is empty: give it at least one item")

    @classmethod
    def from_items(cls, items: Iterable[str], declared: bool = False) -> "Catalogue":
        """Freeze items as the first version, by their UTF-8 bytes."""
        ids = (items if isinstance(items, Ids) else Ids.of(items)).sorted()
        return cls(ids, (len(ids),), declared)

    def grown(self, items: Iterable[str]) -> "Catalogue":
        """Return a later version with the items that are new, by their UTF-8 bytes; itself if none is."""
        new = Ids.of({item for item in items if item not in self.items}).sorted()
        if not len(new):
            return self
        joined = Ids.of([*self.items, *new])
        return Catalogue(joined, (*self.versions, len(joined)), self.declared)

    def digest(self, count: int | None = None) -> str:
        """Return the fingerprint of the items, or of the first so many."""
        return Ids(self.items.array[:count]).digest()


def read_catalogue(path: str | Path) -> Catalogue:
    """Read a declared catalogue: one item id a line, as written; blank lines and repeats are skipped."""
    lines = [(number, text) for number, text in numbered_lines(Path(path)) if text.strip()]
    for number, text in lines:
        if len(text) > LONGEST_ID:
            raise DataRefused(f"{path}, line {number}: the item has more than {LONGEST_ID:,} characters: shorten it")
    texts = [text for _, text in lines]
    if not texts:
        raise DataRefused(f"{path}: the catalogue is empty: write one item id a line")
    return Catalogue.from_items(dict.fromkeys(texts), declared=True)
