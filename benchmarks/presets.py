"""How the presets were chosen: settings of each model on validation rows of sparse and of dense data.

    scripts/bench presets --data DIR [--models als ...] [--sets ciao ...]

DIR holds ml-1m, ml-100k, ciao and book-crossing (of which 5-core rows are taken). A tenth of the rows is the test set
of seed 0 and is set aside first; the validation rows are a tenth of the rest, and no test row is looked at. A preset is
worth having where one choice is better on every sparse set. What is found is kept, so a
run that was stopped goes on from there.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from erasable.chain import Config
from erasable.operations import Inputs, Work
from erasable.operations._validation import Validation
from erasable.operations.prepare import read_rows
from reporting import RESULTS, documented_parser, print_table, save

SETS: dict[str, dict[str, Any]] = {
    "ml-100k": {},
    "ml-1m": {},
    "ciao": {},
    "book-crossing": {"min_interactions": 5},
}
TRIED: dict[str, list[dict[str, Any]]] = {
    "item-knn": [
        *({"shrinkage": value} for value in (50.0, 0.0, 5.0, 10.0, 20.0, 100.0)),
        *({"shrinkage": 10.0, "neighbours": value} for value in (50, 1000)),
    ],
    "als": [
        *({"regularisation": value} for value in (20.0, 5.0, 10.0, 50.0)),
        *({"regularisation": 20.0, "factors": value} for value in (32, 128)),
    ],
    "ease": [{}, *({"neighbours": value} for value in (50, 300, 500, 1000)), {"regularisation": 100.0}],
}
"""The first of each model is its default."""


def main() -> None:
    options = _options()
    kept = RESULTS / "presets.json"
    found: dict[str, dict[str, float]] = json.loads(kept.read_text())["found"] if kept.exists() else {}
    for name in options.sets:
        validation = None
        for model in options.models:
            for settings in TRIED[model]:
                scores = found.setdefault(f"{model} {_words(settings)}", {})
                if name not in scores:
                    validation = validation or _validation(name, options)
                    config = Config(model=model, holdout=0.1, **SETS[name], **settings)
                    scores[name] = validation.score(config)
                    save("presets", {"found": found})
    rows = [[key, *(f"{scores[name]:.4f}" if name in scores else "" for name in SETS)] for key, scores in found.items()]
    print_table(("NDCG@10, validation rows", *SETS), rows)


def _validation(name: str, options: argparse.Namespace) -> Validation:
    config, work = Config(holdout=0.1, **SETS[name]), Work(options.threads)
    rows = read_rows(options.data / name / "ratings.csv", config, Inputs(), work)
    return Validation.inside(rows, config, work)


def _words(settings: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in settings.items()
    )


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--models", nargs="+", default=list(TRIED), choices=list(TRIED))
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
