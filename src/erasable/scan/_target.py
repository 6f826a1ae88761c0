"""What a scan looks for: people, ids in the data, vocabulary, residues; and how a text may be encoded as bytes."""

import base64
import html
import json
import quopri
import re
import urllib.parse
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

# Arrow's annotations change between versions; it checks types at run time.
ArrowColumn: TypeAlias = Any
Texts: TypeAlias = Any
"""Distinct texts, as an Arrow array or any sequence; an array is faster for many."""
Floats = NDArray[np.float64]
Values = NDArray[Any] | Sequence[float]
What = Literal["id", "interactions", "personal row", "text"]
_NEVER = re.compile("(?!)")
_WORD = re.compile(r"[\w-]+")


@dataclass(frozen=True, eq=False)
class Rows:
    """A person's interactions, searched as values where no user is named.

    Parameters
    ----------
    items : sequence of str
        The item of each interaction.
    ratings : array or sequence of float
        Its rating; compared in single precision.
    times : array or sequence of float, optional
        Its time in seconds; NaN if unknown.

    Examples
    --------
    >>> erased = Rows(items=["tea", "milk", "salt"], ratings=[5, 3, 4])
    """

    items: Sequence[str]
    ratings: Values
    times: Values | None = None


@dataclass(frozen=True, eq=False)
class Target:
    """What to search for about one person.

    Parameters
    ----------
    user : str
        The person's id, exactly as written in the data.
    items : tuple of str, optional
        The items whose interactions were erased, if the person stays; everything if not given.
    rows : Rows, optional
        The erased interactions, if still known.
    personal : tuple of array
        The person's rows of the model before the erasure.
    texts : tuple of str
        Other texts that must be gone, such as fingerprints of removed checkpoints.
    own_items : tuple of str
        Items that nobody else has, which are gone with the person.

    Examples
    --------
    >>> Target("customer-1", rows=Rows(["tea", "milk", "salt"], [5, 3, 4])).user
    'customer-1'
    """

    user: str
    items: tuple[str, ...] | None = None
    rows: Rows | None = None
    personal: tuple[NDArray[Any], ...] = ()
    texts: tuple[str, ...] = ()
    own_items: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Held:
    """The ids in the data; only these explain a hit inside something longer.

    Parameters
    ----------
    users, items : iterable of texts
        Lists of ids, each an Arrow array or a sequence of str. They are gone through when there is a hit to explain, so
        an object that reads them anew each time need not hold them all.
    declared : tuple of str
        Names of issuers, which don't count as whole values in the files of `Vocabulary.declaring`.

    Examples
    --------
    >>> Held(users=(["customer-12"],), items=(["tea", "milk"],)).declared
    ()
    """

    users: Iterable[Texts] = ()
    items: Iterable[Texts] = ()
    declared: tuple[str, ...] = ()


