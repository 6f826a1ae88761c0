"""Searching files of columns and arrays: Parquet, Arrow (Feather and streams), NumPy, safetensors.

Parquet: rows, dictionaries, statistics, metadata and names, and the bytes that are not compressed. Arrow and NumPy:
decoded tables. Safetensors: metadata, the names of tensors, integers, and bytes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from erasable.errors import WorkspaceError
from erasable.scan import _source
from erasable.scan._columns import ArrayColumn, Column, ListColumn, Role, flattened, is_nested, role_of
from erasable.scan._evidence import RAW, File, TextSearch, ValueSearch, search_pieces
from erasable.scan._search import as_bytes, lengths_before
from erasable.scan._source import Opened, Source, ahead, as_file, pieces
from erasable.scan._tables import Table, compare_numbers, search_column_names, search_fields, search_parts
from erasable.scan._target import ArrowColumn
from erasable.scan._texts import Document, Object, nested_json, parse_json

# The dictionary page of a Parquet column, which also holds values that no row refers to. Arrow returns these for text
# columns only, so the page is read here: a header in Thrift's compact protocol, then the values one after another.

_DICTIONARY_PAGE = 2
_TYPE, _PLAIN_SIZE, _PACKED_SIZE, _DICTIONARY_HEADER, _COUNT = 1, 2, 3, 7, 1
_NUMBERS = {"INT32": "<i4", "INT64": "<i8", "FLOAT": "<f4", "DOUBLE": "<f8"}
_CODECS = {"LZ4": "lz4_raw"}
_USUAL_HEADER, _LONGEST_HEADER = 1 << 10, 1 << 20


def dictionary_values(source: Source, chunk: Any, width: int) -> ArrowColumn:  # noqa: ANN401 - Arrow's own
    """Return the values in the dictionary of a column chunk, texts as bytes; empty without a dictionary.

    `width` is the size of fixed-length values. A malformed page raises ValueError.
    """
    if not chunk.total_compressed_size:  # no page at all: a table without rows
        return pa.array([], pa.binary())
    try:
        start = first_page(chunk)
        header, size = _page_header(source, start)
        if header.get(_TYPE) != _DICTIONARY_PAGE:
            return pa.array([], pa.binary())
        page = source.read(start + size, header[_PACKED_SIZE])
        if chunk.compression != "UNCOMPRESSED":
            codec = pa.Codec(_CODECS.get(chunk.compression, chunk.compression.lower()))
            page = codec.decompress(page, decompressed_size=header[_PLAIN_SIZE], asbytes=True)
        return _values(page, header[_DICTIONARY_HEADER][_COUNT], chunk.physical_type, width)
    except (IndexError, KeyError, TypeError, OSError, pa.ArrowException) as error:
        raise ValueError("the dictionary can't be read") from error


def first_page(chunk: Any) -> int:  # noqa: ANN401 - Arrow's own
    """Return the offset of the first page of a column chunk."""
    return min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)), default=0)


def _page_header(source: Source, start: int) -> tuple[dict[int, Any], int]:
    """Return the fields of a page's header, and how many bytes it takes."""
    for most in (_USUAL_HEADER, _LONGEST_HEADER):
        reader = _Reader(source.read(start, most), 0)
        with suppress(IndexError):
            return reader.struct(), reader.place
    raise ValueError("the header of a page can't be read")


def _values(page: bytes, count: int, kind: str, width: int) -> ArrowColumn:
    if kind in _NUMBERS:
        return pa.array(np.frombuffer(page, _NUMBERS[kind], count))
    if kind != "BYTE_ARRAY":
        return pa.array([page[place * width : (place + 1) * width] for place in range(count)], pa.binary())
    bounds = lengths_before(as_bytes(page), count)
    if bounds[-1] > len(page):
        raise ValueError("the dictionary is cut off")
    # Each value ends where the length of the next one begins; the four bytes of the lengths are cut out.
    kept = np.ones(len(page), dtype=bool)
    kept[(bounds[:-1, np.newaxis] + np.arange(4)).ravel()] = False
    kept[bounds[-1] :] = False
    offsets = bounds - 4 * np.arange(count + 1)
    content = np.frombuffer(page, np.uint8)[kept]
    return pa.Array.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(content)])


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


ROWS = 1 << 16
"""How many rows are read at once."""
_BUFFER = 1 << 20
_ALL_AT_ONCE = 1 << 25
"""Larger files are read through a buffer, since a column may be as large as the file."""


