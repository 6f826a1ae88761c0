"""Everything that is looked for about some people, made ready for comparing and for searching bytes."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from erasable.proof.residue.encodings import SHORTEST, Encoding, spellings
from erasable.proof.residue.raw_search import WINDOW, RawSearch
from erasable.proof.residue.target import Target, What
from erasable.proof.residue.values import ROW_FORMATS, TIME_FORMATS, Runs, row_spellings, single, tells_apart


@dataclass(frozen=True, eq=False)
class Needle:
    """What some bytes to be found are."""

    what: What
    written: str
    """How the bytes are written: an encoding, or a format of numbers."""
    text: str = ""
    """What they say, if they say a text."""
    encoding: Encoding | None = None


_ROWS = {name: Needle("personal row", name) for name in ROW_FORMATS}
_TIMES = {name: Needle("interactions", name) for name in TIME_FORMATS}


@dataclass(frozen=True, eq=False)
class Needles:
    """Bytes that are searched for together."""

    known: Mapping[bytes, Needle]

    @cached_property
    def _search(self) -> tuple[RawSearch, tuple[Needle, ...]]:
        return RawSearch.of(tuple(self.known)), tuple(self.known.values())

    def find(self, content: bytes) -> Iterator[tuple[slice, Needle]]:
        """Yield where each of them stands."""
        if not self.known or len(content) < WINDOW:
            return
        search, needles = self._search
        for start, number in search.find(content):
            yield slice(start, start + len(search.needles[number])), needles[number]


@dataclass(frozen=True, eq=False)
class Wanted:
    """What some people's erasure must have left nowhere."""

    targets: Sequence[Target]

    @cached_property
    def ids(self) -> frozenset[str]:
        """The ids of those who were erased whole."""
        return frozenset(target.user for target in self.targets if target.items is None)

    @cached_property
    def long_ids(self) -> frozenset[str]:
        """Those of them that can be told from other bytes."""
        return frozenset(user for user in self.ids if len(user.encode()) >= SHORTEST)

    @cached_property
    def long_numbers(self) -> frozenset[str]:
        """Those of them that are decimal numbers."""
        return frozenset(user for user in self.long_ids if re.fullmatch("[0-9]+", user))

    @cached_property
    def pairs(self) -> Mapping[str, frozenset[str]]:
        """The items that were erased of those who stay."""
        found: dict[str, frozenset[str]] = {}
        for target in self.targets:
            if target.items is not None and target.user not in self.ids:
                found[target.user] = found.get(target.user, frozenset()) | frozenset(target.items)
        return found

    @cached_property
    def texts(self) -> frozenset[str]:
        """Other texts that must be gone."""
        return frozenset(text for target in self.targets for text in target.texts if text)

    @cached_property
    def own_items(self) -> frozenset[str]:
        """Items that went with them."""
        return frozenset(item for target in self.targets for item in target.own_items)

    @cached_property
    def runs(self) -> Runs:
        """Their interactions as values."""
        return Runs(tuple(target.rows for target in self.targets if target.rows is not None))

    @cached_property
    def long_texts(self) -> Needles:
        """Long ids and texts, in every encoding."""
        return Needles(_text_needles(self.texts, "text") | _text_needles(self.long_ids, "id"))

    @cached_property
    def personal_rows(self) -> Needles:
        """Personal rows, in every format."""
        rows = (row_spellings(row) for target in self.targets for row in target.personal)
        return Needles({content: _ROWS[name] for one in rows for content, name in one.items()})

    @cached_property
    def single_rows(self) -> Needles:
        """Personal rows in single precision, in which decoded numbers are compared."""
        rows = (np.asarray(row, dtype=np.float64) for target in self.targets for row in target.personal)
        return Needles({single(row).tobytes(): _ROWS["float32"] for row in rows if tells_apart(row)})

    @cached_property
    def shortest_row(self) -> int:
        """How many numbers the shortest personal row holds; 0 without any."""
        return min((len(content) // 4 for content in self.single_rows.known), default=0)

    @cached_property
    def times(self) -> Needles:
        """Runs of times, in every format."""
        return Needles({content: _TIMES[name] for content, name in self.runs.time_spellings()})


def _text_needles(texts: Iterable[str], what: What) -> dict[bytes, Needle]:
    found: dict[bytes, Needle] = {}
    for text in sorted(texts):
        for content, encoding in spellings(text).items():
            found.setdefault(content, Needle(what, encoding.name, text, encoding))
    return found
