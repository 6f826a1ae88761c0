"""Searching a safetensors file: its metadata, the names of its tensors, whole numbers, and its bytes."""

from typing import Any

import numpy as np

from erasable.proof.residue.columns import ListColumn
from erasable.proof.residue.document_search import Document
from erasable.proof.residue.evidence import File
from erasable.proof.residue.field_names import Role, role_of
from erasable.proof.residue.json_values import Object, nested_json, parse_json
from erasable.proof.residue.table_search import compare_numbers, search_fields
from erasable.proof.residue.tables import Table
from erasable.proof.residue.vocabulary import is_own_tensor

_LENGTH = 8
_METADATA = "__metadata__"
_OWN_METADATA = "erasable"
_INTEGERS = {
    "I8": "<i1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
    "U8": "<u1",
    "U16": "<u2",
    "U32": "<u4",
    "U64": "<u8",
}


def read_header(content: bytes) -> Object | None:
    """Return the header of a safetensors file; nothing if this is none."""
    size = int.from_bytes(content[:_LENGTH], "little")
    if content[_LENGTH : _LENGTH + 1] != b"{" or not 2 <= size <= len(content) - _LENGTH:
        return None
    try:
        header = parse_json(content[_LENGTH : _LENGTH + size].decode())
    except ValueError:
        return None
    known = isinstance(header, Object) and all(isinstance(value, Object) for _, value in header.pairs)
    return header if known else None


def search_tensors(file: File, content: bytes, header: Object) -> None:
    """Search a safetensors file with this header."""
    arrays = content[_LENGTH + int.from_bytes(content[:_LENGTH], "little") :]  # once: it may be large
    for name, value in header.pairs:
        if name == _METADATA:
            _search_metadata(file, value)
            continue
        if not is_own_tensor(name):
            _search_name(file, name)
        _search_integers(file, name, dict(value.pairs), arrays)
    file.search_texts(arrays, "arrays, raw bytes", "bytes")
    file.search_values(file.wanted.personal_rows, content, "raw bytes")
    file.search_values(file.wanted.times, content, "raw bytes")


def _search_name(file: File, name: str) -> None:
    for part in sorted({name, *name.split(".")}):
        if role_of(part) is Role.UNKNOWN:
            file.compare_text(part, "the name of a tensor")
    file.search_texts(name.encode(), "the name of a tensor")


def _search_metadata(file: File, metadata: Object) -> None:
    for key, value in metadata.pairs:
        own = key == _OWN_METADATA
        if not own:
            file.compare_text(key, "metadata")
            file.search_texts(key.encode(), "metadata")
        inside = nested_json(value) if isinstance(value, str) else value
        Document(file, "metadata, ").search(value if inside is None else inside, key, own)


def _search_integers(file: File, name: str, facts: dict[str, Any], arrays: bytes) -> None:
    kind, place = _INTEGERS.get(str(facts.get("dtype"))), facts.get("data_offsets")
    of_users = role_of(name) in (Role.USER, Role.USERS)
    if kind is None or not (of_users or file.wanted.long_numbers) or not isinstance(place, list) or len(place) != 2:
        return
    numbers = np.unique(np.frombuffer(arrays[place[0] : place[1]], kind)).tolist()
    if of_users:
        search_fields(file, Table("", name, [ListColumn(name, numbers, listed=True)], part="tensor"))
    elif role_of(name) is not Role.MEASURE:
        compare_numbers(file, set(map(str, numbers)), "a tensor")