NOTHING_HELD = Held()


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words, fields and files of the program that runs the scan; they name nobody.

    Everything is empty by default: then no file is known, and each is searched like any other. Patterns must match a
    whole name, or a whole path below the folder, with slashes.

    Parameters
    ----------
    wording : str
        The words in the program's files besides sentences, one text a line.
    fields : frozenset of str
        Fields of its documents. They hold no user id, unless they are named like a user.
    free_form : frozenset of str
        Those fields that hold other names, but none of a person: libraries, files, measures.
    names : pattern
        Names of its files and folders.
    documents : pattern
        Paths of its JSON documents, whose fields are known.
    places : pattern
        Texts in them that name a file outside the folder.
    pages : pattern
        Paths of its HTML pages, which consist of sentences.
    style : str
        Their style sheet.
    declaring : pattern
        Paths of documents and pages that show the names in `Held.declared`.
    databases : pattern
        Paths of its SQLite files.
    schema : frozenset of str
        Names in their schema.
    people_tables : frozenset of str
        Their tables that hold ids of people.
    free_text_columns : frozenset of str
        The columns of their other tables that hold text typed in.
    made_up : mapping of str to pattern
        Generated values in their other tables, by the last word of the column's name: ids, digests, times.
    tensors : pattern
        Names of its tensors.
    metadata : str
        The metadata key of its tensor files.
    item_tables : pattern
        Paths of its tables of items that somebody declared. Their first column holds the items' ids; what the others
        hold it does not know, so each value in them is compared with ids.
    item_separator : str
        What stands between several values in one of their cells.
    item_numbers : mapping of str to str
        How 8 bytes in their cells are read as a number, by what follows the last colon of the column's name.

    Examples
    --------
    >>> Vocabulary(wording="orders of today").says("today")
    True
    """

    wording: str = ""
    fields: frozenset[str] = frozenset()
    free_form: frozenset[str] = frozenset()
    names: re.Pattern[str] = _NEVER
    documents: re.Pattern[str] = _NEVER
    places: re.Pattern[str] = _NEVER
    pages: re.Pattern[str] = _NEVER
    style: str = ""
    declaring: re.Pattern[str] = _NEVER
    databases: re.Pattern[str] = _NEVER
    schema: frozenset[str] = frozenset()
    people_tables: frozenset[str] = frozenset()
    free_text_columns: frozenset[str] = frozenset()
    made_up: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    tensors: re.Pattern[str] = _NEVER
    metadata: str = ""
    item_tables: re.Pattern[str] = _NEVER
    item_separator: str = "|"
    item_numbers: Mapping[str, str] = field(default_factory=dict)

    def saying(self, texts: Iterable[str]) -> "Vocabulary":
        """Return the vocabulary with more texts in its wording."""
        return replace(self, wording="\n".join([self.wording, *texts]))

    def words(self) -> frozenset[str]:
        """Return the words of the wording."""
        return frozenset(_WORD.findall(self.wording))

    def says(self, text: str) -> bool:
        """Whether a text is in the wording, and not part of a longer word."""
        return re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", self.wording) is not None


@dataclass(frozen=True)
class Residue:
    """One place that still holds data of a person.

    Attributes
    ----------
    file : str
        The path below the folder, with slashes.
    place : str
        Where in the file, in words.
    what : str
        "id", "interactions", "personal row" or "text".
    of : tuple of str
        The searched ids, items or texts found there; empty if only values were found.

    Examples
    --------
    >>> Residue("orders.csv", "column customer_id", "id")
    Residue(file='orders.csv', place='column customer_id', what='id')
    """

    file: str
    place: str
    what: What
    of: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Scan:
    """What was searched, how, and what was found.

    Attributes
    ----------
    files : int
        How many files were searched.
    bytes : int
        How many bytes they have.
    kinds : dict of str to int
        The number of files read as parquet, arrow, safetensors, json, sqlite, text and other.
    searched : tuple of str
        What was searched and how, in sentences free of personal data.
    residues : tuple of Residue
        What was found.
    clean : bool
        Whether nothing was found.

    Examples
    --------
    >>> Scan(files=1, bytes=20, kinds={"text": 1}, searched=(), residues=()).clean
    True
    """

    files: int
    bytes: int
    kinds: dict[str, int]
    searched: tuple[str, ...]
    residues: tuple[Residue, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.residues


SHORTEST = 8
"""The fewest bytes that are not found by chance."""
_REACH = 128
_MOST_ZEROS = 3
_BASE64 = (b"+/", b"-_")
_SAFE_IN_HEADERS = frozenset(b"-!*+/0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_SAFE_IN_BODIES = frozenset(range(32, 127)) - {ord("=")}
_ENTITY = re.compile(rb"&(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
_PRINTABLE = re.compile(rb"=[0-9A-Fa-f]{2}|=\r?\n")
_BROKEN_LINE = re.compile(rb"^([A-Za-z0-9+/_-]{60,76})\r?\n(?=[A-Za-z0-9+/_=-]+\r?$)", re.MULTILINE)
_SHORTEST_LINE, _LONGEST_LINE = 60, 77
_LINE_FEED = 10
_RUN_BEFORE, _RUN_AFTER = re.compile(rb"[A-Za-z0-9+/_-]*\Z"), re.compile(rb"[A-Za-z0-9+/_-]*")
_LEAD = (0, 2, 3)  # how many base64 characters depend on the bytes before, at each alignment

Around = tuple[str, str]
"""The text before and after a hit."""


@dataclass(frozen=True)
class Encoding:
    """A way to write a text, and how to read the text around a hit."""

    name: str
    around: Callable[[bytes, int, int], Around | None]
    """Returns None if it turns out not to be a hit."""


def spellings(text: str) -> dict[bytes, Encoding]:
    """Return a text in every encoding that takes at least 8 bytes; of equal ones the first counts.

    These are UTF-8, UTF-16 and UTF-32 in both byte orders, Latin-1 and CP1252 if possible, JSON escapes, percent
    encoding, XML escapes, between quotes, quoted-printable, hexadecimal in both cases, and base64 and base64url at the
    three alignments. A UUID is also written as its 16 bytes, and a text of at least 16 hexadecimal digits as the bytes
    they stand for. A decimal number is also a 64-bit integer in both byte orders if at most 3 of its 8 bytes are zero,
    so from about 2³²: smaller ones occur in any array of counts.
    """
    found: dict[bytes, Encoding] = {}
    if len(text.encode()) < SHORTEST:
        return found
    for encoding, content in _all_spellings(text):
        if len(content) >= SHORTEST:
            found.setdefault(content, encoding)
    return found


def decodings(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield a text with its escapes decoded, and with broken lines joined.

    Any letter may be escaped or not, so no list of spellings can have them all. Binary content yields nothing.
    """
    if b"\0" in content:
        return
    if _ENTITY.search(content):
        yield "XML", html.unescape(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    if _PRINTABLE.search(content):
        yield "quoted-printable", quopri.decodestring(content)
    if _has_broken_lines(content):
        yield "base64", _BROKEN_LINE.sub(rb"\1", content)


def may_be_escaped(content: NDArray[np.uint8]) -> bool:
    """Whether cells may hold escapes or broken lines; those without &, = and line feeds do not."""
    whole = content.tobytes()
    if b"\n" in whole:
        return True
    return bool((b"&" in whole and _ENTITY.search(whole)) or (b"=" in whole and _PRINTABLE.search(whole)))


def _has_broken_lines(content: bytes) -> bool:
    """Whether `_BROKEN_LINE` matches; the pattern itself is slow, and lines of that length are rare."""
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) == _LINE_FEED) if content else np.empty(0, np.int64)
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    fits = (ends - starts >= _SHORTEST_LINE) & (ends - starts <= _LONGEST_LINE)
    lines = zip(starts[fits].tolist(), ends[fits].tolist(), strict=True)
    return any(_BROKEN_LINE.match(content, start) is not None for start, _ in lines)


