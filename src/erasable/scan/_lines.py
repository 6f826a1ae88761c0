"""Searching files of text: JSON, JSON lines, delimited tables, pages, and other lines such as logs.

A large file is read as texts of whole lines, about a piece each. Delimited lines are parsed by Arrow where they are
regular and have no quotes, and as Python does otherwise.
"""

import codecs
import csv
import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import Literal

import pyarrow as pa
import pyarrow.csv

from erasable.scan import _source
from erasable.scan._columns import Column, ListColumn, Role, TextColumn, role_of
from erasable.scan._evidence import File
from erasable.scan._source import Source, ahead, pieces, whole
from erasable.scan._tables import Read, Table, search_column_names, search_fields, search_parts, search_values
from erasable.scan._texts import Document, large_json, nested_json

Kind = Literal["json", "text"]
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
_BOMS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_CONTROL_BYTES = bytes([*range(9), *range(14, 27), *range(28, 32), 127])
_NAMED = re.compile(r"""([\w-]+)["']?\s*[=:]\s*["']?([^\s,;"'&]+)""")
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\'([^\'\n]*)\'')
_FIRST_CELL = re.compile(r"::|[\t,;|]")
_STYLE, _TAG = re.compile("<style>.*?</style>", re.DOTALL), re.compile("<[^>]*>")
_NAME = re.compile(r"(?:[^\W\d][\w .:()#-]*)?")
_SAMPLE_LINES = 50
_SEPARATORS = ("::", "\t", ",", ";", "|", " ")
_BETWEEN_WORDS = re.compile(r"[\s,;|][^\s,;|]*\Z")
_LONGEST_WORD = 4096

Texts = Callable[[], Iterator[str]]
"""Reads a text from its beginning, as texts of whole lines."""


def search_text(file: File, source: Source, name: str) -> Kind | None:
    """Search a file of text with this name, and return its kind; None if it is no text."""
    codec = codec_of(source)
    if codec is None:
        return None
    small = source.size <= _source.PIECE
    if small:
        text = whole(source).decode(codec)
        found = search_json(file, text, name.split(".")[0]) or _search_page(file, text)
        read: Texts = lambda: iter((text,))  # noqa: E731
    else:
        read = lambda: _texts(source, codec)  # noqa: E731
        found = _search_large_json(file, read, name.split(".")[0])
    if found:
        return found
    _search_plain_text(file, read, name)
    file.search_bytes(source, file.wanted.raw_text, "text")
    return "text"


def codec_of(source: Source) -> str | None:
    """Return how the text of a file is written, None if it is not text."""
    start = source.read(0, 4)
    bom = next((bom for bom in _BOMS if start.startswith(bom)), None)
    fits = {_BOMS[bom]} if bom else {"utf-8", "cp1252"}
    if not source.size:
        return None
    decoders = {codec: codecs.getincrementaldecoder(codec)() for codec in fits}
    ascii_only = {"utf-8", "cp1252"}
    for piece in pieces(source):
        if not bom and len(piece.translate(None, _CONTROL_BYTES)) < len(piece):
            return None
        # Decoders of text without a letter beyond ASCII have nothing to remember.
        if not (fits <= ascii_only and piece.isascii() and not any(one.getstate()[0] for one in decoders.values())):
            fits = {codec for codec in fits if _is_fine(decoders[codec], piece, check=bom is not None)}
        if not fits:
            return None
    fits = {codec for codec in fits if _is_fine(decoders[codec], b"", check=False, final=True)}
    return next((codec for codec in (*_BOMS.values(), "utf-8", "cp1252") if codec in fits), None)


def _is_fine(decoder: codecs.IncrementalDecoder, piece: bytes, check: bool, final: bool = False) -> bool:
    try:
        text = decoder.decode(piece, final)
    except UnicodeDecodeError:
        return False
    return not (check and _CONTROL.search(text))


def _texts(source: Source, codec: str) -> Iterator[str]:
    """Yield the text of a file in parts of whole lines; a line longer than two pieces is cut between words."""
    decoder, rest = codecs.getincrementaldecoder(codec)(), ""
    for piece in pieces(source):
        rest += decoder.decode(piece)
        end = _line_end(rest)
        if not end and len(rest) > 2 * _source.PIECE:
            cut = _BETWEEN_WORDS.search(rest, len(rest) - _LONGEST_WORD)
            end = cut.start() + 1 if cut else len(rest)
        if end:
            yield rest[:end]
            rest = rest[end:]
    rest += decoder.decode(b"", True)
    if rest:
        yield rest


