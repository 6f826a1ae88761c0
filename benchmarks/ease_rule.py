"""How EASE's default was chosen: how many neighbours, and what keeps weights small, on validation rows of five sets.

    scripts/bench ease_rule --data DIR [--sets ml-1m ...]

DIR is that of `scripts/bench rivals`, and so are the splits: the validation rows are a tenth of the training rows of
seed 0, and no test row is looked at. Compared are a constant λ and the rule D_ii = a + n_i · m / (m + a), each with 200
neighbours, then numbers of neighbours with the rule that was chosen. Whatever is found is kept, so a run that was
stopped goes on from there.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from unittest.mock import patch

from erasable.models import _ease_columns as ease_columns
from erasable.models._columns_kernel import Penalty
from erasable.models._ease import EASE
from reporting import documented_parser, print_table, save
from rivals import RIVALS, SETS, Bench, Rival, Settings
from rivals_fitted import Scorer, Split, ours, timed

NAME = "ease-rule"
CONSTANTS, BASES, NUMBERS = (30, 100, 300), (20, 30, 40, 60), (50, 100, 300)
CHOSEN = {"neighbours": 200, "base": 40}
TRIED: Sequence[Settings] = (
    *({"neighbours": 200, "constant": value} for value in CONSTANTS),
    *({"neighbours": 200, "base": value} for value in BASES),
    *({"neighbours": number, "base": 40} for number in NUMBERS),
)


def main() -> None:
    options = _options()
    RIVALS[NAME] = Rival(partial(timed, _fitted), TRIED)
    benches = [Bench(name, options) for name in options.sets]
    found = [[bench.validated(NAME, settings) for bench in benches] for settings in TRIED]
    best = [max(line[place] for line in found) for place in range(len(benches))]
    rows = [
        [_words(settings), *(f"{value:.4f}" for value in line), _shortfall(line, best)]
        for settings, line in zip(TRIED, found, strict=True)
    ]
    header = ("NDCG@10, validation rows", *(SETS[name] for name in options.sets), "below the best, at most")
    print_table(header, rows)
    print(f"written to {save('ease_rule', {'header': header, 'rows': rows, 'chosen': _words(CHOSEN)})}")


def _fitted(split: Split, neighbours: int, base: float | None = None, constant: float | None = None) -> Scorer:
    rule = Penalty(constant, 0.0, 1.0) if constant is not None else Penalty(base or 0.0, 1.0, base or 0.0)
    with patch.object(ease_columns, "USUAL_PENALTY", rule):
        return ours(EASE, split, neighbours=neighbours)


def _shortfall(line: Sequence[float], best: Sequence[float]) -> str:
    return f"{max(1 - value / most for value, most in zip(line, best, strict=True)):.1%}"


def _words(settings: Settings) -> str:
    rule = f"λ = {settings['constant']}" if "constant" in settings else f"a = {settings['base']}"
    return f"K = {settings['neighbours']}, {rule}"


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--threads", type=int, default=2)
    return argparse.Namespace(**vars(parser.parse_args()), again=[], kept=False)


if __name__ == "__main__":
    main()
