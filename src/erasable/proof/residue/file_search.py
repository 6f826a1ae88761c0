"""Searching one file: what it is, told by its content and not by its name, and how that is searched."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Literal

from erasable.proof.residue.arrow_search import search_array, search_arrow
from erasable.proof.residue.evidence import RAW, File
from erasable.proof.residue.field_names import Role, role_of
from erasable.proof.residue.packed import SHOWING_PIECES, unpacked
from erasable.proof.residue.parquet_search import search_parquet
from erasable.proof.residue.sqlite_pages import DATABASE_MAGIC, JOURNAL_MAGIC, WAL_MAGICS
from erasable.proof.residue.sqlite_search import search_database, search_journal
from erasable.proof.residue.tensor_search import read_header, search_tensors
from erasable.proof.residue.text_search import read_text, search_json, search_plain_text
from erasable.proof.residue.vocabulary import is_own_name

Kind = Literal["parquet", "arrow", "safetensors", "json", "sqlite", "text", "other"]
KINDS: tuple[Kind, ...] = ("parquet", "arrow", "safetensors", "json", "sqlite", "text", "other")
_PARQUET_MAGIC = b"PAR1"
_JOURNAL_ENDINGS = ("-wal", "-journal")
_DEEPEST = 4

Database = Callable[[], bytes]
"""Reads the database that a journal belongs to, which lies beside it; empty if there is none."""


def search_order(start: bytes) -> int:
    """Return when to search a file that begins like this: those that tell who else is there come first."""
    for order, magic in enumerate((_PARQUET_MAGIC, DATABASE_MAGIC)):
        if start.startswith(magic):
            return order
    return 3 if b"\0" in start else 2


def search_name(file: File, name: str, place: str = "the name") -> None:
    """Search the name of a file or a folder."""
    own = is_own_name(name)
    if not own:
        for text in sorted({name, name.split(".")[0], *_named_parts(name)} - {""}):
            file.compare_text(text, place)
    file.evidence.note_numbers([name])
    file.search_texts(name.encode("utf-8", "surrogateescape"), place, "sentences" if own else "text")


def search_file(file: File, content: bytes, name: str, database: Database, depth: int = 0) -> Kind:
    """Search the content of a file of this name and say what it was."""
    if content.startswith(_PARQUET_MAGIC):
        search_parquet(file, content, name)
        return "parquet"
    if search_arrow(file, content, name):
        return "arrow"
    if content.startswith(DATABASE_MAGIC):
        search_database(file, content)
        return "sqlite"
    if content.startswith((*WAL_MAGICS, JOURNAL_MAGIC)) or _is_wiped_journal(name, content):
        search_journal(file, content, database())
        return "sqlite"
    return _search_tensors_or_text(file, content, name) or _search_other(file, content, name, depth)


def _search_tensors_or_text(file: File, content: bytes, name: str) -> Kind | None:
    header = read_header(content)
    if header is not None:
        search_tensors(file, content, header)
        return "safetensors"
    text = read_text(content) if content else None
    if text is None:
        return None
    stem = PurePosixPath(name).name.split(".")[0]
    if search_json(file, text, stem):
        return "json"
    search_plain_text(file, content, text, PurePosixPath(name).name)
    return "text"


def _search_other(file: File, content: bytes, name: str, depth: int) -> Kind:
    for member, inside in unpacked(content, file.name) if depth < _DEEPEST else ():
        part = f"{file.inside}member {member}, " if member else f"{file.inside}unpacked, "
        opened = replace(file, inside=part)
        for name_part in PurePosixPath(member).parts:
            search_name(opened, name_part)
        search_file(opened, inside, member or PurePosixPath(name).stem, lambda: b"", depth + 1)
    search_array(file, content, name)
    if not content.startswith(SHOWING_PIECES):
        file.search_texts(content, RAW, "bytes")
        file.search_values(file.wanted.personal_rows, content, RAW)
        file.search_values(file.wanted.times, content, RAW)
    return "other"


def _is_wiped_journal(name: str, content: bytes) -> bool:
    # SQLite may keep a journal and wipe its header only, so that no magic number is left to tell it by.
    return name.endswith(_JOURNAL_ENDINGS) and content[:8] == bytes(8)


def _named_parts(part: str) -> list[str]:
    """Return the ids that a name gives to a user: user=7, user-7."""
    stem = part.split(".")[0]
    pairs = [stem.partition(sign) for sign in ("=", "-", "_")]
    return [value for key, _, value in pairs if role_of(key) is Role.USER]
