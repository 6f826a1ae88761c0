"""Searching text: JSON, JSON lines, delimited tables, and lines of anything such as logs."""

import codecs
import csv
import html
import re
from collections.abc import Sequence
from itertools import zip_longest

from erasable.data.layout import SEPARATORS, split_fields
from erasable.proof.page_style import STYLE
from erasable.proof.residue.columns import ListColumn
from erasable.proof.residue.document_search import Document
from erasable.proof.residue.evidence import RAW, File
from erasable.proof.residue.field_names import Role, role_of
from erasable.proof.residue.json_values import nested_json
from erasable.proof.residue.table_search import search_column_names, search_fields, search_table, search_values
from erasable.proof.residue.tables import Table
from erasable.proof.residue.vocabulary import is_own_json, is_own_page

_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
_BOMS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_NAMED = re.compile(r"""([\w-]+)["']?\s*[=:]\s*["']?([^\s,;"'&]+)""")
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\'([^\'\n]*)\'')
_FIRST_CELL = re.compile(r"::|[\t,;|]")
_STYLE, _TAG = re.compile("<style>.*?</style>", re.DOTALL), re.compile("<[^>]*>")
_NAME = re.compile(r"(?:[^\W\d][\w .:()#-]*)?")
_SAMPLE_LINES = 50


def read_text(content: bytes) -> str | None:
    """Return what a text file says; nothing if it is no text."""
    bom = next((bom for bom in _BOMS if content.startswith(bom)), None)
    for codec in (_BOMS[bom],) if bom else ("utf-8", "cp1252"):
        try:
            text = content.decode(codec)
        except UnicodeDecodeError:
            continue
        return None if _CONTROL.search(text) else text
    return None


def search_json(file: File, text: str, name: str) -> bool:
    """Search a text if it is JSON, or lines of which each is JSON, and say whether it was."""
    own = is_own_json(file.name) and not file.inside
    whole = nested_json(text)
    if whole is not None:
        Document(file, "").search(whole, name, own)
        return True
    if nested_json(text.lstrip().partition("\n")[0]) is None:
        return False
    lines = [line for line in text.split("\n") if line.strip()]
    values = [nested_json(line) for line in lines]
    Document(file, "").search([value for value in values if value is not None], name, own)
    others = [line for line, value in zip(lines, values, strict=True) if value is None]
    if others:
        search_lines(file, others, name)
        file.search_texts("\n".join(others).encode(), "inside a line")
    return True


def search_plain_text(file: File, content: bytes, text: str, name: str) -> None:
    """Search a text that is not JSON: a delimited table, or lines."""
    if is_own_page(file.name) and not file.inside:
        page = text.replace(STYLE, "")
        for part in (_words_of_page(page), html.unescape(page)):
            file.search_texts(part.encode(), "inside a text", "sentences")
        return
    lines = [stripped for line in text.split("\n") if (stripped := line.rstrip("\r")).strip()]
    # JSON that was cut off is no table, whatever its commas separate.
    separator = None if text.lstrip()[:1] in ("{", "[") else _separator(lines[:_SAMPLE_LINES])
    table = _table(_columns(lines, separator), name)
    if separator is None and all(column.name is None for column in table.columns):
        search_lines(file, lines, name)
        search_values(file, table)
    else:
        search_column_names(file, table)
        search_table(file, table)
    file.search_texts(content, RAW)
    file.search_values(file.wanted.personal_rows, content, RAW)


def _words_of_page(page: str) -> str:
    return html.unescape(_TAG.sub("\n", _STYLE.sub("", page)))


def search_lines(file: File, lines: Sequence[str], name: str) -> None:
    """Search lines that are no table: whole, their first cells, what is quoted, and what follows a name of users."""
    firsts = [_FIRST_CELL.split(line, maxsplit=1)[0] for line in lines]
    search_fields(file, Table("lines", name, [ListColumn(None, [*lines, *firsts])]))
    for line in lines:
        for match in _QUOTED.finditer(line):
            file.compare_text(match[1] or match[2] or "", "a line, quoted")
        for match in _NAMED.finditer(line):
            if role_of(match[1]) is Role.USER:
                file.compare_text(match[2], f"a line, {match[1]}")


def _separator(lines: Sequence[str]) -> str | None:
    """Return what separates the columns, if each line has as many of them."""
    for separator in SEPARATORS:
        widths = {len(split_fields(line, separator, separator != "::")) for line in lines}
        if len(widths) == 1 and min(widths) > 1:
            return separator
    return None


def _columns(lines: Sequence[str], separator: str | None) -> list[Sequence[str | None]]:
    """Return the cells of each column; lines with fewer cells than others have none at their end."""
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


def _table(columns: Sequence[Sequence[str | None]], name: str) -> Table:
    first = [column[0] or "" for column in columns if column]
    if not _is_header(first):
        return Table("", name, [ListColumn(None, column) for column in columns])
    return Table("", name, [ListColumn(cell.strip(), column[1:]) for cell, column in zip(first, columns, strict=True)])


def _is_header(cells: Sequence[str]) -> bool:
    roles = {role_of(cell.strip()) for cell in cells}
    return roles != {Role.UNKNOWN} and all(_NAME.fullmatch(cell.strip()) for cell in cells)
