"""The evidence: what was found so far in a folder, and judging a hit in raw bytes.

A hit is dismissed only if something longer stands at that very place: an id that is really in the data, such as
customer-12 for customer-1, a longer word of the vocabulary, or, for a numeric id, a longer number. An id that is also
the id of an item in the data, or a word of the vocabulary, can't be told from these: it is compared as a decoded field
only. The vocabulary's files consist of sentences, so a single word there names nobody, and digits of a digest there are
no id. The name of an issuer does not count where it stands as a whole value in a file that declares it.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import Literal, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from erasable.scan._target import Around, ArrowColumn, Held, Residue, Texts, Vocabulary, What, decodings
from erasable.scan._wanted import WINDOW, Needle, Needles, RawSearch, Wanted

# Known texts that contain an id: does one of them stand where the id was found?


@dataclass(frozen=True, eq=False)
class Longer:
    """The longer texts that contain an id."""

    texts: set[str] = field(default_factory=set)
    ends: set[tuple[int, int]] = field(default_factory=set)
    """How many letters come before and after the id in them."""

    def add(self, around: Around, text: str) -> None:
        """Add a text, given by what surrounds the id in it."""
        if any(around):
            self.texts.add(around[0] + text + around[1])
            self.ends.add((len(around[0]), len(around[1])))

    def covers(self, around: Around, text: str) -> bool:
        """Whether one of them stands around a hit, with the id at its place."""
        before, after = around
        # There are few different lengths, but very many ids may start alike.
        return any(
            before[max(0, len(before) - left) :] + text + after[:right] in self.texts for left, right in self.ends
        )


def held_around(search: RawSearch, ids: Texts) -> Iterator[tuple[bytes, Around]]:
    """Yield each needle that is part of an id in the data, with what surrounds it there."""
    content, ends = _written(_as_array(ids))
    if len(content) < WINDOW:
        return
    for start, number in search.find(content):
        needle = search.needles[number]
        place = int(np.searchsorted(ends, start, side="right"))
        first, last = (int(ends[place - 1]) if place else 0), int(ends[place])
        if start + len(needle) <= last:
            yield needle, (content[first:start].decode(), content[start + len(needle) : last].decode())


def texts_around(search: RawSearch, texts: Iterable[object]) -> Iterator[tuple[bytes, Around]]:
    """Yield each needle that is part of a text, with what surrounds it there; other values are left out."""
    yield from held_around(search, [*dict.fromkeys(text for text in texts if _is_text(text))])


def _as_array(texts: Texts) -> ArrowColumn:
    """Return texts as one plain array."""
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    return texts.cast(pa.string()) if isinstance(texts, pa.Array) else pa.array(texts, pa.string())


def _written(array: ArrowColumn) -> tuple[bytes, NDArray[np.int64]]:
    """Return the concatenated UTF-8 bytes of all texts, and where each of them ends."""
    _, offsets, content = array.buffers()
    if content is None or not len(array):
        return b"", np.empty(0, dtype=np.int64)
    bounds = np.frombuffer(offsets, dtype=np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return memoryview(content)[bounds[0] : bounds[-1]].tobytes(), bounds[1:] - bounds[0]


def _is_text(value: object) -> TypeGuard[str]:
    """Whether a value is a text that can be encoded; JSON can also hold lone surrogates."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


# Evidence

Surroundings = Literal["text", "sentences", "bytes"]
"""What bytes consist of: any text, sentences of the vocabulary's files, or binary values."""
_DIGITS = re.compile("[0-9a-f]*")
_DIGEST = 32