def _line_end(text: str) -> int:
    """Return where the last whole line ends, outside of quotes if there is such a line."""
    last = end = text.rfind("\n") + 1
    if '"' in text:
        for _ in range(_SAMPLE_LINES):
            if text.count('"', 0, end) % 2 == 0:
                return end
            end = text.rfind("\n", 0, end - 1) + 1 if end else 0
        return last
    return end


# JSON and pages


def search_json(file: File, text: str, name: str) -> Kind | None:
    """Search a text if it is JSON or JSON lines; return whether it was."""
    value = nested_json(text)
    if value is not None:
        Document(file, "").search(value, name, _is_own(file))
        return "json"
    if nested_json(text.lstrip().partition("\n")[0]) is None:
        return None
    _search_json_lines(file, text, name, [])
    return "json"


def _search_large_json(file: File, read: Texts, name: str) -> Kind | None:
    first = next(read())
    if first.lstrip()[:1] not in ("{", "["):
        return None
    if nested_json(first.lstrip().partition("\n")[0]) is not None:
        before: list[str] = []
        for text in ahead(read()):
            before = _search_json_lines(file, text, name, before)
        return "json"
    try:
        parts = large_json(read, file.wanted.overlap)
    except ValueError:
        return None
    for value in parts:
        Document(file, "").search(value, name, _is_own(file))
    return "json"


def _search_json_lines(file: File, text: str, name: str, before: Sequence[str]) -> list[str]:
    """Search lines together with the last ones before them; return the last, for the next lines."""
    lines = [*before, *(line for line in text.split("\n") if line.strip())]
    values = [nested_json(line) for line in lines]
    Document(file, "").search([value for value in values if value is not None], name, _is_own(file))
    others = [line for line, value in zip(lines, values, strict=True) if value is None]
    if others:
        search_lines(file, others, name)
        file.search_texts("\n".join(others).encode(), "inside a line")
    return lines[len(lines) - min(file.wanted.overlap, len(lines)) :]


def _is_own(file: File) -> bool:
    return file.vocabulary.documents.fullmatch(file.name) is not None and not file.inside


def _search_page(file: File, text: str) -> Kind | None:
    """Search a page of the vocabulary, if it is one."""
    if not file.vocabulary.pages.fullmatch(file.name) or file.inside:
        return None
    page = text.replace(file.vocabulary.style, "") if file.vocabulary.style else text
    words = html.unescape(_TAG.sub("\n", _STYLE.sub("", page)))
    for part in (words, html.unescape(page)):
        file.search_texts(part.encode(), "inside a text", "sentences")
    return "text"


# Tables and lines


def _search_plain_text(file: File, read: Texts, name: str) -> None:
    """Search a text that is not JSON: a delimited table, or lines."""
    first = next(read())
    lines = _first_lines(first)
    # Truncated JSON is not a table, whatever its commas separate.
    separator = None if first.lstrip()[:1] in ("{", "[") else _separator(lines)
    layout = _Layout(name, separator, _header(_columns(lines, separator)))
    tables: Read = partial(_tables, read, layout)
    if separator is None and layout.names is None:
        for text in read():
            search_lines(file, _lines(text), name)
        search_values(file, tables)
        return
    search_column_names(file, next(iter(tables())))
    search_parts(file, tables)


def search_lines(file: File, lines: Sequence[str], name: str) -> None:
    """Search lines that are not a table: whole, first cells, quoted texts, and what follows a name such as user=."""
    firsts = [_FIRST_CELL.split(line, maxsplit=1)[0] for line in lines]
    search_fields(file, Table("lines", name, [ListColumn(None, [*lines, *firsts])]))
    for line in lines:
        for match in _QUOTED.finditer(line):
            file.compare_text(match[1] or match[2] or "", "a line, quoted")
        for match in _NAMED.finditer(line):
            if role_of(match[1]) is Role.USER:
                file.compare_text(match[2], f"a line, {match[1]}")