def _all_spellings(text: str) -> Iterator[tuple[Encoding, bytes]]:
    is_plain = _NEVER_ESCAPED.fullmatch(text) is not None
    for codec, unit in _CODECS.items():
        if is_plain and codec in _LIKE_ASCII:
            continue
        try:
            yield Encoding(codec, _codec_around(codec, unit)), text.encode(codec)
        except UnicodeEncodeError:
            continue
    for name, around, written in _escaped(text):
        yield Encoding(name, around), written.encode()
    plain = text.encode()
    for digits in (plain.hex(), plain.hex().upper()):
        yield Encoding("hexadecimal", _hexadecimal_around), digits.encode()
    for alphabet, alignment in product(_BASE64, range(3)):
        yield Encoding("base64", _base64_around(plain, alignment)), _base64_middle(plain, alphabet, alignment)
    for name, content in _binary(text):
        yield Encoding(name, lambda content, start, end: ("", "")), content


_NEVER_ESCAPED = re.compile("[A-Za-z0-9-]+")
_LIKE_ASCII = ("latin-1", "cp1252")
_CODECS = {"utf-8": 1, "utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4, "latin-1": 1, "cp1252": 1}


def _escaped(text: str) -> Iterator[tuple[str, Callable[[bytes, int, int], Around], str]]:
    every = "".join(f"\\u{unit:04x}" for unit in _utf16_units(text))
    for written in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], every, _upper_digits(every)):
        yield "JSON escapes", _json_around, written
    if _NEVER_ESCAPED.fullmatch(text):  # all that follow are as in UTF-8; a thousand people have 20,000 of them
        return
    percent = [urllib.parse.quote(text, safe=""), urllib.parse.quote(text), urllib.parse.quote_plus(text)]
    for written in (*percent, *map(_lower_percent, percent)):
        yield "percent encoding", _percent_around, written
    for written in dict.fromkeys(_quoted(text)):
        yield "quotes", _plain_around, written
    for name, written in _quoted_printable(text):
        yield name, _printable_around, written
    for written in dict.fromkeys(_for_xml(text)):
        yield "XML escapes", _xml_around, written
        yield "XML escapes", _xml_around, written.encode("ascii", "xmlcharrefreplace").decode()


def _quoted(text: str) -> Iterator[str]:
    """Yield a text as it is written between quotes: with quotes doubled, or escaped by a backslash."""
    slashed = text.replace("\\", "\\\\")
    yield text.replace('"', '""')
    yield text.replace("'", "''")
    for one in (text, slashed):
        yield one.replace("'", "\\'")
        yield one.replace("'", "\\'").replace('"', '\\"')


def _quoted_printable(text: str) -> Iterator[tuple[str, str]]:
    """Yield a text as written in the header and in the body of a mail."""
    plain = text.encode()
    for safe in (_SAFE_IN_HEADERS, _SAFE_IN_BODIES):
        written = "".join(chr(byte) if byte in safe else f"={byte:02X}" for byte in plain)
        yield "quoted-printable", written.replace("=20", "_") if safe is _SAFE_IN_HEADERS else written


