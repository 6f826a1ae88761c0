"""Searching a Parquet file: rows, dictionaries, statistics, metadata and names; where it is not packed, its bytes."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from erasable.errors import WorkspaceError
from erasable.proof.residue.columns import ArrayColumn, Column, flattened
from erasable.proof.residue.document_search import Document
from erasable.proof.residue.evidence import RAW, File
from erasable.proof.residue.json_values import nested_json
from erasable.proof.residue.parquet_pages import dictionary_values, first_page
from erasable.proof.residue.table_search import search_column_names, search_fields, search_table
from erasable.proof.residue.tables import Table

_NESTING = frozenset({"list", "element", "item", "array", "bag", "array_element", "key_value", "map"})
_OF_WRITERS = frozenset({"ARROW:schema", "pandas"})


def search_parquet(file: File, content: bytes, name: str) -> None:
    """Search a Parquet file of this name."""
    try:
        # Not pq.read_table: see store/tables.py.
        with pq.ParquetFile(pa.BufferReader(content)) as opened:
            tables = list(tables_of(opened.read(use_threads=False), name))
            parts = [*_statistics(opened, name), *_dictionaries(opened, content, name)]
            metadata = _metadata(opened)
            plain = _without_packed_pages(opened, content)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise WorkspaceError(
            f"{file.name} begins like a Parquet file and can't be read, so nobody knows whom it holds: remove it, or "
            "restore it"
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
    """Return the bytes of a file with zeros for packed pages: what looks like an id there may be a part of another."""
    plain = bytearray(content)
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.compression != "UNCOMPRESSED":
                start = first_page(chunk)
                plain[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    return bytes(plain)


def tables_of(table: Any, name: str) -> Iterator[Table]:  # noqa: ANN401 - Arrow's own
    """Return the columns, and apart from them what lists hold, which is of another length."""
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
            # As an array: unlike the cells of a text file, its values are not rid of the blanks around them.
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
    """Return the name that a column goes by, its values, and whether they come out of lists."""
    parts = path.split(".")
    named = [part for part in parts[1:] if part not in _NESTING]
    return named[-1] if named else parts[0], values, not _NESTING.isdisjoint(parts[1:])


def _metadata(file: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - Arrow's own
    fields = (field.metadata or {} for field in file.schema_arrow)
    pairs = [pair for part in (file.metadata.metadata or {}, *fields) for pair in part.items()]
    return [(key.decode("utf-8", "replace"), value.decode("utf-8", "replace")) for key, value in pairs]


def search_metadata(file: File, key: str, value: str) -> None:
    """Search what a table says of itself."""
    if key in _OF_WRITERS or key.startswith("PARQUET:"):
        file.search_texts(value.encode(), "metadata")
        return
    file.compare_text(key, "metadata")
    file.search_texts(key.encode(), "metadata")
    inside = nested_json(value)
    Document(file, "metadata, ").search(value if inside is None else inside, key, own=False)
