"""Features of items on book-crossing (5-core), author and publisher: items that nobody has yet, and those people have.

    scripts/bench item_features --data DIR [--models ease ...] [--validate] [--report]
                                                            DIR/book-crossing/ratings.csv, DIR/book-crossing/items.csv

Cold: a tenth of the items, by a hash of their ids, is held out with every row. A model learns from the other rows and
from the features of all items. Recall@20 on the held-out rows, by people who have other rows, is taken twice: with the
cold items ranked alone, as for a shelf of new books, and in the whole catalogue. Popularity knows no cold item: ranked
alone they come in random order, and in the whole catalogue it finds none. So the bar is for three times what it reaches
where it knows the items: recall@20 on the warm rows. Beside it stands an oracle that ranks the cold items by how many
people of the held-out rows have them, which nobody could know.

Warm: a tenth of the rows is held out at random; NDCG@10 in the whole catalogue, with features and without.

The weight of features is one for all models, as it is for people who give none: chosen on validation rows, a tenth of
the remaining items and of the training rows, never on those that are tested. Seconds are those of the processor, on one
thread; forgetting is amending by one person, the median over five, or for ALS to train again. What is found for a
model is kept under results/item_features/, so a run that was stopped goes on from there; all of them, with the bars,
are written to results/item_features.json.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.chain.settings import USUAL_FEATURE_WEIGHT
from erasable.data import Interactions, RatingScale, k_core, read_interactions, split_holdout
from erasable.data.item_attributes import read_attributes
from erasable.data.item_features import ItemFeatures
from erasable.evaluation.metrics import ndcg, recall
from erasable.models import ALS, EASE, Change, Effort, ItemKNN, Model, Stage
from erasable.models.base import Amends, Arrays, prepared_by
from erasable.seeding import id_keys
from reporting import RESULTS, documented_parser, print_table, save, warn_if_busy

MODELS: dict[str, type[Model]] = {"ease": EASE, "item-knn": ItemKNN, "als": ALS}
NAMES = ("author", "publisher")
WEIGHTS = (1, 3, 10)
SHARE, TIMES, PEOPLE = 0.1, 3.0, 5
FACTS = "items", "cold_items", "rows", "weight", "popularity"
TESTING, VALIDATING = 4000, 2000  # people, by a hash of their ids
SCALE = RatingScale(1, 1)


def main() -> None:
    options = _options()
    missing = [name for name in options.models if not _kept(name).exists()]
    if missing and not options.report:
        warn_if_busy()
        _measure(missing, options)
    lines = [json.loads(_kept(name).read_text()) for name in MODELS if _kept(name).exists()]
    if not lines:
        sys.exit("nothing was measured yet: leave out --report")
    beside = lines[0]["popularity"]
    _show(lines, beside)
    bar = TIMES * beside["warm recall@20"]
    missed = [line["model"] for line in lines if line["with"]["cold recall@20"] < bar]
    missed += [line["model"] for line in lines if line["with"]["warm ndcg@10"] < line["without"]["warm ndcg@10"]]
    bars = {"cold recall@20": bar, "warm ndcg@10": "not lower than without features"}
    cells = {line["model"]: {name: line[name] for name in ("without", "with", "validation")} for line in lines}
    facts = {name: lines[0][name] for name in FACTS}
    print(f"written to {save('item_features', {**facts, 'bars': bars, 'missed': missed, 'cells': cells})}")
    print(f"MISSED by {', '.join(missed)}" if missed else f"cold recall@20 above {bar:.3f}, warm NDCG@10 not lower")
    sys.exit(bool(missed))


def _kept(name: str) -> Path:
    return RESULTS / "item_features" / f"{name}.json"


def _measure(names: list[str], options: argparse.Namespace) -> None:
    """Measure some models, and keep what is found for each."""
    rows = k_core(read_interactions(options.data / "book-crossing" / "ratings.csv").interactions, 5).unweighted
    attributes = read_attributes(options.data / "book-crossing" / "items.csv")
    table = ItemFeatures.chosen(attributes, NAMES)
    features = {weight: table.over(rows.items, dict.fromkeys(NAMES, weight)) for weight in WEIGHTS}
    cold = _some(rows, "cold")
    validating = _some(rows, "cold validation") & ~cold
    learned, found = _without_items(rows, cold), _with_items(rows, cold)
    warm = split_holdout(rows, SHARE, 0)
    beside = _popularity(learned, found, cold, warm)
    facts = {"items": len(rows.items), "cold_items": int(cold.sum()), "rows": len(rows), "weight": USUAL_FEATURE_WEIGHT}
    for name in names:
        kind = MODELS[name]
        chosen = _validated(kind, features, learned, validating, warm[0]) if options.validate else {}
        tested = {
            weight: _tested(kind, features.get(weight), (learned, found), cold, warm)
            for weight in (0, USUAL_FEATURE_WEIGHT)
        }
        line = {"model": name, "validation": chosen, "without": tested[0], "with": tested[USUAL_FEATURE_WEIGHT]}
        print(f"written to {save(f'item_features/{name}', {**facts, 'popularity': beside, **line})}", flush=True)


Pair = tuple[Interactions, Interactions]
Mask = NDArray[np.bool_]


def _some(rows: Interactions, purpose: str) -> Mask:
    """Return a tenth of the items, by a hash of their ids."""
    return id_keys(0, purpose, rows.items) < np.uint64(int(SHARE * 2**64))


def _with_items(rows: Interactions, items: Mask) -> Interactions:
    return rows.select(items[rows.item_index])


def _without_items(rows: Interactions, items: Mask) -> Interactions:
    return rows.select(~items[rows.item_index])


def _validated(
    kind: type[Model], features: dict[int, Interactions], learned: Interactions, among: Mask, warm: Interactions
) -> dict[str, dict[str, float]]:
    """Return what each weight reaches on validation rows, and none at all."""
    cold, split = (_without_items(learned, among), _with_items(learned, among)), split_holdout(warm, SHARE, 100)
    return {
        str(weight): _quality(kind(), features.get(weight), cold, among, split, VALIDATING)[0]
        for weight in (0, *WEIGHTS)
    }


def _tested(kind: type[Model], features: Interactions | None, cold: Pair, among: Mask, warm: Pair) -> dict[str, float]:
    """Return quality on test rows, and the seconds of learning and of forgetting one person."""
    model = kind()
    quality, shared, learning = _quality(model, features, cold, among, warm, TESTING)
    return {**quality, "learn": learning, "forget one": _forgetting(model, shared, warm[0], features, learning)}


def _quality(
    model: Model, features: Interactions | None, cold: Pair, among: Mask, warm: Pair, most: int
) -> tuple[dict[str, float], Arrays, float]:
    """Return how good a model is; its warm parameters, and the seconds that learning them took."""
    shared = _trained(model, cold[0], features)
    found = {
        "cold recall@20": _judged(model, shared, cold, among, most)["recall@20"],
        "cold recall@20 in all": _judged(model, shared, cold, None, most)["recall@20"],
    }
    began = time.process_time()
    shared = _trained(model, warm[0], features)  # the second training: everything is compiled
    learning = time.process_time() - began
    return {**found, "warm ndcg@10": _judged(model, shared, warm, None, most)["ndcg@10"]}, shared, learning


def _trained(model: Model, rows: Interactions, features: Interactions | None) -> Arrays:
    epochs = getattr(model.settings, "epochs", 1)
    stage = Stage(rows, SCALE, epochs, seed=0, position=0, features=features)
    return model.train(model.start(rows.items, 0), stage, Effort()).shared


def _forgetting(
    model: Model, shared: Arrays, rows: Interactions, features: Interactions | None, learning: float
) -> float:
    if not isinstance(model, Amends):
        return learning
    seconds = []
    for user in np.random.default_rng(0).choice(rows.users.texts(), PEOPLE, replace=False).tolist():
        after = rows.without(users=[user])
        change = Change.between(rows, after)
        change, began = Change(change.taken, change.given, after, features=features), time.process_time()
        model.amended(shared, change, Effort())
        seconds.append(time.process_time() - began)
    return statistics.median(seconds)


def _judged(model: Model, shared: Arrays, split: Pair, among: Mask | None, most: int) -> dict[str, float]:
    """Rank for those who have rows in both parts, or for some of them by a hash."""
    learned, held = split
    prepared, own = prepared_by(model, shared), learned.users.positions_of(held.users.array)
    solved = model.represent(prepared, Stage(learned, SCALE, 1, 0, 0), Effort())
    values = []
    for user in _people(held, own, most):
        owned = learned.items_at(int(own[user]))
        row = {name: array[own[user]] for name, array in solved.items()}
        values.append(_at_20(model.score(prepared, row, owned).copy(), owned, held.items_at(user), among))
    return dict(zip(("recall@20", "ndcg@10"), np.mean(values, axis=0).tolist(), strict=True))


def _people(held: Interactions, own: NDArray[np.int64], most: int) -> list[int]:
    people = np.flatnonzero(own >= 0)
    order = np.argsort(id_keys(0, "judged", held.users.take(people)), kind="stable")
    return people[order[:most]].tolist()


def _at_20(
    scores: NDArray[np.float32], owned: NDArray[np.int32], wanted: NDArray[np.int32], among: Mask | None
) -> tuple[float, float]:
    scores[owned] = -np.inf
    if among is not None:
        scores[~among] = -np.inf
    best = np.argpartition(-scores, 20)[:20]
    best = best[np.lexsort((best, -scores[best]))].tolist()
    relevant = {*wanted.tolist()}
    return recall(best, relevant, 20), ndcg(best, relevant, 10)


def _popularity(learned: Interactions, found: Interactions, cold: Mask, warm: Pair) -> dict[str, float]:
    """Return what popularity reaches: on warm rows, on cold rows, and with the cold items' own popularity."""
    known, oracle = (np.bincount(rows.item_index, minlength=len(rows.items)) for rows in (learned, found))
    return {
        "warm recall@20": _counted(np.bincount(warm[0].item_index, minlength=len(cold)), warm, None),
        "cold recall@20 in all": _counted(known, (learned, found), None),
        "cold recall@20 in random order": 20 / int(cold.sum()),
        "cold recall@20 of an oracle": _counted(oracle, (learned, found), cold),
    }


