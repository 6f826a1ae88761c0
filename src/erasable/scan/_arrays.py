"""Searching files of columns and arrays: Parquet, Arrow (Feather and streams), NumPy, safetensors.

Parquet: rows, dictionaries, statistics, metadata and names, and the bytes that are not compressed. Arrow and NumPy:
decoded tables. Safetensors: metadata, the names of tensors, integers, and bytes.
"""

import io
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from erasable.errors import WorkspaceError
from erasable.scan._columns import ArrayColumn, Column, ListColumn, Role, flattened, role_of
from erasable.scan._evidence import RAW, File
from erasable.scan._tables import Table, compare_numbers, search_column_names, search_fields, search_table
from erasable.scan._target import ArrowColumn
from erasable.scan._texts import Document, Object, nested_json, parse_json

# The dictionary page of a Parquet column, which also holds values that no row refers to. Arrow returns these for text
# columns only, so the page is read here: a header in Thrift's compact protocol, then the values one after another.

_DICTIONARY_PAGE = 2
_TYPE, _PLAIN_SIZE, _PACKED_SIZE, _DICTIONARY_HEADER, _COUNT = 1, 2, 3, 7, 1
_NUMBERS = {"INT32": "<i4", "INT64": "<i8", "FLOAT": "<f4", "DOUBLE": "<f8"}
_CODECS = {"LZ4": "lz4_raw"}


def dictionary_values(content: bytes, chunk: Any, width: int) -> ArrowColumn:  # noqa: ANN401 - Arrow's own
    """Return the values in the dictionary of a column chunk, texts as bytes; empty without a dictionary.

    `width` is the size of fixed-length values. A malformed page raises ValueError.
    """
    try:
        reader = _Reader(content, first_page(chunk))
        header = reader.struct()
        if header.get(_TYPE) != _DICTIONARY_PAGE:
            return pa.array([], pa.binary())
        page = content[reader.place : reader.place + header[_PACKED_SIZE]]
        if chunk.compression != "UNCOMPRESSED":
            codec = pa.Codec(_CODECS.get(chunk.compression, chunk.compression.lower()))
            page = codec.decompress(page, decompressed_size=header[_PLAIN_SIZE], asbytes=True)
        return _values(page, header[_DICTIONARY_HEADER][_COUNT], chunk.physical_type, width)
    except (IndexError, KeyError, TypeError, OSError, pa.ArrowException) as error:
        raise ValueError("the dictionary can't be read") from error


def first_page(chunk: Any) -> int:  # noqa: ANN401 - Arrow's own
    """Return the offset of the first page of a column chunk."""
    return min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)), default=0)


def _values(page: bytes, count: int, kind: str, width: int) -> ArrowColumn:
    if kind in _NUMBERS:
        return pa.array(np.frombuffer(page, _NUMBERS[kind], count))
    if kind != "BYTE_ARRAY":
        return pa.array([page[place * width : (place + 1) * width] for place in range(count)], pa.binary())
    values, place = [], 0
    for _ in range(count):
        start = place + 4
        place = start + int.from_bytes(page[place:start], "little")
        values.append(page[start:place])
    return pa.array(values, pa.binary())


@dataclass
class _Reader:
    """Reads the part of Thrift's compact protocol that page headers use."""

    content: bytes
    place: int

    def struct(self) -> dict[int, Any]:
        """Return the fields of a struct by number."""
        fields: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            step = kind >> 4
            number = number + step if step else self._signed()
            fields[number] = self._value(kind & 15)
        return fields

    def _value(self, kind: int) -> Any:  # noqa: ANN401 - whatever the field holds
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind in (7, 8):
            return self._bytes(8 if kind == 7 else self._varint())
        if kind in (9, 10):
            return self._list()
        if kind == 12:
            return self.struct()
        raise ValueError("a field of unknown type")

    def _list(self) -> list[Any]:
        head = self._byte()
        size = self._varint() if head >> 4 == 15 else head >> 4
        return [self._value(head & 15) for _ in range(size)]

    def _bytes(self, size: int) -> bytes:
        self.place += size
        return self.content[self.place - size : self.place]

    def _byte(self) -> int:
        self.place += 1
        return self.content[self.place - 1]

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7

    def _signed(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)


# Parquet

_NESTING = frozenset({"list", "element", "item", "array", "bag", "array_element", "key_value", "map"})
_OF_WRITERS = frozenset({"ARROW:schema", "pandas"})


def search_parquet(file: File, content: bytes, name: str) -> None:
    """Search a Parquet file with this name."""
    try:
        # Not pq.read_table: a thread of Arrow's pool may release the content while the interpreter shuts down.
        with pq.ParquetFile(pa.BufferReader(content)) as opened:
            tables = list(tables_of(opened.read(use_threads=False), name))
            parts = [*_statistics(opened, name), *_dictionaries(opened, content, name)]
            metadata = _metadata(opened)
            plain = _without_packed_pages(opened, content)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise WorkspaceError(
            f"{file.name} looks like a Parquet file but can't be read, so nobody can tell whose data it holds: "
            "remove it, or restore it"
        ) from error
    for table in tables:
        search_column_names(file, table)
        search_table(file, table)
    for part in parts:
        search_fields(file, part)
    for key, value in metadata:
        search_metadata(file, key, value)
    file.search_texts(plain, RAW)
    file.search_values(file.wanted.personal_rows, plain, RAW)