def search_parquet(file: File, source: Source, name: str) -> None:
    """Search a Parquet file with this name."""
    try:
        with pq.ParquetFile(
            as_file(source), buffer_size=_BUFFER * (source.size > _ALL_AT_ONCE), pre_buffer=False
        ) as opened:
            rows = _rows_at_once(opened.metadata)
            # Not by threads of Arrow's pool: one may release the content while the interpreter shuts down.
            read: Batches = lambda columns: opened.iter_batches(rows, columns=columns, use_threads=False)  # noqa: E731
            search_batches(file, opened.schema_arrow, read, name)
            for part in (*_statistics(opened, name), *_dictionaries(opened, source, name)):
                search_fields(file, part)
            metadata, plain = _metadata(opened), _unpacked_ranges(opened, source.size)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise WorkspaceError(
            f"{file.name} looks like a Parquet file but can't be read, so nobody can tell whose data it holds: "
            "remove it, or restore it"
        ) from error
    for key, value in metadata:
        search_metadata(file, key, value)
    # Not in packed pages, since pieces of other values there look like ids.
    text, values = TextSearch(file, RAW, binary=True), ValueSearch(file, RAW)
    for start, end in plain:
        text.base = values.base = start
        search_pieces(text, values, file.wanted.raw_text, source, start, end)


def _rows_at_once(metadata: Any) -> int:  # noqa: ANN401 - Arrow's own
    """Return how many rows take about as many bytes as a piece, at most `ROWS`."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    size = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
    return max(1, min(ROWS, _source.PIECE // max(size, 1)))


def _unpacked_ranges(file: Any, size: int) -> Iterator[tuple[int, int]]:  # noqa: ANN401 - Arrow's own
    """Yield the parts of a file between its packed pages."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    chunks = [group.column(place) for group in groups for place in range(group.num_columns)]
    packed = [chunk for chunk in chunks if chunk.compression != "UNCOMPRESSED"]
    last = 0
    for start, end in sorted((first_page(chunk), first_page(chunk) + chunk.total_compressed_size) for chunk in packed):
        if start > last:
            yield last, start
        last = max(last, end)
    yield last, size


# Tables of Arrow, read batch by batch

Batches = Callable[[list[str] | None], Iterable[Any]]
"""Reads the batches of a file from its beginning, with some of the columns or all."""


def search_batches(file: File, schema: Any, read: Batches, name: str) -> None:  # noqa: ANN401 - Arrow's own
    """Search the columns as tables, one for each length: what lists hold is longer or shorter than the rows."""
    empty = _flat(schema.empty_table())
    sizes = _sizes(schema, read, len(empty))
    for size in dict.fromkeys(sizes):
        places = [place for place, one in enumerate(sizes) if one == size]
        search_column_names(file, Table("", name, [empty[place] for place in places]))
        search_parts(file, lambda places=places: _tables(read, places, name))  # type: ignore[misc]


def _tables(read: Batches, places: Sequence[int], name: str) -> Iterator[Table]:
    # The next batch is decoded while one is searched.
    for batch in ahead(iter(read(None))):
        columns = _flat(batch)
        yield Table("", name, [columns[place] for place in places])


def _flat(batch: Any) -> list[ArrayColumn]:  # noqa: ANN401 - Arrow's own
    return [one for place, field in enumerate(batch.schema.names) for one in flattened(field, batch.column(place))]


def _sizes(schema: Any, read: Batches, columns: int) -> list[int]:  # noqa: ANN401 - Arrow's own
    """Return how many values each column has in all; without nested columns, all have as many."""
    if not any(is_nested(field.type) for field in schema):
        return [0] * columns
    sizes = [0] * columns
    for batch in read(None):
        sizes = [size + len(column) for size, column in zip(sizes, _flat(batch), strict=True)]
    return sizes


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