def _counted(counts: NDArray[np.int64], split: Pair, among: Mask | None) -> float:
    learned, held = split
    own = learned.users.positions_of(held.users.array)
    values = [
        _at_20(counts.astype(np.float32), learned.items_at(int(own[user])), held.items_at(user), among)[0]
        for user in _people(held, own, TESTING)
    ]
    return float(np.mean(values))


def _show(lines: list[dict[str, Any]], beside: dict[str, float]) -> None:
    print_table(("popularity", "value"), [[name, f"{value:.4f}"] for name, value in beside.items()])
    names = ("cold recall@20", "cold recall@20 in all", "warm ndcg@10", "learn", "forget one")
    table = [
        [line["model"], name, f"{line['without'][name]:.4f}", f"{line['with'][name]:.4f}"]
        for line in lines
        for name in names
    ]
    print_table(("model", "measure", "without features", "with"), table)
    rows = [
        [line["model"], weight, *(f"{value:.4f}" for value in found.values())]
        for line in lines
        for weight, found in line["validation"].items()
    ]
    if rows:
        print_table(("model", "weight, on validation rows", "cold recall@20", "in all", "warm ndcg@10"), rows)


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--validate", action="store_true", help="also compare weights, on validation rows")
    parser.add_argument("--report", action="store_true", help="only print what was measured")
    parser.add_argument("--models", nargs="+", choices=[*MODELS], default=[*MODELS])
    return parser.parse_args()


if __name__ == "__main__":
    main()
