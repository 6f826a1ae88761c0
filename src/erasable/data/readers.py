"""The one door for interactions from outside: it tells the kind of source and hands it to its reader."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from erasable.data.bad_rows import OnBadRow, RowRules
from erasable.data.column_values import ColumnValues, Taken
from erasable.data.columns import ColumnNames, column_option
from erasable.data.delimited import read_delimited
from erasable.data.encoding import encode_ids
from erasable.data.interactions import Interactions
from erasable.data.rating_scale import RatingScale
from erasable.data.source_file import require_file
from erasable.data.tables import PARQUET_MAGIC, is_table, read_parquet, read_sparse, read_table, refuse_source
from erasable.errors import DataRefused

_PARQUET_ENDINGS = (".parquet", ".pq")
_RECOGNISE_ALL = ColumnNames()
NOTHING_TAKEN = Taken({})


@dataclass(frozen=True)
class ReadResult:
    """What was read, notes in plain words on how it was understood, and each user's erasure risk if it was named."""

    interactions: Interactions
    notes: tuple[str, ...]
    risk: Mapping[str, float] | None = None
    rated: bool = True
    """Whether there is a column of ratings; without one every rating is 1."""
    taken: Taken = NOTHING_TAKEN
    rows: int = 0
    """How many rows the source has, the bad ones too."""
    repeated: int = 0
    """How many rows went because a later one has the same user and item."""
    bad_rows: int = 0
    """How many rows were left out because they can't be used."""


def read_interactions(
    source: Any,  # noqa: ANN401 - told apart here
    columns: ColumnNames = _RECOGNISE_ALL,
    scale: RatingScale | None = None,
    fewest_users: int = 2,
    on_bad_row: OnBadRow = "refuse",
) -> ReadResult:
    """Read interactions from a file, a table in memory or a sparse matrix; anything doubtful is refused.

    With a scale, so is a rating outside it; rows are counted without a header. Rows that can't be used are counted
    and refused together, or left out.
    """
    values = _read(source, columns, RowRules(scale, on_bad_row))
    name = str(source) if isinstance(source, str | Path) else "the table"
    if scale is not None and values.rating is None and not scale.contains(1.0):
        raise DataRefused(
            f"{name}: without ratings each is 1, outside the scale {scale}: name them (", column_option("rating"), ")"
        )
    interactions, repeated = Interactions.from_columns(values.users, values.items, values.rating, values.time)
    if not len(interactions):
        held = "no row that can be used" if values.bad_rows else "no interaction, only a header"
        raise DataRefused(f"{name} holds {held}: give one interaction a line")
    if len(interactions.users) < fewest_users:
        raise DataRefused(f"{name} holds one user only: give the interactions of two users at least")
    return ReadResult(
        interactions,
        _notes(values, repeated),
        _largest_risks(values),
        values.rating is not None,
        values.taken,
        len(values.users) + values.bad_rows,
        repeated,
        values.bad_rows,
    )


def _read(source: Any, columns: ColumnNames, rules: RowRules) -> ColumnValues:  # noqa: ANN401 - told apart here
    if isinstance(source, str | Path):
        path = Path(source)
        return read_parquet(path, columns, rules) if _is_parquet(path) else read_delimited(path, columns, rules)
    if sparse.issparse(source):
        return read_sparse(source, columns, rules)
    if is_table(source):
        return read_table(source, columns, rules)
    raise refuse_source(source)


def _is_parquet(path: Path) -> bool:
    if path.suffix.lower() in _PARQUET_ENDINGS:
        return True
    require_file(path)
    with path.open("rb") as stream:
        return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC


def _largest_risks(values: ColumnValues) -> dict[str, float] | None:
    if values.risk is None:
        return None
    # Over all rows as they came: a pair that is dropped counts too.
    users, user_index = encode_ids(values.users)
    largest = np.full(len(users), -np.inf)
    np.maximum.at(largest, user_index, values.risk)
    return dict(zip(users, largest.tolist(), strict=True))


def _notes(values: ColumnValues, repeated: int) -> tuple[str, ...]:
    notes = [values.recognised]
    if values.rating is None:
        notes.append("no rating column: every rating is 1")
    if repeated:
        notes.append(f"{repeated} repeated (user, item) pairs dropped; the latest of each stays")
    if values.bad_rows:
        notes.append(f"{values.bad_rows} bad rows left out")
    return tuple(notes)
