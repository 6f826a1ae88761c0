"""Write examples/ratings.csv: what 400 made-up people of a bookshop have rated, by taste."""

import csv
from pathlib import Path

from erasable.data import SyntheticSettings, synthesise

FILE = Path(__file__).parent.parent / "examples" / "ratings.csv"
GENRES = ("cooking", "crime", "fantasy", "history", "poetry", "travel")
SETTINGS = SyntheticSettings(users=400, items=120, groups=len(GENRES), per_user=12, ratings=True, seed=3)


def main() -> None:
    """Write the table anew, the same each time."""
    data = synthesise(SETTINGS)
    rows = data.interactions
    names: dict[int, str] = {}
    for number, block in enumerate(data.block_of_item):
        place = sum(other.startswith(GENRES[block]) for other in names.values()) + 1
        names[number] = f"{GENRES[block]}-{place:02d}"
    with FILE.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("user_id", "item_id", "rating"))
        for user, item, rating in zip(rows.user_index, rows.item_index, rows.rating, strict=True):
            table.writerow((user + 1, names[int(item)], int(rating)))


if __name__ == "__main__":
    main()
