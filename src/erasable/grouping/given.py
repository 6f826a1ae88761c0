"""Groups that were decided elsewhere: a CSV with user_id, group and position."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from erasable.errors import DataRefused, option

_COLUMNS = {"user_id": pa.string(), "position": pa.int64()}


def read_positions(path: Path) -> dict[str, int]:
    """Read each user's position in the chain."""
    try:
        table = pacsv.read_csv(
            path, convert_options=pacsv.ConvertOptions(column_types=_COLUMNS, include_columns=list(_COLUMNS))
        )
    except FileNotFoundError:
        missing = f"{path}: there is no such file: give "
        raise DataRefused(missing, option("groups_from"), " a CSV or a workspace") from None
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError):
        raise DataRefused(f"{path}: not a CSV with the columns user_id, group, position: write it so") from None
    users: list[Any] = table["user_id"].to_pylist()
    positions: list[Any] = table["position"].to_pylist()
    if not users or any(position is None or position < 0 for position in positions):
        raise DataRefused(f"{path}: every user needs a position: give each a whole number from 0")
    if len(set(users)) != len(users):
        raise DataRefused(f"{path}: a user stands in it twice: give each user one position")
    return dict(zip(users, positions, strict=True))
