"""Ids that differ only in how they are written: most likely the same person, whom an exact comparison misses."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import pyarrow.compute as pc

from erasable.data.ids import ArrowColumn, Ids

_TAG = re.compile(r"\+[^@]*(?=@[^@]*\Z)")
# No normal form joins these, though they look the same.
_STROKED = {"o\u0338": "ø", "O\u0338": "Ø", "l\u0335": "ł", "d\u0335": "đ"}
_OVERLAYS = ("\u0335", "\u0338")
_ZEROS = re.compile(r"\A0+(?=[0-9]+\Z)")

_UNIMPORTANT: dict[str, Callable[[str], str]] = {
    "surrounding blanks": str.strip,
    "Unicode form": lambda text: _stroked(unicodedata.normalize("NFKC", text)),
    "upper and lower case": lambda text: unicodedata.normalize("NFKC", text.casefold()),
    "a +tag": lambda text: _TAG.sub("", text) if "+" in text else text,
    "leading zeros": lambda text: _ZEROS.sub("", text) if text[:1] == "0" else text,
}
"""What an id may differ in and be near, and how that is taken away; in this order."""


@dataclass(frozen=True)
class NearIds:
    """How many ids are held that differ from one that is not, and only in what."""

    held: int = 0
    differ_in: tuple[str, ...] = ()

    def sentence(self) -> str:
        """Say so, without naming anybody."""
        return (
            f"nothing under this id; ids that differ only in {_listed(self.differ_in)} are held: {self.held:,}. "
            "Find out which of them is meant, and give it exactly as in the data"
        )


NONE_NEAR = NearIds()


def near_ids(ids: Iterable[Ids], text: str) -> NearIds:
    """Return which ids are written a little differently than a text; none if the text itself is among them.

    >>> near_ids([Ids.of(["Ann@x.org", "bob"])], "ann+shop@X.org")
    NearIds(held=1, differ_in=('upper and lower case', 'a +tag'))
    """
    parts = list(ids)
    if any(text in part for part in parts):
        return NONE_NEAR
    plain = _plain(text)
    found = list(dict.fromkeys(one for part in parts for one in _candidates(part.array, plain) if _plain(one) == plain))
    differences = {name for one in found for name in _differences(one, text)}
    return NearIds(len(found), tuple(name for name in _UNIMPORTANT if name in differences))


def _plain(text: str, less: Iterable[str] = _UNIMPORTANT) -> str:
    """Return a text without anything unimportant, or without some of it."""
    for name in less:
        text = _UNIMPORTANT[name](text)
    return text


def _stroked(text: str) -> str:
    """Return a text with one letter for each that has a stroke laid over it."""
    if any(overlay in text for overlay in _OVERLAYS):
        for written, letter in _STROKED.items():
            text = text.replace(written, letter)
    return text


def _candidates(array: ArrowColumn, plain: str) -> list[str]:
    """Return the ids that may become this plain text: all that are not ASCII, of the others those that hold it."""
    ascii_only = pc.string_is_ascii(array)
    found: list[str] = array.filter(pc.invert(ascii_only)).to_pylist()
    if plain.isascii():
        near, lower = ascii_only, pc.ascii_lower(array)
        # A tag stands between the name and the rest of an address.
        for part in plain.rpartition("@"):
            near = pc.and_(near, pc.match_substring(lower, pattern=part))
        found += array.filter(near).to_pylist()
    return found


def _differences(one: str, other: str) -> Sequence[str]:
    """Return in what two ids differ that are the same otherwise: the fewest that explain it."""
    choices = (names for size in range(1, len(_UNIMPORTANT) + 1) for names in combinations(_UNIMPORTANT, size))
    return next(names for names in choices if _plain(one, names) == _plain(other, names))


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
