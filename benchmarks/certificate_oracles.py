"""Does a certificate tell whom it is about? An attack over 100 people, for each way to learn.

From a made-up shop of 300 people 100 are erased one by one, chosen at random; in one way only some interactions of
each. The attacker has all certificates in their order and looks at everything in them, and at what changes from one to
the next, for anything that goes with how much a person had, their group, whether they were an anchor, or how many items
they alone had, better than it goes with the same secrets shuffled among the people. Then the same with what
certificates of 0.1 said as well (`cost_ratio` to two digits, `stages_rerun`): that must be found.
"""

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # the kit that the tests share

from kit.certificate_oracles import SHUFFLES, STRIKING, WAYS, Finding, erase_one_by_one, findings, with_planted
from reporting import documented_parser, print_table, save


def main() -> None:
    options = _options()
    ways = {way: _attacked(way, options) for way in WAYS}
    rows = [[way, _most(told), _most(planted)] for way, (told, planted) in ways.items()]
    print_table(("way", "told by certificates", "told by those of 0.1"), rows)
    result = {
        way: {"told": list(map(asdict, told)), "planted": list(map(asdict, planted))}
        for way, (told, planted) in ways.items()
    }
    save("certificate_oracles", {**vars(options), "shuffles": SHUFFLES, "striking": STRIKING, "ways": result})
    if any(told for told, _ in ways.values()) or not any(planted for _, planted in ways.values()):
        sys.exit("a certificate tells of the person, or the attack finds nothing at all")


def _attacked(way: str, options: argparse.Namespace) -> tuple[list[Finding], list[Finding]]:
    with tempfile.TemporaryDirectory() as folder:
        erasures = erase_one_by_one(way, Path(folder) / "shop", options.people, options.candidates)
    return findings(erasures), findings(erasures, with_planted)


def _most(found: list[Finding]) -> str:
    if not found:
        return "nothing"
    return f"{found[0].bits:.1f} bits of {found[0].secret} ({found[0].leaf})"


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--candidates", type=int, default=300)
    return parser.parse_args()


if __name__ == "__main__":
    main()
