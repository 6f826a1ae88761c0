"""The catalogue: the items that can be recommended, frozen when learning starts; nothing personal here."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from erasable.data.ids import Ids
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

    def digest(self, version: int = -1) -> str:
        """Return the fingerprint of the items up to a version (the last by default)."""
        return Ids(self.items.array[: self.versions[version]]).digest()


def read_catalogue(path: str | Path) -> Catalogue:
    """Read a declared catalogue: one item id a line, as written; blank lines and repeats are skipped."""
    texts = [text for _, text in numbered_lines(Path(path)) if text.strip()]
    if not texts:
        raise DataRefused(f"{path}: the catalogue is empty: write one item id a line")
    return Catalogue.from_items(dict.fromkeys(texts), declared=True)