@dataclass(eq=False)
class Evidence:
    """What is searched in a folder, what was found, and what explains a hit."""

    wanted: Wanted
    vocabulary: Vocabulary
    ambiguous: set[str] = field(default_factory=set)
    """Long ids that have another meaning too."""
    longer: dict[str, Longer] = field(default_factory=dict)
    """By long id, the known texts that contain it: other ids, words of the vocabulary, numbers."""
    declared: tuple[str, ...] = ()
    """Names of issuers."""
    found: dict[Residue, set[str]] = field(default_factory=dict)
    """Each residue, with the searched texts found there."""

    def __post_init__(self) -> None:
        self.ambiguous |= {user for user in self.wanted.long_ids if self.vocabulary.says(user)}
        self._note(texts_around(self._plain, self.vocabulary.words()))

    @property
    def residues(self) -> tuple[Residue, ...]:
        """All residues found."""
        return tuple(replace(residue, of=tuple(sorted(texts))) for residue, texts in self.found.items())

    def note_held(self, held: Held) -> None:
        """Register the ids in the data: some may contain a searched id, and an item may have the same id."""
        self.declared = held.declared
        for ids in (*held.users, *held.items):
            self._note(held_around(self._plain, ids))
        wanted = pa.array(sorted(self.wanted.long_ids), pa.string())
        for ids in map(_as_array, held.items if len(wanted) else ()):
            self.ambiguous |= {*ids.filter(pc.is_in(ids, value_set=wanted)).to_pylist()}

    def note_ambiguous(self, texts: Collection[str]) -> None:
        """Register texts that may mean something other than a user."""
        self.ambiguous |= self.wanted.long_ids.intersection(texts)

    def note_ids(self, ids: Iterable[object]) -> None:
        """Register ids from fields of the vocabulary's files."""
        if self.wanted.long_ids:
            self._note(texts_around(self._plain, ids))

    def note_numbers(self, texts: Iterable[str]) -> None:
        """Register decoded texts, in which a searched number may be part of a longer one."""
        if not self.wanted.long_numbers:
            return
        content = "\n".join(texts).encode("utf-8", "surrogatepass")
        for start, number in self._plain.find(content):
            text = self._plain.needles[number].decode()
            if text in self.wanted.long_numbers:
                end = start + len(text)
                before, after = content[max(0, start - 400) : start], content[end : end + 400]
                around = _digits_before(before.decode("latin-1")), _digits_after(after.decode("latin-1"))
                self.longer.setdefault(text, Longer()).add(around, text)

    def means(self, needle: Needle, around: Around, surroundings: Surroundings) -> bool:
        """Whether a hit, with what surrounds it, really is the searched text."""
        if needle.what == "id" and needle.text in self.ambiguous:
            return False
        if surroundings == "sentences" and _is_nobodys(needle.text, around):
            return False
        if surroundings != "bytes" and needle.text in self.wanted.long_numbers and _continues_number(around):
            return False
        longer = self.longer.get(needle.text)
        return longer is None or not longer.covers(around, needle.text)

    def without_declared(self, content: bytes) -> bytes:
        """Return the text of a declaring file without the names of issuers that stand as whole values."""
        return content if self._names is None else self._names.sub(b"", content)

    @cached_property
    def _names(self) -> re.Pattern[bytes] | None:
        """Matches the name of an issuer as a whole line or between tags of a page."""
        names = [re.escape(name.encode("utf-8", "surrogatepass")) for name in self.declared if name]
        return re.compile(rb"(?<![^\n>])(?:%s)(?![^\n<])" % b"|".join(names)) if names else None

    @cached_property
    def _plain(self) -> RawSearch:
        """The long ids in UTF-8."""
        return RawSearch.of([user.encode() for user in sorted(self.wanted.long_ids)])

    def _note(self, known: Iterable[tuple[bytes, Around]]) -> None:
        for needle, around in known:
            text = needle.decode()
            self.longer.setdefault(text, Longer()).add(around, text)


@dataclass(frozen=True)
class File:
    """One file during its search."""

    name: str
    evidence: Evidence
    inside: str = ""
    """Where in a packed file the content is, in words that end with a comma and a blank."""

    @property
    def wanted(self) -> Wanted:
        """What is searched."""
        return self.evidence.wanted

    @property
    def vocabulary(self) -> Vocabulary:
        """The words, fields and files that name nobody."""
        return self.evidence.vocabulary

    def found(self, place: str, what: What, of: Collection[str] = ()) -> None:
        """Report a residue, with the searched texts found there, if any."""
        self.evidence.found.setdefault(Residue(self.name, self.inside + place, what), set()).update(of)

    def compare_text(self, text: str, place: str) -> None:
        """Compare a whole text with the ids and texts that are searched."""
        if text in self.wanted.ids:
            self.found(place, "id", [text])
        if text in self.wanted.texts:
            self.found(place, "text", [text])

    def search_texts(self, content: bytes, place: str, surroundings: Surroundings = "text") -> None:
        """Search bytes for long ids and texts, also with escapes decoded."""
        if surroundings == "sentences" and self.vocabulary.declaring.fullmatch(self.name) and not self.inside:
            content = self.evidence.without_declared(content)
        if self._search_spellings(content, place, surroundings) or surroundings == "sentences":
            return
        for name, decoded in decodings(content):
            self._search_spellings(decoded, f"{place}, {name} decoded", surroundings)

    def _search_spellings(self, content: bytes, place: str, surroundings: Surroundings) -> bool:
        """Search bytes for all spellings; return whether anything was found."""
        told: set[tuple[What, str]] = set()
        for span, needle in self.wanted.long_texts.find(content):
            if needle.encoding is None or (needle.what, needle.written) in told:
                continue
            around = needle.encoding.around(content, span.start, span.stop)
            if around is not None and self.evidence.means(needle, around, surroundings):
                told.add((needle.what, needle.written))
                self.found(_where(place, span.start, needle), needle.what, [needle.text])
        return bool(told)

    def search_values(self, needles: Needles, content: bytes, place: str) -> None:
        """Search bytes for numbers."""
        told: set[str] = set()
        for span, needle in needles.find(content):
            if needle.written not in told:
                told.add(needle.written)
                self.found(_where(place, span.start, needle), needle.what)


RAW = "raw bytes"
"""Ends the description of a place in undecoded bytes; the offset is added to it."""


def _where(place: str, start: int, needle: Needle) -> str:
    return f"{place} at {start} ({needle.written})" if place.endswith(RAW) else f"{place} ({needle.written})"


def _is_nobodys(text: str, around: Around) -> bool:
    """Whether a text in the vocabulary's files is a single word, or part of a digest."""
    if text.isascii() and text.isalpha():
        return True
    before, after = _DIGITS.match(around[0][::-1]), _DIGITS.match(around[1])
    run = len(text) + sum(len(match[0]) for match in (before, after) if match)
    return _DIGITS.fullmatch(text) is not None and run >= _DIGEST and run > len(text)


def _continues_number(around: Around) -> bool:
    return around[0][-1:].isdecimal() or around[1][:1].isdecimal()


def _digits_before(text: str) -> str:
    return _digits_after(text[::-1])[::-1]


def _digits_after(text: str) -> str:
    return "".join(takewhile(str.isdecimal, text))
