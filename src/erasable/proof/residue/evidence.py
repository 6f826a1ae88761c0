"""What was found so far in a folder, and how a hit among raw bytes is judged.

A hit is explained away only by an id that is really held and stands at that very place, such as customer-12 where
customer-1 is looked for, by a longer word of our own files, or by a longer number where the id is a number. An id that
is also the id of an item that is held, or a word of our own files, can't be told from these: it is compared as a
decoded field only. The sentences of our own files are made of words, so that a single word there is nobody's name; a
digest there is nobody's number. The name of an issuer, where it stands whole on our own papers, is declared and
nobody's id.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import Literal

from erasable.proof.residue.encodings import Around, decodings
from erasable.proof.residue.longer import Longer, held_around, texts_around
from erasable.proof.residue.raw_search import RawSearch
from erasable.proof.residue.target import Held, Residue, What
from erasable.proof.residue.vocabulary import Vocabulary, names_issuers
from erasable.proof.residue.wanted import Needle, Needles, Wanted

Surroundings = Literal["text", "sentences", "bytes"]
"""What some bytes are: text of anyone, sentences of our own, or values one after another."""
_DIGITS = re.compile("[0-9a-f]*")
_DIGEST = 32


@dataclass(eq=False)
class Evidence:
    """What is looked for in a folder, what was found, and what explains a hit."""

    wanted: Wanted
    vocabulary: Vocabulary
    ambiguous: set[str] = field(default_factory=set)
    """Long ids that mean something else too."""
    longer: dict[str, Longer] = field(default_factory=dict)
    """By long id, the known texts that it is a part of: ids of others, words of our own, numbers."""
    declared: tuple[str, ...] = ()
    """Names of issuers."""
    found: dict[Residue, set[str]] = field(default_factory=dict)
    """Each place, and which of the texts that are looked for stand there."""

    def __post_init__(self) -> None:
        self.ambiguous |= {user for user in self.wanted.long_ids if self.vocabulary.says(user)}
        self._note(texts_around(self._plain, self.vocabulary.words()))

    @property
    def residues(self) -> tuple[Residue, ...]:
        """What was found."""
        return tuple(replace(residue, of=tuple(sorted(texts))) for residue, texts in self.found.items())

    def note_held(self, held: Held) -> None:
        """Know the ids that are held, some of which may hold one that is looked for or, among items, be one."""
        self.declared = held.declared
        for ids in (*held.users, *held.items):
            self._note(held_around(self._plain, ids))
        wanted = sorted(self.wanted.long_ids)
        for ids in held.items if wanted else ():
            self.ambiguous |= {user for user, place in zip(wanted, ids.positions(wanted), strict=True) if place >= 0}

    def note_ambiguous(self, texts: Collection[str]) -> None:
        """Know that some texts of our own stand for something else than a user."""
        self.ambiguous |= self.wanted.long_ids.intersection(texts)

    def note_ids(self, ids: Iterable[object]) -> None:
        """Know ids that a file of ours holds in a field made for them."""
        if self.wanted.long_ids:
            self._note(texts_around(self._plain, ids))

    def note_numbers(self, texts: Iterable[str]) -> None:
        """Know decoded texts, in which a number that is looked for may be a part of a longer one."""
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
        """Whether a hit of a text, with what stands around it, is what was looked for."""
        if needle.what == "id" and needle.text in self.ambiguous:
            return False
        if surroundings == "sentences" and _is_ours(needle.text, around):
            return False
        if surroundings != "bytes" and needle.text in self.wanted.long_numbers and _continues_number(around):
            return False
        longer = self.longer.get(needle.text)
        return longer is None or not longer.covers(around, needle.text)

    def without_declared(self, content: bytes) -> bytes:
        """Return text of our own papers without the names of issuers, where one is a whole value."""
        return content if self._names is None else self._names.sub(b"", content)

    @cached_property
    def _names(self) -> re.Pattern[bytes] | None:
        """The names of issuers, each between the ends of a line or the tags of a page."""
        names = [re.escape(name.encode("utf-8", "surrogatepass")) for name in self.declared if name]
        return re.compile(rb"(?<![^\n>])(?:%s)(?![^\n<])" % b"|".join(names)) if names else None

    @cached_property
    def _plain(self) -> RawSearch:
        """The long ids as they are written."""
        return RawSearch.of([user.encode() for user in sorted(self.wanted.long_ids)])

    def _note(self, known: Iterable[tuple[bytes, Around]]) -> None:
        for needle, around in known:
            text = needle.decode()
            self.longer.setdefault(text, Longer()).add(around, text)


@dataclass(frozen=True)
class File:
    """One file while it is compared."""

    name: str
    evidence: Evidence
    inside: str = ""
    """Where in the file its content stands, if it was packed, in words that end in a comma and a blank."""

    @property
    def wanted(self) -> Wanted:
        """What is looked for."""
        return self.evidence.wanted

    def found(self, place: str, what: What, of: Collection[str] = ()) -> None:
        """Report a residue, and of which texts that are looked for it is, if it says any."""
        self.evidence.found.setdefault(Residue(self.name, self.inside + place, what), set()).update(of)

    def compare_text(self, text: str, place: str) -> None:
        """Compare a text as a whole with what is looked for."""
        if text in self.wanted.ids:
            self.found(place, "id", [text])
        if text in self.wanted.texts:
            self.found(place, "text", [text])

    def search_texts(self, content: bytes, place: str, surroundings: Surroundings = "text") -> None:
        """Search bytes for long ids and texts; in text a hit must not be a part of a longer word."""
        if surroundings == "sentences" and names_issuers(self.name) and not self.inside:
            content = self.evidence.without_declared(content)
        if self._search_spellings(content, place, surroundings) or surroundings == "sentences":
            return
        for name, decoded in decodings(content):
            self._search_spellings(decoded, f"{place}, {name} decoded", surroundings)

    def _search_spellings(self, content: bytes, place: str, surroundings: Surroundings) -> bool:
        """Search bytes as they are, and say whether anything was found."""
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
"""How a place among bytes that were not decoded ends; the offset is added to it."""


def _where(place: str, start: int, needle: Needle) -> str:
    return f"{place} at {start} ({needle.written})" if place.endswith(RAW) else f"{place} ({needle.written})"


def _is_ours(text: str, around: Around) -> bool:
    """Whether a text in a sentence of ours is a single word, or a part of a digest."""
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
