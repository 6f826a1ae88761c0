"""A workbench on made-up ratings with planted groups; for the tests of experiments."""

from pathlib import Path

from erasable.data import ColumnNames, SyntheticSettings, synthesise
from erasable.paper._workbench import DataSource, Workbench


def small_bench(folder: Path, threads: int = 1) -> Workbench:
    """Write 60 users of four planted groups to a file, and return a workbench that reads it."""
    rows = synthesise(SyntheticSettings(users=60, items=40, groups=4, per_user=10, ratings=True)).interactions
    users, items = rows.users.texts(), rows.items.texts()
    columns = zip(rows.user_index.tolist(), rows.item_index.tolist(), rows.rating.tolist(), strict=True)
    lines = ["user,item,rating", *(f"{users[user]},{items[item]},{rating:g}" for user, item, rating in columns)]
    file = folder / "small.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Workbench(DataSource(file, ColumnNames()), threads)
