"""Flip one random bit of a workspace 10,000 times: each must be noticed before anything is loaded.

The workspace has learned, forgotten two people and verified, so that every kind of file is there. A file is drawn
first and then a byte in it, so that small files are hit as often as large ones. What looks is the first step of
`erasable verify`, before any data or parameters are decoded. Every tenth flip is made in a certificate that lies
outside the workspace, as it was handed out.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # the kit that the tests share

from erasable.operations import DiskHome, verify
from kit import small_shop
from kit.tampering import files_of, flipped, notices
from reporting import documented_parser, print_table, save


def main() -> None:
    options = _options()
    chance = random.Random(options.seed)
    noticed, missed = Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        shop = small_shop.learn_shop(Path(folder) / "shop", small_shop.table())
        for position in (1, 2):
            handed_out = Path(small_shop.forget_in(shop, small_shop.member_of(shop, position)).certificates[0])
        verify(DiskHome(shop))
        outside = Path(shutil.copy(handed_out, Path(folder) / "certificate.json"))
        for number in range(options.flips):
            path = outside if number % 10 == 9 else chance.choice(files_of(shop))
            kind = "certificate outside" if path == outside else _kind(path.relative_to(shop))
            with flipped(path, chance):
                if notices(shop, outside):
                    noticed[kind] += 1
                else:
                    missed.append(kind)
    print_table(("file", "flips noticed"), [[kind, f"{count:,}"] for kind, count in sorted(noticed.items())])
    print(f"missed: {len(missed)} of {options.flips:,}")
    save("tampering", {"flips": options.flips, "seed": options.seed, "noticed": noticed, "missed": len(missed)})
    sys.exit(bool(missed))


def _kind(path: Path) -> str:
    return f"{path.parts[0]}/*{path.suffix}" if len(path.parts) > 1 else f"{path.stem.split('-')[0]}{path.suffix}"


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
