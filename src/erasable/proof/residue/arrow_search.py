"""Searching Arrow's own files (Feather) and streams, and NumPy's arrays, as decoded tables."""

import io
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.errors import WorkspaceError
from erasable.proof.residue.columns import ListColumn
from erasable.proof.residue.evidence import File
from erasable.proof.residue.field_names import Role, role_of
from erasable.proof.residue.parquet_search import search_metadata, tables_of
from erasable.proof.residue.table_search import compare_numbers, search_column_names, search_fields, search_table
from erasable.proof.residue.tables import Table

_ARROW_FILE, _ARROW_STREAM, _NUMPY = b"ARROW1\0\0", b"\xff\xff\xff\xff", b"\x93NUMPY"


def search_arrow(file: File, content: bytes, name: str) -> bool:
    """Search an Arrow file or stream of this name, and say whether it was one."""
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
                f"{name} begins like an Arrow file and can't be read, so nobody knows whom it holds: remove it, or "
                "restore it"
            ) from error
    return None


def search_array(file: File, content: bytes, name: str) -> None:
    """Search an array as NumPy saves it, if this is one: its texts, its fields, and numbers that can be somebody's."""
    if not content.startswith(_NUMPY):
        return
    with suppress(ValueError, EOFError, OSError):
        array = np.load(io.BytesIO(content), allow_pickle=False)
        names = array.dtype.names
        stem = PurePosixPath(name).stem
        if names:
            search_fields(
                file, Table("", name, [ListColumn(part, _values(array[part])) for part in names], part="field")
            )
        elif array.dtype.kind in "iu" and role_of(stem) not in (Role.USER, Role.USERS):
            # A number in an array counts or measures something, unless it is a long one.
            compare_numbers(file, set(map(str, _values(array))), "the array")
        else:
            search_fields(file, Table("", name, [ListColumn(stem, _values(array), listed=True)], part="array"))


def _values(array: NDArray[Any]) -> list[Any]:
    return np.unique(array).tolist() if array.dtype.kind in "iuSU" else []
