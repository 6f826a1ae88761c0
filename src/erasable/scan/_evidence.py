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
from itertools import chain, takewhile
from typing import Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from erasable.scan._search import Cells, RawSearch, Values
from erasable.scan._source import Part, Source, parts
from erasable.scan._target import (
    NOTHING_HELD,
    Around,
    Held,
    Residue,
    Texts,
    Vocabulary,
    What,
    decodings,
    may_be_escaped,
)
from erasable.scan._wanted import Needle, Needles, Wanted

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
    cells = Cells.of(ids)
    for cell, start, number in zip(*(places.tolist() for places in cells.found(search)), strict=True):
        needle, text = search.needles[number], cells.at(cell)
        yield needle, (text[:start].decode(), text[start + len(needle) :].decode())


def texts_around(search: RawSearch, texts: Iterable[object]) -> Iterator[tuple[bytes, Around]]:
    """Yield each needle that is part of a text, with what surrounds it there; other values are left out."""
    yield from held_around(search, [*dict.fromkeys(text for text in texts if _is_text(text))])


def _is_text(value: object) -> TypeGuard[str]:
    """Whether a value is a text that can be encoded; JSON can also hold lone surrogates."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


# Evidence

Surroundings = Literal["text", "sentences", "bytes"]
"""What bytes consist of: any text, sentences of the vocabulary's files, or binary values."""
_DIGITS = re.compile("[0-9a-f]*")
_DIGEST = 32
_MANY = 1000
"""From so many hits on, cells are compared once each."""
_SLACK = 16
_NEARBY, _LONGEST_ESCAPE = 256, 12
CONTEXT = 1024
"""How many bytes around a hit are looked at."""
_NONE = Values(())


@dataclass(eq=False)
class Evidence:
    """What is searched in a folder, what was found, and what explains a hit."""

    wanted: Wanted
    vocabulary: Vocabulary
    held: Held = NOTHING_HELD
    """The ids in the data; they are looked at when there is a hit to explain."""
    longer: dict[str, Longer] = field(default_factory=dict)
    """By long id, the known texts that contain it: other ids, words of the vocabulary, numbers."""
    found: dict[Residue, set[str]] = field(default_factory=dict)
    """Each residue, with the searched texts found there."""
    _ambiguous: set[str] = field(default_factory=set)
    _clear: set[str] = field(default_factory=set)

    @property
    def residues(self) -> tuple[Residue, ...]:
        """All residues found."""
        return tuple(replace(residue, of=tuple(sorted(texts))) for residue, texts in self.found.items())

    def is_ambiguous(self, user: str) -> bool:
        """Whether a long id has another meaning too: that of an item, or of a word."""
        if user in self._ambiguous or user in self._held_items:
            return True
        if user not in self._clear:
            (self._ambiguous if self.vocabulary.says(user) else self._clear).add(user)
        return user in self._ambiguous

    def not_items(self, users: Collection[str]) -> frozenset[str]:
        """Return the ids that no item in the data has."""
        return frozenset(users) - self._held_items if users else frozenset()

    @cached_property
    def _held_items(self) -> frozenset[str]:
        """Ids that are also ids of items in the data."""
        wanted = self.wanted.id_values
        arrays = (Cells.of(ids) for ids in self.held.items)
        return frozenset().union(*(wanted.chosen(wanted.in_cells(cells)) for cells in arrays))

    @cached_property
    def _explanations(self) -> dict[str, Longer]:
        """The texts around long ids, with the words of the vocabulary and the ids in the data."""
        self._note(texts_around(self._plain, self.vocabulary.words()))
        for ids in chain(self.held.users, self.held.items):
            self._note(held_around(self._plain, ids))
        return self.longer

    def note_ambiguous(self, texts: Collection[str]) -> None:
        """Register texts that may mean something other than a user."""
        self._ambiguous |= self.wanted.long_ids.intersection(texts)

    def note_ids(self, ids: Iterable[object]) -> None:
        """Register ids from fields of the vocabulary's files."""
        if self.wanted.long_ids:
            self._note(texts_around(self._plain, ids))

    def note_numbers(self, cells: Cells) -> None:
        """Register decoded texts, in which a searched number may be part of a longer one."""
        if not self.wanted.long_numbers:
            return
        search = self._plain_numbers
        places = cells.found(search)
        if len(places[0]) > _MANY:
            cells = cells.distinct(places[0])
            places = cells.found(search)
        for cell, start, number in zip(*(one.tolist() for one in places), strict=True):
            text, content = search.needles[number].decode(), cells.at(cell)
            end = start + len(text)
            before, after = content[max(0, start - 400) : start], content[end : end + 400]
            around = _digits_before(before.decode("latin-1")), _digits_after(after.decode("latin-1"))
            self.longer.setdefault(text, Longer()).add(around, text)

    def means(self, needle: Needle, around: Around, surroundings: Surroundings) -> bool:
        """Whether a hit, with what surrounds it, really is the searched text."""
        if needle.what == "id" and self.is_ambiguous(needle.text):
            return False
        if surroundings == "sentences" and _is_nobodys(needle.text, around):
            return False
        if surroundings != "bytes" and needle.text in self.wanted.long_numbers and _continues_number(around):
            return False
        longer = self._explanations.get(needle.text)
        return longer is None or not longer.covers(around, needle.text)

    def without_declared(self, content: bytes) -> bytes:
        """Return the text of a declaring file without the names of issuers that stand as whole values."""
        return content if self._names is None else self._names.sub(b"", content)

    @cached_property
    def _names(self) -> re.Pattern[bytes] | None:
        """Matches the name of an issuer as a whole line or between tags of a page."""
        names = [re.escape(name.encode("utf-8", "surrogatepass")) for name in self.held.declared if name]
        return re.compile(rb"(?<![^\n>])(?:%s)(?![^\n<])" % b"|".join(names)) if names else None

    @cached_property
    def _plain(self) -> RawSearch:
        """The long ids in UTF-8."""
        return RawSearch.of([user.encode() for user in sorted(self.wanted.long_ids)])

    @cached_property
    def _plain_numbers(self) -> RawSearch:
        """The long ids that are numbers."""
        return RawSearch.of([user.encode() for user in sorted(self.wanted.long_numbers)])

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

    @property
    def is_of_items(self) -> bool:
        """Whether it is a table of items that somebody declared."""
        return not self.inside and self.vocabulary.item_tables.fullmatch(self.name) is not None

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
        search = TextSearch(self, place, surroundings)
        search.search(content)
        search.finish()

    def search_cells(self, cells: Cells, place: str, surroundings: Surroundings, but: Values = _NONE) -> None:
        """Search inside the cells of a column, except those that equal one of some values."""
        if not len(cells.content):
            return
        search = TextSearch(self, place, surroundings)
        search.search_cells(cells, but)
        search.finish()

    def search_values(self, needles: Needles, content: bytes, place: str) -> None:
        """Search bytes for numbers."""
        found = ValueSearch(self, place)
        for start, number in needles.search.find(content):
            found.tell(needles.meanings[number], start)

    def search_bytes(self, source: Source, needles: Needles, surroundings: Surroundings) -> None:
        """Search all bytes of a file for texts and numbers."""
        text = TextSearch(self, RAW, surroundings)
        search_pieces(text, ValueSearch(self, RAW), needles, source)
        text.finish()