@dataclass(frozen=True, eq=False)
class _Layout:
    """How the lines of a table are read; known from the first of them."""

    name: str
    separator: str | None
    names: Sequence[str] | None
    """The names of the columns, if the first line has them."""
    numeric: dict[int, bool] = field(default_factory=dict)

    def name_of(self, place: int) -> str | None:
        """Return the name of a column; one beyond the header has an empty one."""
        return None if self.names is None else self.names[place] if place < len(self.names) else ""


def _tables(read: Texts, layout: _Layout) -> Iterator[Table]:
    for number, text in enumerate(ahead(read()) if layout.separator else read()):
        skipped = number == 0 and layout.names is not None
        columns = _parsed(text, layout, skipped)
        yield Table("", layout.name, columns)


def _parsed(text: str, layout: _Layout, skipped: bool) -> list[Column]:
    arrays = _by_arrow(text, layout.separator, skipped)
    if arrays is not None:
        fast = [TextColumn(layout.name_of(place), array) for place, array in enumerate(arrays)]
        return [column.like_first(layout.numeric, place) for place, column in enumerate(fast)]
    cells = _columns(_lines(text), layout.separator)
    slow = [ListColumn(layout.name_of(place), column[skipped:]) for place, column in enumerate(cells)]
    return [column.like_first(layout.numeric, place) for place, column in enumerate(slow)]


def _by_arrow(text: str, separator: str | None, skipped: bool) -> list[pa.ChunkedArray] | None:
    """Return the columns of regular lines without quotes; None if they are not."""
    if separator is None or len(separator) > 1 or '"' in text or text.count("\r") != text.count("\r\n"):
        return None
    content = text.encode("utf-8", "surrogatepass")
    width = text[: text.find("\n") if "\n" in text else len(text)].count(separator) + 1
    names = [str(place) for place in range(width)]
    reading = pyarrow.csv.ReadOptions(
        use_threads=False, block_size=len(content) + 1, column_names=names, skip_rows_after_names=int(skipped)
    )
    parsing = pyarrow.csv.ParseOptions(delimiter=separator, quote_char=False, double_quote=False, escape_char=False)
    kinds = dict.fromkeys(names, pa.large_string())
    converting = pyarrow.csv.ConvertOptions(column_types=kinds, strings_can_be_null=False, check_utf8=False)
    try:
        table = pyarrow.csv.read_csv(pa.BufferReader(content), reading, parsing, converting)
    except pa.ArrowException:
        return None
    return [table.column(place) for place in range(width)]


def _lines(text: str) -> list[str]:
    return [stripped for line in text.split("\n") if (stripped := line.rstrip("\r")).strip()]


def _first_lines(text: str) -> list[str]:
    """Return the first lines that are not blank."""
    most = _SAMPLE_LINES
    while len(found := _lines("\n".join(text.split("\n", most)[:most]))) < _SAMPLE_LINES and most < len(text):
        most *= 8
    return found[:_SAMPLE_LINES]


def _separator(lines: Sequence[str]) -> str | None:
    """Return the separator of the columns, if all lines have the same number of them."""
    for separator in _SEPARATORS:
        widths = {len(_cells(line, separator)) for line in lines}
        if len(widths) == 1 and min(widths) > 1:
            return separator
    return None


def _cells(line: str, separator: str) -> list[str]:
    if separator == "::" or '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator))
    except csv.Error:
        return []


def _columns(lines: Sequence[str], separator: str | None) -> list[Sequence[str | None]]:
    """Return the cells of each column; shorter lines are filled with None."""
    if separator is None:
        return [lines]
    if separator != "::" and any('"' in line for line in lines):
        try:
            return list(zip_longest(*csv.reader(lines, delimiter=separator)))
        except csv.Error:
            pass
    counts = {line.count(separator) for line in lines}
    if len(counts) > 1:
        return list(zip_longest(*(line.split(separator) for line in lines)))
    cells, width = separator.join(lines).split(separator), min(counts, default=0) + 1
    return [[*cells[place::width]] for place in range(width)]


def _header(columns: Sequence[Sequence[str | None]]) -> list[str] | None:
    """Return the names of the columns, if the first line has them."""
    cells = [(column[0] or "").strip() for column in columns if column]
    roles = {role_of(cell) for cell in cells}
    known = roles != {Role.UNKNOWN} and all(_NAME.fullmatch(cell) for cell in cells)
    return cells if known else None
