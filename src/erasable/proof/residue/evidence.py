"""What was found so far in a folder, and how a hit among raw bytes is judged.

Ids that are also the id of an item, a number in a decoded table or a word of our own files can't be told from these by
their bytes: they are compared as decoded fields only. A hit inside a longer id that was decoded, such as customer-12
for customer-1, is that other person's. The sentences of our own files are made of words, so that a single word there is
nobody's name.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal

from erasable.proof.residue.encodings import Around
from erasable.proof.residue.target import Residue, What
from erasable.proof.residue.vocabulary import Vocabulary
from erasable.proof.residue.wanted import Needle, Needles, Wanted

Surroundings = Literal["text", "sentences", "bytes"]
"""What some bytes are: text of anyone, sentences of our own, or values one after another."""


@dataclass(eq=False)
class Evidence:
    """What is looked for in a folder, what was found, and what explains a hit."""

    wanted: Wanted
    vocabulary: Vocabulary
    ambiguous: set[str] = field(default_factory=set)
    """Long ids that mean something else too."""
    longer: dict[str, set[str]] = field(default_factory=dict)
    """By long id, the decoded ids of others that it is a part of."""
    residues: dict[Residue, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ambiguous |= {user for user in self.wanted.long_ids if self.vocabulary.says(user)}

    def note_ambiguous(self, texts: Collection[str]) -> None:
        """Know that some texts stand for something else than a user."""
        self.ambiguous |= self.wanted.long_ids.intersection(texts)

    def note_longer(self, texts: Collection[str], are_ids: bool) -> None:
        """Know decoded texts, of which some may hold an id that is looked for: ids of others, or longer words."""
        if not self.wanted.long_ids:
            return
        content = "\n".join(texts).encode()
        for span, needle in self.wanted.long_texts.find(content):
            if needle.what == "id" and needle.written == "utf-8":
                before, after = _line_around(content, span)
                if not are_ids:
                    before, after = _word_before(before), _word_after(after)
                if before or after:
                    self.longer.setdefault(needle.text, set()).add(before + needle.text + after)

    def means(self, needle: Needle, around: Around, surroundings: Surroundings) -> bool:
        """Whether a hit of a text, with what stands around it, is what was looked for."""
        if needle.what == "id" and needle.text in self.ambiguous:
            return False
        if surroundings == "sentences" and needle.text.isascii() and needle.text.isalpha():
            return False
        if surroundings != "bytes" and (_continues_word(around[0][-1:]) or _continues_word(around[1][:1])):
            return False
        return not any(_covers(longer, needle.text, around) for longer in self.longer.get(needle.text, ()))


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

    def found(self, place: str, what: What) -> None:
        """Report a residue."""
        self.evidence.residues[Residue(self.name, self.inside + place, what)] = None

    def compare_text(self, text: str, place: str) -> None:
        """Compare a text as a whole with what is looked for."""
        if text in self.wanted.ids:
            self.found(place, "id")
        if text in self.wanted.texts:
            self.found(place, "text")

    def search_texts(self, content: bytes, place: str, surroundings: Surroundings = "text") -> None:
        """Search bytes for long ids and texts; in text a hit must not be a part of a longer word."""
        told: set[tuple[What, str]] = set()
        for span, needle in self.wanted.long_texts.find(content):
            if needle.encoding is None or (needle.what, needle.written) in told:
                continue
            around = needle.encoding.around(content, span.start, span.stop)
            if around is not None and self.evidence.means(needle, around, surroundings):
                told.add((needle.what, needle.written))
                self.found(_where(place, span.start, needle), needle.what)

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


def _line_around(content: bytes, span: slice) -> Around:
    end = content.find(b"\n", span.stop)
    before = content[content.rfind(b"\n", 0, span.start) + 1 : span.start]
    return before.decode(), content[span.stop : end if end >= 0 else len(content)].decode()


def _word_before(text: str) -> str:
    return _word_after(text[::-1])[::-1]


def _word_after(text: str) -> str:
    return "".join(takewhile(_continues_word, text))


def _continues_word(letter: str) -> bool:
    return letter.isalnum() or letter in ("_", "-")


def _covers(longer: str, text: str, around: Around) -> bool:
    """Whether a hit of a text is a part of a longer one that stands there."""
    place = longer.find(text)
    while place >= 0:
        if around[0].endswith(longer[:place]) and around[1].startswith(longer[place + len(text) :]):
            return True
        place = longer.find(text, place + 1)
    return False
