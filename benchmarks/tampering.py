"""Flip one random bit of a document 10,000 times: each must be noticed before anything is loaded.

The documents are those of a workspace that has learned, forgotten three people, sealed the documents of two and
verified, a certificate and a receipt as they were handed out, a do-not-learn list and its key; and the same of every
released version, from the fixtures of the tests. A document is drawn first and then a byte in it, so that small files
are hit as often as large ones. What looks is the first step of `erasable verify`, before any data or parameters are
decoded. Left out are a live queue and the sentence of a receipt that says what it is for: nothing seals them.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # the kit that the tests share

from erasable.operations import DiskStorage, verify
from erasable.operations.do_not_learn import default_places
from erasable.workspace import _versions as saving
from kit import small_shop
from kit.released import watched_documents
from kit.tampering import Watched, flipped, watched_list, watched_proof, watched_workspace
from reporting import documented_parser, print_table, save


def main() -> None:
    options = _options()
    chance = random.Random(options.seed)
    noticed, missed = Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        here, released = _documents_here(Path(folder)), watched_documents(Path(folder))
        for number in range(options.flips):
            document = chance.choice(released if number % 2 else here)
            with flipped(document.path, chance, document.told):
                if document.notices():
                    noticed[document.kind] += 1
                else:
                    missed.append(document.kind)
    print_table(("document", "flips noticed"), [[kind, f"{count:,}"] for kind, count in sorted(noticed.items())])
    print(f"missed: {len(missed)} of {options.flips:,}")
    save("tampering", {"flips": options.flips, "seed": options.seed, "noticed": noticed, "missed": len(missed)})
    sys.exit(bool(missed))


def _documents_here(folder: Path) -> list[Watched]:
    """Return every document of a workspace of this version."""
    shop = small_shop.learn_shop(folder / "shop", small_shop.table())
    saving.OPEN_CERTIFICATES = 2  # so that some are sealed
    for position in (1, 2, 1):
        done = small_shop.forget_in(shop, small_shop.member_of(shop, position))
    verify(DiskStorage(shop))
    certificate = Path(shutil.copy(done.certificates[0], folder / "certificate.json"))
    receipt = folder / "receipt.json"
    receipt.write_bytes(done.receipts[0].encoded())
    outside = [*watched_proof(shop, certificate, receipt), *watched_list(default_places(shop))]
    return watched_workspace(shop, certificate) + outside


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
