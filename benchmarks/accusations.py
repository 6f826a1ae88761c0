"""How often the membership probe accuses a recommender that forgets exactly: made-up shops, one probe each.

Each shop has 100 users and 100 items with planted groups; 20 people are forgotten in memory, 5 models of each kind. A
model is accused only if a second round with other seeds agrees. A run that was stopped goes on from what it has.
"""

import argparse
import json
from collections import Counter

import pyarrow as pa

from erasable.chain import Config
from erasable.data import SyntheticSettings, synthesise
from erasable.operations import MemoryStorage, Work
from erasable.operations.attack import attack
from erasable.operations.learn import learn_into
from erasable.operations.prepare import NO_INPUTS
from reporting import RESULTS, documented_parser, print_table, save

KEPT = RESULTS / "accusations-probes.jsonl"


def main() -> None:
    options = _options()
    probes = _kept()
    with KEPT.open("a", encoding="utf-8") as file:
        for seed in range(len(probes), options.probes):
            probes.append(_probe(seed))
            file.write(json.dumps(probes[-1]) + "\n")
            file.flush()
    probes = probes[: options.probes]
    first = sum(rounds > 1 for rounds, _ in probes)
    found = Counter(verdict for _, verdict in probes)
    rows = [["first round", f"{first} of {len(probes)}"], ["both rounds", f"{found['remembers']} of {len(probes)}"]]
    print_table(("accused in", "probes"), rows)
    save("accusations", {"probes": len(probes), "accused_in_first_round": first, "verdicts": dict(found)})
    KEPT.unlink()


def _kept() -> list[list]:
    return [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []


def _probe(seed: int) -> list:
    shop = SyntheticSettings(users=100, items=100, groups=4, per_user=20, ratings=True, seed=seed)
    rows, storage = synthesise(shop).interactions, MemoryStorage()
    users, items = rows.users.array.take(pa.array(rows.user_index)), rows.items.array.take(pa.array(rows.item_index))
    config = Config(model="nmf", groups=2, epochs=20, batch=64, learning_rate=0.005, seed=seed)
    with storage.writing() as session:
        table = pa.table({"user_id": users, "item_id": items, "rating": rows.rating})
        learn_into(session, table, config, NO_INPUTS, Work(1))
    probe = attack(storage, users=20, seeds=5, work=Work(1))
    return [probe.rounds, probe.verdict]


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--probes", type=int, default=300)
    return parser.parse_args()


if __name__ == "__main__":
    main()