@dataclass(eq=False)
class TextSearch:
    """A search for long ids and texts at one place of a file, whose content may come in pieces."""

    file: File
    place: str
    surroundings: Surroundings = "text"
    base: int = 0
    """What is added to offsets when they are said."""
    _told: dict[tuple[What, str], str] = field(default_factory=dict)
    """The place said for each encoding: that of the first hit."""
    _done: set[tuple[What, str, str]] = field(default_factory=set)
    _texts: set[tuple[What, str]] = field(default_factory=set)
    _decoded: dict[tuple[str, Needle], None] = field(default_factory=dict)
    """Hits in decoded text, which count for texts that are not found otherwise, and not in binary content."""
    binary: bool = False
    """Whether the content is no text, so that it has no escapes."""

    def search(self, content: bytes) -> None:
        """Search all of a content."""
        needles = self.file.wanted.long_texts
        for start, number in needles.search.find(content):
            self.judge(content, start, needles.meanings[number], start)
        self.search_escaped(content, 0, len(content))

    def judge(self, content: bytes, start: int, needle: Needle, offset: int) -> None:
        """Report a hit, unless something explains it; the offset is said."""
        if (needle.what, needle.written, needle.text) in self._done or not self._means(content, start, needle):
            return
        self._done.add((needle.what, needle.written, needle.text))
        self._texts.add((needle.what, needle.text))
        place = _where(self.place, self.base + offset, needle)
        self.file.found(self._told.setdefault((needle.what, needle.written), place), needle.what, [needle.text])

    @property
    def may_be_escaped(self) -> bool:
        """Whether escapes are decoded: in text that anyone may have written."""
        return self.surroundings != "sentences" and not self.binary and bool(self.file.wanted.long_texts.known)

    def search_escaped(self, content: bytes, begin: int, end: int) -> None:
        """Search decoded text for hits that begin in a part of it; the rest is what surrounds them."""
        if not self.may_be_escaped:
            return
        self.binary = b"\0" in content
        for name, decoded in () if self.binary else decodings(content):
            # Where an escape or a line lies over the border, lengths differ by a few bytes.
            before, after = (len(dict(decodings(one)).get(name, one)) for one in (content[:begin], content[end:]))
            self._search_decoded(name, decoded, before - _SLACK, len(decoded) - after + _SLACK)

    def search_cells(self, cells: Cells, but: Values) -> None:
        """Search cells, except those that equal one of some values."""
        needles = self.file.wanted.long_texts
        found, starts, numbers = cells.found(needles.search)
        if len(found) > _MANY:
            cells = cells.distinct(found)
            found, starts, numbers = cells.found(needles.search)
        if len(found) and but.texts:
            others = (but.in_cells(cells) < 0)[found]
            found, starts, numbers = found[others], starts[others], numbers[others]
        for cell, start, number in zip(found.tolist(), starts.tolist(), numbers.tolist(), strict=True):
            needle = needles.meanings[number]
            if (needle.what, needle.written, needle.text) not in self._done:
                self.judge(cells.at(cell), start, needle, start)
        if needles.known and may_be_escaped(cells.content):
            # Two line feeds: a line that ends in = goes on in the next.
            for name, decoded in decodings(cells.joined(b"\n\n")):
                self._search_decoded(name, decoded, 0, len(decoded))

    def finish(self) -> None:
        """Report what was found in decoded text."""
        for name, needle in self._decoded if not self.binary else ():
            if (needle.what, needle.text) not in self._texts:
                self.file.found(f"{self.place}, {name} decoded ({needle.written})", needle.what, [needle.text])

    def _search_decoded(self, name: str, content: bytes, first: int, last: int) -> None:
        needles = self.file.wanted.long_texts
        for start, number in needles.search.find(content):
            needle = needles.meanings[number]
            hit = (name, needle)
            if first <= start < last and hit not in self._decoded and self._means(content, start, needle):
                self._decoded[hit] = None

    def _means(self, content: bytes, start: int, needle: Needle) -> bool:
        if needle.encoding is None:
            return False
        around = needle.encoding.around(content, start, start + needle.size)
        return around is not None and self.file.evidence.means(needle, around, self.surroundings)


