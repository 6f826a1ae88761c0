"""The one door for interactions from outside: it tells the kind of source and hands it to its reader."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from erasable.data.column_values import ColumnValues
from erasable.data.columns import ColumnNames
from erasable.data.delimited import read_delimited
from erasable.data.encoding import encode_ids
from erasable.data.interactions import Interactions
from erasable.data.rating_scale import RatingScale
from erasable.data.source_file import require_file
from erasable.data.tables import PARQUET_MAGIC, is_table, read_parquet, read_sparse, read_table, refuse_source
from erasable.errors import DataRefused

_PARQUET_ENDINGS = (".parquet", ".pq")
_RECOGNISE_ALL = ColumnNames()


@dataclass(frozen=True)
class ReadResult:
    """What was read, notes in plain words on how it was understood, and each user's erasure risk if it was named."""

    interactions: Interactions
    notes: tuple[str, ...]
    risk: Mapping[str, float] | None = None
    rated: bool = True
    """Whether there is a column of ratings; without one every rating is 1."""


def read_interactions(
    source: Any,  # noqa: ANN401 - told apart here
    columns: ColumnNames = _RECOGNISE_ALL,
    scale: RatingScale | None = None,
    fewest_users: int = 2,
) -> ReadResult:
    """Read interactions from a file, a table in memory or a sparse matrix; anything doubtful is refused.

    With a scale, so is a rating outside it; rows are counted without a header.
    """
    values = _read(source, columns)
    name = str(source) if isinstance(source, str | Path) else "the table"
    if scale is not None:
        _check_scale(values, scale, name)
    interactions, dropped = Interactions.from_columns(values.users, values.items, values.rating, values.time)
    if not len(interactions):
        raise DataRefused(f"{name} holds no interaction, only a header: give one interaction a line")
    if len(interactions.users) < fewest_users:
        raise DataRefused(f"{name} holds one user only: give the interactions of two users at least")
    return ReadResult(interactions, _notes(values, dropped), _largest_risks(values), values.rating is not None)


def _read(source: Any, columns: ColumnNames) -> ColumnValues:  # noqa: ANN401 - told apart here
    if isinstance(source, str | Path):
        path = Path(source)
        return read_parquet(path, columns) if _is_parquet(path) else read_delimited(path, columns)
    if sparse.issparse(source):
        return read_sparse(source, columns)
    if is_table(source):
        return read_table(source, columns)
    raise refuse_source(source)


def _is_parquet(path: Path) -> bool:
    if path.suffix.lower() in _PARQUET_ENDINGS:
        return True
    require_file(path)
    with path.open("rb") as stream:
        return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC


def _check_scale(values: ColumnValues, scale: RatingScale, name: str) -> None:
    try:
        scale.check(1.0 if values.rating is None else values.rating)
    except DataRefused as refused:
        raise DataRefused(f"{name}, {refused}") from None


def _largest_risks(values: ColumnValues) -> dict[str, float] | None:
    if values.risk is None:
        return None
    # Over all rows as they came: a pair that is dropped counts too.
    users, user_index = encode_ids(values.users)
    largest = np.full(len(users), -np.inf)
    np.maximum.at(largest, user_index, values.risk)
    return dict(zip(users, largest.tolist(), strict=True))


def _notes(values: ColumnValues, dropped: int) -> tuple[str, ...]:
    notes = [values.recognised]
    if values.rating is None:
        notes.append("no rating column: every rating is 1")
    if dropped:
        notes.append(f"{dropped} repeated (user, item) pairs dropped; the latest of each stays")
    return tuple(notes)
