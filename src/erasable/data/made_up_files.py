"""Writing made-up data in pieces: to one file, Parquet or CSV, or to a folder of Parquet files."""

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from erasable.data._placing import made_folder, on_disk, put_in_place
from erasable.data.made_up import MadeUpSettings, Piece, made_up_pieces
from erasable.data.sources import URL_MADE_A_PATH
from erasable.errors import Refused, WrongUse, option
from erasable.progress import SILENT, Advance, Reporter

MOST_FILES = 10_000
_FEWEST_DIGITS = 4
_GZIP_LEVEL = 3  # a higher one takes several times as long to save a tenth of the bytes
_DICTIONARY_BYTES = 2**28  # more than a piece needs, so that no id is written out row by row
_TYPES = {"user_id": pa.string(), "item_id": pa.string(), "rating": pa.int8(), "timestamp": pa.int64()}

_Write = Callable[[pa.Table], None]
_Open = Callable[[Path, MadeUpSettings], AbstractContextManager[_Write]]


@dataclass(frozen=True)
class MadeUp:
    """Made-up data on disk."""

    path: str
    files: int
    users: int
    items: int
    """How many items there are; nobody may have those that are least popular."""
    interactions: int
    """How many rows were written."""
    clusters: int
    seed: int
    bytes: int


def write_made_up(
    settings: MadeUpSettings, path: Path, files: int | None = None, reporter: Reporter = SILENT
) -> MadeUp:
    """Make up data and write it to a path that does not exist yet; if anything fails nothing is left behind.

    The ending of the name says what is written. With a number of files it is a folder of that many Parquet files,
    which together have the rows of one file, in the same order.
    """
    if URL_MADE_A_PATH.match(str(path)):
        raise WrongUse(f"{path} is in an object store, where nothing is written: give a path, and copy the file there")
    opened = _way_of_writing(path) if files is None else _parquet
    people_of = {"": (0, settings.users)} if files is None else _shared_out(settings, files)
    if path.exists() or path.is_symlink():
        raise Refused(f"{path} is there already: move it away, or give another name")
    rows = size = 0
    with on_disk(path, "check the path and its permissions"), made_folder(path.parent), put_in_place(path) as partial:
        if files is not None:
            partial.mkdir()
        with reporter.track("making up people", settings.users) as advance:
            for name, (first, end) in people_of.items():
                file = partial / name
                with opened(file, settings) as write:
                    rows += _write_pieces(settings, made_up_pieces(settings, first, end), write, advance)
                size += file.stat().st_size
    return MadeUp(str(path), len(people_of), settings.users, settings.items, rows, settings.kinds, settings.seed, size)


def _write_pieces(settings: MadeUpSettings, pieces: Iterator[Piece], write: _Write, advance: Advance) -> int:
    rows = 0
    for piece in pieces:
        write(_table(settings, piece))
        rows += len(piece.item_index)
        advance(piece.people)
    return rows


def _way_of_writing(path: Path) -> _Open:
    name = path.name.lower()
    for ending, opened in {".parquet": _parquet, ".pq": _parquet, ".csv": _csv, ".csv.gz": _csv_gz}.items():
        if name.endswith(ending):
            return opened
    raise WrongUse(
        f"{path} does not say what to write: end it with .parquet, .csv or .csv.gz, or give ",
        option("files", 8),
        " for a folder of Parquet files",
    )


def _shared_out(settings: MadeUpSettings, files: int) -> dict[str, tuple[int, int]]:
    """Return which people each file of a folder has, by its name."""
    most = min(MOST_FILES, settings.users)
    if not 1 <= files <= most:
        raise WrongUse(f"{files:,} files can't be written: give 1 to {most:,} with ", option("files"))
    edges = (settings.users * number // files for number in range(files + 1))
    return {f"part-{number:04d}.parquet": people for number, people in enumerate(pairwise(edges))}


@contextmanager
def _parquet(file: Path, settings: MadeUpSettings) -> Iterator[_Write]:
    numbered = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([(one.name, numbered if one.type == pa.string() else one.type) for one in _schema(settings)])
    with (
        _new_file(file) as stream,
        parquet.ParquetWriter(
            stream,
            schema,
            use_dictionary=[name for name in schema.names if name != "timestamp"],
            column_encoding={"timestamp": "DELTA_BINARY_PACKED"} if settings.times else None,
            dictionary_pagesize_limit=_DICTIONARY_BYTES,
            store_schema=False,  # the ids are read as plain texts, as from any other file
        ) as writer,
    ):
        yield lambda table: writer.write_table(table, row_group_size=max(1, len(table)))


@contextmanager
def _csv(file: Path, settings: MadeUpSettings) -> Iterator[_Write]:
    with _new_file(file) as stream:
        yield _to_csv(stream, settings)


@contextmanager
def _csv_gz(file: Path, settings: MadeUpSettings) -> Iterator[_Write]:
    # Without name and time of the file: the same settings give the same bytes.
    with _new_file(file) as raw, gzip.GzipFile("", "wb", _GZIP_LEVEL, raw, mtime=0) as stream:
        yield _to_csv(stream, settings)


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file, whose bytes are on the disk when the block ends."""
    with path.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _to_csv(stream: IO[bytes] | gzip.GzipFile, settings: MadeUpSettings) -> _Write:
    schema = _schema(settings)
    stream.write(",".join(schema.names).encode() + b"\n")
    options = arrow_csv.WriteOptions(include_header=False, quoting_style="none")
    return lambda table: arrow_csv.write_csv(table.cast(schema), stream, options)


def _schema(settings: MadeUpSettings) -> pa.Schema:
    left_out = {"rating": settings.ratings, "timestamp": settings.times}
    return pa.schema([(name, kind) for name, kind in _TYPES.items() if left_out.get(name, True)])


def _table(settings: MadeUpSettings, piece: Piece) -> pa.Table:
    """Return a piece as a table; each id stands in it once, and its rows have numbers."""
    people = np.arange(piece.first, piece.first + piece.people)
    had = np.zeros(settings.items, dtype=bool)
    had[piece.item_index] = True
    place = np.cumsum(had, dtype=np.int32) - np.int32(1)
    columns = {
        "user_id": _ids("u", people, settings.users, piece.user_index),
        "item_id": _ids("i", np.flatnonzero(had), settings.items, place[piece.item_index]),
        "rating": piece.rating,
        "timestamp": piece.time,
    }
    return pa.table({name: column for name, column in columns.items() if column is not None})


def _ids(letter: str, numbers: NDArray[np.int64], count: int, of_rows: NDArray[np.int32]) -> pa.DictionaryArray:
    """Return the ids of rows: a letter and a number from 1, padded with zeros so that texts sort as numbers do."""
    digits = max(_FEWEST_DIGITS, len(str(count)))
    texts = np.empty((len(numbers), 1 + digits), dtype=np.uint8)
    texts[:, 0] = ord(letter)
    left = numbers + 1
    for place in range(digits, 0, -1):
        left, digit = np.divmod(left, 10)
        texts[:, place] = digit + ord("0")
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * np.int32(1 + digits)
    ids = pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(texts))
    return pa.DictionaryArray.from_arrays(pa.array(of_rows), ids)