def _without_packed_pages(file: Any, content: bytes) -> bytes:  # noqa: ANN401 - Arrow's own
    """Return the bytes of a file with compressed pages zeroed, since pieces of other values there look like ids."""
    plain = bytearray(content)
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.compression != "UNCOMPRESSED":
                start = first_page(chunk)
                plain[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    return bytes(plain)


def tables_of(table: Any, name: str) -> Iterator[Table]:  # noqa: ANN401 - Arrow's own
    """Yield the columns as tables, one for each length: what lists hold is longer or shorter than the rows."""
    columns = [one for field in table.column_names for one in flattened(field, table[field])]
    sizes = dict.fromkeys(len(column) for column in columns)
    for size in sizes:
        alike: list[Column] = [column for column in columns if len(column) == size]
        yield Table("", name, alike)


def _statistics(file: Any, name: str) -> Iterator[Table]:  # noqa: ANN401 - Arrow's own
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        columns: list[Column] = []
        for place in range(group.num_columns):
            chunk = group.column(place)
            known = chunk.statistics if chunk.is_stats_set else None
            values = [known.min, known.max] if known is not None and known.has_min_max else []
            # As an array: unlike cells of a text file, its values are not stripped of blanks.
            columns.append(ArrayColumn(*_leaf(chunk.path_in_schema, pa.array(values))))
        yield Table(f"row group {number}", name, columns, part="statistics of")


def _dictionaries(file: Any, content: bytes, name: str) -> Iterator[Table]:  # noqa: ANN401 - Arrow's own
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        columns: list[Column] = [
            ArrayColumn(
                *_leaf(
                    group.column(place).path_in_schema,
                    dictionary_values(content, group.column(place), file.schema.column(place).length),
                )
            )
            for place in range(group.num_columns)
        ]
        yield Table(f"row group {number}", name, columns, part="dictionary of")


def _leaf(path: str, values: Any) -> tuple[str, Any, bool]:  # noqa: ANN401 - Arrow's own, or a list
    """Return the name of a nested column, its values, and whether they come from lists."""
    parts = path.split(".")
    named = [part for part in parts[1:] if part not in _NESTING]
    return named[-1] if named else parts[0], values, not _NESTING.isdisjoint(parts[1:])


def _metadata(file: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - Arrow's own
    fields = (field.metadata or {} for field in file.schema_arrow)
    pairs = [pair for part in (file.metadata.metadata or {}, *fields) for pair in part.items()]
    return [(key.decode("utf-8", "replace"), value.decode("utf-8", "replace")) for key, value in pairs]


def search_metadata(file: File, key: str, value: str) -> None:
    """Search a metadata entry of a table."""
    if key in _OF_WRITERS or key.startswith("PARQUET:"):
        file.search_texts(value.encode(), "metadata")
        return
    file.compare_text(key, "metadata")
    file.search_texts(key.encode(), "metadata")
    inside = nested_json(value)
    Document(file, "metadata, ").search(value if inside is None else inside, key, own=False)


# Arrow and NumPy

_ARROW_FILE, _ARROW_STREAM, _NUMPY = b"ARROW1\0\0", b"\xff\xff\xff\xff", b"\x93NUMPY"


def search_arrow(file: File, content: bytes, name: str) -> bool:
    """Search an Arrow file or stream with this name; return whether it was one."""
    table = _read(content, file.name)
    if table is None:
        return False
    for part in tables_of(table, name):
        search_column_names(file, part)
        search_table(file, part)
    for metadata in (table.schema.metadata, *(field.metadata for field in table.schema)):
        for key, value in (metadata or {}).items():
            search_metadata(file, key.decode("utf-8", "replace"), value.decode("utf-8", "replace"))
    return True


def _read(content: bytes, name: str) -> Any:  # noqa: ANN401 - Arrow's own
    try:
        if content.startswith(_ARROW_FILE):
            return pa.ipc.open_file(pa.BufferReader(content)).read_all()
        if content.startswith(_ARROW_STREAM):
            return pa.ipc.open_stream(pa.BufferReader(content)).read_all()
    except (pa.ArrowException, OSError, ValueError) as error:
        if content.startswith(_ARROW_FILE):
            raise WorkspaceError(
                f"{name} looks like an Arrow file but can't be read, so nobody can tell whose data it holds: "
                "remove it, or restore it"
            ) from error
    return None


def search_array(file: File, content: bytes, name: str) -> None:
    """Search a NumPy file, if it is one: its texts, its fields, and numbers that can be ids."""
    if not content.startswith(_NUMPY):
        return
    with suppress(ValueError, EOFError, OSError):
        array = np.load(io.BytesIO(content), allow_pickle=False)
        names = array.dtype.names
        stem = PurePosixPath(name).stem
        if names:
            search_fields(
                file, Table("", name, [ListColumn(part, _distinct_values(array[part])) for part in names], part="field")
            )
        elif array.dtype.kind in "iu" and role_of(stem) not in (Role.USER, Role.USERS):
            # Short numbers in an array usually count or measure something; long ones may be ids.
            compare_numbers(file, set(map(str, _distinct_values(array))), "the array")
        else:
            search_fields(file, Table("", name, [ListColumn(stem, _distinct_values(array), listed=True)], part="array"))


def _distinct_values(array: NDArray[Any]) -> list[Any]:
    return np.unique(array).tolist() if array.dtype.kind in "iuSU" else []


# Safetensors

_LENGTH = 8
_METADATA = "__metadata__"
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
    """Return the header of a safetensors file, None if it is not one."""
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
    arrays = content[_LENGTH + int.from_bytes(content[:_LENGTH], "little") :]  # sliced once: it may be large
    for name, value in header.pairs:
        if name == _METADATA:
            _search_metadata(file, value)
            continue
        if not file.vocabulary.tensors.fullmatch(name):
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
        own = key == file.vocabulary.metadata
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