def _dictionaries(file: Any, source: Source, name: str) -> Iterator[Table]:  # noqa: ANN401 - Arrow's own
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        columns: list[Column] = [
            ArrayColumn(
                *_leaf(
                    group.column(place).path_in_schema,
                    dictionary_values(source, group.column(place), file.schema.column(place).length),
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


def search_arrow(file: File, source: Source, name: str) -> bool:
    """Search an Arrow file or stream with this name; return whether it was one."""
    start = source.read(0, len(_ARROW_FILE))
    is_file = start == _ARROW_FILE
    if not is_file and not start.startswith(_ARROW_STREAM):
        return False
    try:
        schema = _open(source, is_file).schema
        read: Batches = lambda columns: _batches(source, is_file)  # noqa: E731
        for _ in read(None) if not is_file else ():
            pass  # what only begins like a stream is none
        search_batches(file, schema, read, name)
    except (pa.ArrowException, OSError, ValueError) as error:
        if not is_file:
            return False
        raise WorkspaceError(
            f"{file.name} looks like an Arrow file but can't be read, so nobody can tell whose data it holds: "
            "remove it, or restore it"
        ) from error
    for metadata in (schema.metadata, *(field.metadata for field in schema)):
        for key, value in (metadata or {}).items():
            search_metadata(file, key.decode("utf-8", "replace"), value.decode("utf-8", "replace"))
    return True


def _open(source: Source, is_file: bool) -> Any:  # noqa: ANN401 - Arrow's own
    opened = as_file(source)
    return pa.ipc.open_file(opened) if is_file else pa.ipc.open_stream(opened)


def _batches(source: Source, is_file: bool) -> Iterator[Any]:
    reader = _open(source, is_file)
    batches = (reader.get_batch(place) for place in range(reader.num_record_batches)) if is_file else reader
    for batch in batches:
        yield from (batch.slice(start, ROWS) for start in range(0, max(1, batch.num_rows), ROWS))


def search_array(file: File, source: Source, name: str) -> None:
    """Search a NumPy file, if it is one: its texts, its fields, and numbers that can be ids."""
    if source.read(0, len(_NUMPY)) != _NUMPY:
        return
    with suppress(ValueError, EOFError, OSError):
        opened = Opened(source)
        kind = _array_type(opened)
        start = opened.tell()
        step = max(1, _source.PIECE // max(1, kind.itemsize)) * kind.itemsize
        for place in range(start, source.size, step):
            part = source.read(place, min(step, source.size - place))
            _search_elements(file, np.frombuffer(part, kind, len(part) // max(1, kind.itemsize)), name)


def _array_type(opened: Opened) -> np.dtype[Any]:
    version = np.lib.format.read_magic(opened)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    kind = read(opened)[2]
    if kind.hasobject or not kind.itemsize:
        raise ValueError("an array of objects")
    return kind


def _search_elements(file: File, array: NDArray[Any], name: str) -> None:
    names, stem = array.dtype.names, PurePosixPath(name).stem
    if names:
        search_fields(
            file, Table("", name, [ListColumn(part, _distinct_values(array[part])) for part in names], part="field")
        )
    elif array.dtype.kind in "iu":
        _search_integers(file, array, stem, "array", "the array")
    else:
        search_fields(file, Table("", name, [ListColumn(stem, _distinct_values(array), listed=True)], part="array"))


def _search_integers(file: File, array: NDArray[Any], name: str, part: str, place: str) -> None:
    """Compare integers: all of them under a name of users, else long ones; short ones count or measure something."""
    native = array.astype(array.dtype.newbyteorder("="), copy=False).ravel()
    column = ArrayColumn(name, pa.array(native), listed=True)
    if role_of(name) in (Role.USER, Role.USERS):
        search_fields(file, Table("", name, [column], part=part))
    elif file.wanted.long_numbers and (part == "array" or role_of(name) is not Role.MEASURE):
        compare_numbers(file, column.with_number(file.wanted.number_values), place)


def _distinct_values(array: NDArray[Any]) -> list[Any]:
    return np.unique(array).tolist() if array.dtype.kind in "iuSU" else []


# Safetensors

_LENGTH = 8
_METADATA = "__metadata__"
_MOST_HEADER = 100_000_000  # as the format says
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


def read_header(source: Source) -> Object | None:
    """Return the header of a safetensors file, None if it is not one."""
    start = source.read(0, _LENGTH + 1)
    size = int.from_bytes(start[:_LENGTH], "little")
    if start[_LENGTH:] != b"{" or not 2 <= size <= min(source.size - _LENGTH, _MOST_HEADER):
        return None
    try:
        header = parse_json(source.read(_LENGTH, size).decode())
    except ValueError:
        return None
    known = isinstance(header, Object) and all(isinstance(value, Object) for _, value in header.pairs)
    return header if known else None


def search_tensors(file: File, source: Source, header: Object) -> None:
    """Search a safetensors file with this header."""
    start = _LENGTH + int.from_bytes(source.read(0, _LENGTH), "little")
    for name, value in header.pairs:
        if name == _METADATA:
            _search_metadata(file, value)
            continue
        if not file.vocabulary.tensors.fullmatch(name):
            _search_name(file, name)
        _search_tensor(file, name, dict(value.pairs), source, start)
    text, values = TextSearch(file, "arrays, raw bytes", "bytes"), ValueSearch(file, RAW, start)
    search_pieces(text, values, file.wanted.raw, source, start)
    text.finish()


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


def _search_tensor(file: File, name: str, facts: dict[str, Any], source: Source, start: int) -> None:
    kind, place = _INTEGERS.get(str(facts.get("dtype"))), facts.get("data_offsets")
    if kind is None or not isinstance(place, list) or len(place) != 2:
        return
    if role_of(name) in (Role.USER, Role.USERS) or file.wanted.long_numbers:
        for part in pieces(source, start + place[0], start + place[1]):
            _search_integers(file, np.frombuffer(part, kind), name, "tensor", "a tensor")
