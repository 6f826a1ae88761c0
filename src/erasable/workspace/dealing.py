"""Dealing rows out to shares of the slots while a source is read: in memory, or on disk once there are many."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from erasable.chain.dataset import no_interactions
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.data.slots import SLOTS, slots_of
from erasable.data.values import ColumnValues
from erasable.errors import DiskFull
from erasable.workspace import files

SHARES = 256
"""How many shares rows are dealt out to; each has a run of slots."""
MOST_IN_MEMORY = 2**28
"""How many bytes of rows are kept in memory before they are written."""

_SLOTS_OF_A_SHARE = SLOTS // SHARES
_COUNTED = 32  # of so many shares one is counted


class Dealing:
    """Rows by share of the slots, in the order in which they came; get one with `dealing`."""

    def __init__(self, seed: int, folder: Path | None, most: int | None = None) -> None:
        self._seed = seed
        self._most = most
        self._folder = folder
        self._kept: list[list[pa.Table]] = [[] for _ in range(SHARES)]
        self._bytes = 0
        self._writers: dict[int, Any] = {}
        self._open = ExitStack()

    def add(self, values: ColumnValues) -> None:
        """Deal out one piece of a source."""
        table = _table(values)
        users = table["user"].combine_chunks().dictionary_encode()
        shares = (slots_of(Ids(users.dictionary), self._seed) // _SLOTS_OF_A_SHARE)[np.asarray(users.indices)]
        order = np.argsort(shares, kind="stable")
        dealt = table.take(pa.array(order))
        bounds = np.searchsorted(shares[order], np.arange(SHARES + 1))
        for share in np.flatnonzero(np.diff(bounds)).tolist():
            self._kept[share].append(dealt.slice(bounds[share], bounds[share + 1] - bounds[share]))
        self._bytes += dealt.nbytes
        if self._folder is not None and self._bytes > MOST_IN_MEMORY:
            self._write(self._folder)

    @property
    def people(self) -> int:
        """How many people there are; once rows were written, estimated from some shares, which a hash filled alike."""
        counted = range(0, SHARES, _COUNTED if self._writers else 1)
        found = sum(len(pc.unique(table["user"])) for table in map(self._rows_of, counted) if table is not None)
        return found * (_COUNTED if self._writers else 1)

    def __iter__(self) -> Iterator[tuple[Interactions, int]]:
        """Yield the rows of each share, by id, and how many repeated pairs were dropped of them."""
        for share, kept in enumerate(self._kept):
            table = self._rows_of(share)
            yield (no_interactions(Ids.of([])), 0) if table is None else _interactions(table, self._most)
            kept.clear()

    def _rows_of(self, share: int) -> pa.Table | None:
        self._open.close()  # so that what was written can be read
        parts = [_read(self._file(share))] if share in self._writers else []
        return pa.concat_tables([*parts, *self._kept[share]]) if parts or self._kept[share] else None

    def _write(self, folder: Path) -> None:
        for place in (folder.parent, folder):
            if not place.is_dir():
                files.make_folder(place)
        try:
            for share, kept in enumerate(self._kept):
                for table in kept:
                    self._writer(share, table.schema).write_table(table)
                kept.clear()
        except OSError as error:
            why = error.strerror or error
            raise DiskFull(f"{folder} can't be written ({why}): free some space, and learn again") from error
        self._bytes = 0

    def _writer(self, share: int, schema: pa.Schema) -> Any:  # noqa: ANN401 - Arrow's own
        if share not in self._writers:
            sink = self._open.enter_context(pa.OSFile(str(self._file(share)), "wb"))
            self._writers[share] = self._open.enter_context(pa.ipc.new_stream(sink, schema))
        return self._writers[share]

    def _file(self, share: int) -> Path:
        return (self._folder or Path()) / f"share-{share:03d}.arrow"

    def close(self) -> None:
        """Remove what was written, and the folder, which a killed process may have left empty."""
        self._open.close()
        if self._folder is not None and self._folder.is_dir():
            for share in self._writers:
                files.remove_file(self._file(share))
            files.remove_folder(self._folder)


@contextmanager
def dealing(seed: int, folder: Path | None, most: int | None = None) -> Iterator[Dealing]:
    """Deal rows out, on disk below this folder if there are many; nothing of it is left there afterwards.

    If `most` is given, rows have weights, and those of one pair add up to at most so much.
    """
    dealt = Dealing(seed, None if folder is None else folder / files.DATA / "dealing", most)
    try:
        yield dealt
    finally:
        dealt.close()


def _table(values: ColumnValues) -> pa.Table:
    columns: dict[str, Any] = {"user": _plain(values.users), "item": _plain(values.items)}
    if values.rating is not None:
        columns["rating"] = pa.array(values.rating)
    if values.time is not None:
        columns["time"] = pa.array(values.time)
    return pa.table(columns)


def _plain(column: Any) -> Any:  # noqa: ANN401 - Arrow's own
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _read(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as stream:
        return stream.read_all()


def _interactions(table: pa.Table, most: int | None) -> tuple[Interactions, int]:
    rating, time = (_numbers(table, name) for name in ("rating", "time"))
    return Interactions.from_columns(table["user"], table["item"], rating, time, most)


def _numbers(table: pa.Table, name: str) -> NDArray[Any] | None:
    return np.asarray(table[name]) if name in table.column_names else None