def _for_xml(text: str) -> Iterator[str]:
    yield text.replace("&", "&amp;")
    plain = html.escape(text, quote=False)
    for double, one in product(('"', "&quot;", "&#34;"), ("'", "&apos;", "&#39;", "&#x27;")):
        yield plain.replace('"', double).replace("'", one)


def _binary(text: str) -> Iterator[tuple[str, bytes]]:
    if re.fullmatch("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text):
        yield "UUID", uuid.UUID(text).bytes
        yield "UUID", uuid.UUID(text).bytes_le
    if re.fullmatch("([0-9a-f]{2}){8,}|([0-9A-F]{2}){8,}", text) and len(set(bytes.fromhex(text))) > _MOST_ZEROS:
        yield "bytes of the digits", bytes.fromhex(text)
    if re.fullmatch("-?[1-9][0-9]{7,18}", text) and abs(int(text)) < 2**63:
        number = int(text).to_bytes(8, "little", signed=True)
        if number.count(0) <= _MOST_ZEROS:
            yield "64-bit integer", number
            yield "64-bit integer", number[::-1]


def _base64_middle(content: bytes, alphabet: bytes, alignment: int) -> bytes:
    """Return the characters that do not depend on the bytes before or after the content."""
    written = base64.b64encode(b"\0" * alignment + content, alphabet)
    return written[_LEAD[alignment] : (alignment + len(content)) * 8 // 6]


def _codec_around(codec: str, unit: int) -> Callable[[bytes, int, int], Around]:
    def around(content: bytes, start: int, end: int) -> Around:
        reach = min(_REACH, start // unit) * unit
        before, after = content[start - reach : start], content[end : end + _REACH * unit]
        return before.decode(codec, "replace"), after.decode(codec, "replace")

    return around


def _text_around(unescape: Callable[[str], str]) -> Callable[[bytes, int, int], Around]:
    def around(content: bytes, start: int, end: int) -> Around:
        before, after = content[max(0, start - 6 * _REACH) : start], content[end : end + 6 * _REACH]
        return unescape(before.decode("utf-8", "replace")), unescape(after.decode("utf-8", "replace"))

    return around


def _from_json(text: str) -> str:
    return re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)


def _from_printable(text: str) -> str:
    return re.sub("=([0-9A-F]{2})", lambda match: chr(int(match[1], 16)), text)


_json_around = _text_around(_from_json)
_plain_around = _text_around(str)
_printable_around = _text_around(_from_printable)
_percent_around = _text_around(urllib.parse.unquote)
_xml_around = _text_around(html.unescape)


def _hexadecimal_around(content: bytes, start: int, end: int) -> Around:
    before = re.search(rb"(?:[0-9a-fA-F]{2})*\Z", content[max(0, start - 2 * _REACH) : start])
    after = re.match(rb"(?:[0-9a-fA-F]{2})*", content[end : end + 2 * _REACH])
    return _from_digits(before), _from_digits(after)


def _from_digits(match: re.Match[bytes] | None) -> str:
    return bytes.fromhex(match[0].decode()).decode("utf-8", "replace") if match else ""


def _base64_around(plain: bytes, alignment: int) -> Callable[[bytes, int, int], Around | None]:
    lead = _LEAD[alignment]

    def around(content: bytes, start: int, end: int) -> Around | None:
        before = _matched(_RUN_BEFORE, content[max(0, start - 2 * _REACH) : start])
        # Whole groups of four characters, counted from where a group starts by the alignment.
        before = before[(len(before) - lead) % 4 :] if len(before) >= lead else b""
        decoded = _from_base64(before + content[start:end] + _matched(_RUN_AFTER, content[end : end + _REACH]))
        first = (len(before) - lead) // 4 * 3 + alignment
        last = first + len(plain)
        # The characters at both ends share bits with their neighbours, and are compared only here.
        if decoded[first:last] != plain:
            return None
        return decoded[:first].decode("utf-8", "replace"), decoded[last:].decode("utf-8", "replace")

    return around


def _from_base64(run: bytes) -> bytes:
    """Decode the whole bytes in a run of characters of either alphabet."""
    whole = run[:-1] if len(run) % 4 == 1 else run
    return base64.b64decode(whole.replace(b"-", b"+").replace(b"_", b"/") + b"=" * (-len(whole) % 4))


def _matched(pattern: re.Pattern[bytes], content: bytes) -> bytes:
    match = pattern.search(content)
    return match[0] if match else b""


def _utf16_units(text: str) -> Iterator[int]:
    content = text.encode("utf-16-be")
    for place in range(0, len(content), 2):
        yield int.from_bytes(content[place : place + 2], "big")


def _upper_digits(text: str) -> str:
    return re.sub(r"(?<=\\u)[0-9a-f]{4}", lambda match: match[0].upper(), text)


def _lower_percent(text: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), text)
