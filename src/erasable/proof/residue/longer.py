"""Texts that are known and hold an id that is looked for, and whether one of them stands where the id was found."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeGuard

import numpy as np

from erasable.data import Ids
from erasable.proof.residue.encodings import Around
from erasable.proof.residue.raw_search import WINDOW, RawSearch


@dataclass(frozen=True, eq=False)
class Longer:
    """The longer texts that one id is a part of."""

    texts: set[str] = field(default_factory=set)
    ends: set[tuple[int, int]] = field(default_factory=set)
    """How many letters stand before and after the id in them."""

    def add(self, around: Around, text: str) -> None:
        """Know one more, given by what stands around the id in it."""
        if any(around):
            self.texts.add(around[0] + text + around[1])
            self.ends.add((len(around[0]), len(around[1])))

    def covers(self, around: Around, text: str) -> bool:
        """Whether one of them stands there, with the id at its place in it."""
        before, after = around
        # There are few different ends, whereas very many people may have ids that begin alike.
        return any(
            before[max(0, len(before) - left) :] + text + after[:right] in self.texts for left, right in self.ends
        )


def held_around(search: RawSearch, ids: Ids) -> Iterator[tuple[bytes, Around]]:
    """Yield each needle that is a part of an id, with what stands around it there."""
    content, ends = ids.written()
    if len(content) < WINDOW:
        return
    for start, number in search.find(content):
        needle = search.needles[number]
        place = int(np.searchsorted(ends, start, side="right"))
        first, last = (int(ends[place - 1]) if place else 0), int(ends[place])
        if start + len(needle) <= last:
            yield needle, (content[first:start].decode(), content[start + len(needle) : last].decode())


def texts_around(search: RawSearch, texts: Iterable[object]) -> Iterator[tuple[bytes, Around]]:
    """Yield each needle that is a part of a text, with what stands around it there; what is no text is left out."""
    yield from held_around(search, Ids.of(dict.fromkeys(text for text in texts if _is_text(text))))


def _is_text(value: object) -> TypeGuard[str]:
    """Whether a value is a text that can be written; JSON can also say half a letter."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)
