"""A shop of small communities that share no item, learned with EASE from neighbourhoods in blocks of one community."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from erasable.chain import Config
from erasable.workspace import files
from kit import small_shop

COMMUNITIES, ITEMS, PEOPLE = 8, 5, 6
CONFIG = Config(model="ease", neighbours=ITEMS - 1, holdout=0.0)
_ROW = (ITEMS - 1) * (4 + 4) + 2 * 4  # bytes: neighbours, weights and the border
ONE_COMMUNITY = ITEMS * _ROW


def table(without: Collection[str] = (), own: str | None = None) -> pa.Table:
    """Return purchases, each person's of all items of a community but one; one person may have an item of their own."""
    rows = [
        (f"person-{community}-{person}", f"item-{community}-{item}")
        for community in range(COMMUNITIES)
        for person in range(PEOPLE)
        for item in range(ITEMS)
        if person % ITEMS != item
    ]
    rows += [] if own is None else [(own, "item-2-own")]
    users, items = zip(*(row for row in rows if row[0] not in without), strict=True)
    return pa.table({"user_id": users, "item_id": items})


@contextmanager
def in_blocks(size: int = ONE_COMMUNITY) -> Iterator[None]:
    """Cut blocks of so many bytes: by default of the items of one community."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("erasable.workspace.checkpoints.BLOCK_BYTES", size)
        yield


def learned(path: Path, source: pa.Table) -> Path:
    """Learn into a new workspace."""
    return small_shop.learn_shop(path, source, CONFIG)


def blocks_of(path: Path) -> list[str]:
    """Return the names of the blocks that lie in a workspace, in the order of their numbers."""
    return sorted(file.relative_to(path).as_posix() for file in path.glob("checkpoints/block-*"))


@contextmanager
def blocks_created() -> Iterator[list[str]]:
    """List the names of the blocks that are written while the block runs."""
    found: list[str] = []

    def see(kind: str, path: Path) -> None:
        if kind == "create" and path.name.startswith("block-"):
            found.append(path.name)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "before_change", see)
        yield found