@dataclass(eq=False)
class ValueSearch:
    """A search for numbers as bytes at one place of a file."""

    file: File
    place: str
    base: int = 0
    _told: set[str] = field(default_factory=set)

    def tell(self, needle: Needle, offset: int) -> None:
        """Report a hit; the first in each format counts."""
        if needle.written not in self._told:
            self._told.add(needle.written)
            self.file.found(_where(self.place, self.base + offset, needle), needle.what)


def search_pieces(
    text: TextSearch, values: ValueSearch, needles: Needles, source: Source, start: int = 0, end: int | None = None
) -> None:
    """Search bytes of a file in pieces for texts and numbers in one pass, also where they lie across a border."""
    margin = CONTEXT + needles.longest
    kept, begin, base = np.empty(0, np.uint8), 0, 0
    last = (source.size if end is None else end) - start
    for part in parts(source, 4 * margin, start, end):
        content = _behind(kept, part)
        is_last = base + len(content) >= last
        stop = len(content) if is_last else _between_escapes(content, begin, len(content) - margin)
        first = 0
        if stop > begin:
            _search_piece(text, values, needles, content, slice(begin, stop), base)
            first = _line_start(content, max(0, stop - margin), margin)
        kept, begin, base = content[first:].copy(), max(begin, stop) - first, base + first


def _behind(kept: NDArray[np.uint8], part: Part) -> NDArray[np.uint8]:
    """Return a piece with what is kept before it, in the room that it has for that."""
    first = part.room - len(kept)
    if not len(kept):
        return part.buffer[part.room :]
    if first < 0:
        return np.concatenate([kept, part.buffer[part.room :]])
    part.buffer[first : part.room] = kept
    return part.buffer[first:]


def _line_start(content: NDArray[np.uint8], first: int, margin: int) -> int:
    """Return where a line starts shortly before an offset, or the offset."""
    begin = max(0, first - margin)
    return begin + content[begin:first].tobytes().rfind(b"\n") + 1 or first


def _search_piece(
    text: TextSearch, values: ValueSearch, needles: Needles, content: NDArray[np.uint8], part: slice, base: int
) -> None:
    starts, numbers = needles.search.places(content)
    fits = (starts >= part.start) & (starts < part.stop)
    for start, number in zip(starts[fits].tolist(), numbers[fits].tolist(), strict=True):
        needle = needles.meanings[number]
        if needle.encoding is None:
            values.tell(needle, base + start)
        else:
            first = max(0, start - CONTEXT)
            around = content[first : start + needle.size + CONTEXT].tobytes()
            text.judge(around, start - first, needle, base + start)
    if text.may_be_escaped:
        text.search_escaped(content.tobytes(), part.start, part.stop)


def _between_escapes(content: NDArray[np.uint8], begin: int, end: int) -> int:
    """Return a place at which no escape is cut, if there is one nearby."""
    for place in range(end, max(begin, end - _NEARBY), -1):
        last = content[max(0, place - _LONGEST_ESCAPE) : place].tobytes()
        if b"&" not in last and b"=" not in last:
            return place
    return end


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
