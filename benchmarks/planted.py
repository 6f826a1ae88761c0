"""Plant ids in every place of every kind of file that we write and of the common others: how many does the scan miss?

The ids are of several kinds (addresses, UUIDs, numbers, names with blanks, quotes and letters of other alphabets).
They stand in first, middle and last columns, alone and inside texts, in keys and values. Counted are those that were
missed of those that the scan says it searches, and false alarms: hits of an id that is a part of a planted one which
is held, and of somebody who is nowhere. Ids of less than 8 bytes are searched as fields only; where they stand
elsewhere they are counted apart.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # the kit that the tests share

from kit.planting import KINDS, Plant, foreign_plants, outcome, own_plants, workspace_with_ledger
from reporting import documented_parser, print_table, save

_FEW = 20


def main() -> None:
    options = _options()
    began = time.process_time()
    counts: dict[str, Counter[str]] = {}
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        shop, other = Path(folder) / "shop", Path(folder) / "other"
        held = workspace_with_ledger(shop)
        chosen = [(shop, one) for one in _some(own_plants(shop), options)]
        chosen += [(other, one) for one in _some(foreign_plants(), options)]
        for place, (plant, kind) in chosen:
            came_of_it = outcome(place, plant, KINDS[kind], held)
            count = counts.setdefault(plant.kind, Counter(planted=0, missed=0, false_alarms=0))
            searched = plant.is_searched(KINDS[kind])
            count["planted" if searched else "not searched"] += 1
            count["false_alarms"] += came_of_it.false_alarms
            if searched and not came_of_it.found:
                count["missed"] += 1
                missed.append(f"{plant.kind}, {plant.name}: {kind}")
    total = sum(counts.values(), Counter())
    columns = ("planted", "missed", "false_alarms", "not searched")
    rows = [[kind, *(f"{count[name]:,}" for name in columns)] for kind, count in sorted(counts.items())]
    print_table(("file", *columns), [*rows, ["all", *(f"{total[name]:,}" for name in columns)]])
    print(*missed, sep="\n")
    save(
        "planted",
        {
            "planted": total["planted"],
            "missed": total["missed"],
            "false_alarms": total["false_alarms"],
            "not_searched": total["not searched"],
            "ids": len(KINDS),
            "cpu_seconds": round(time.process_time() - began, 1),
            "seed": options.seed,
            "by_file": {kind: dict(count) for kind, count in sorted(counts.items())},
        },
    )
    sys.exit(bool(missed))


def _some(plants: list[Plant], options: argparse.Namespace) -> list[tuple[Plant, str]]:
    """Return each place with some kinds of ids, drawn by chance; with all of them where a file has few places."""
    chance, places = random.Random(options.seed), Counter(plant.kind for plant in plants)
    kinds = list(KINDS)
    return [
        (plant, kind)
        for plant in plants
        for kind in (kinds if places[plant.kind] < _FEW else chance.sample(kinds, min(options.kinds, len(kinds))))
    ]


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--kinds", type=int, default=2, help="how many kinds of ids are planted in each place")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
