"""`erasable demo`: learn, recommend, forget and verify on built-in data, in plain words."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from erasable.chain.settings import Config
from erasable.cli.options import Threads, work_with
from erasable.cli.output import print_line, print_table
from erasable.data.synthetic import SyntheticData, SyntheticSettings, synthesise
from erasable.errors import UnknownUser
from erasable.operations.forget import forget
from erasable.operations.inspect import evaluate, show, status
from erasable.operations.learn import learn
from erasable.operations.recommend import recommend
from erasable.operations.storage import DiskStorage
from erasable.operations.verify import verify
from erasable.operations.work import Work
from erasable.requests.request import Request
from erasable.wording import duration, percentage

NAME = "demo"
_SHOP = SyntheticSettings(users=2000, items=400, groups=8, per_user=20, seed=7)
_USER_NUMBER = 1234


def command(threads: Threads = None) -> None:
    """Learn, recommend, forget and prove it, on built-in data."""
    work = work_with(threads)
    data = synthesise(_SHOP)
    user = data.interactions.users[_USER_NUMBER]
    with tempfile.TemporaryDirectory() as folder:
        file, storage = Path(folder) / "shop.parquet", DiskStorage(Path(folder) / "shop")
        _write(data, file)
        _tell_learning(file, storage, work)
        _tell_recommending(storage, user, data)
        _tell_forgetting(storage, user, work)
        _tell_proof(storage, user, work)


def _write(data: SyntheticData, file: Path) -> None:
    rows = data.interactions
    users, items = (
        rows.users.array.take(pa.array(rows.user_index)),
        rows.items.array.take(pa.array(rows.item_index)),
    )
    pq.write_table(pa.table({"user_id": users, "item_id": items}), file)


def _tell_learning(file: Path, storage: DiskStorage, work: Work) -> None:
    _heading(1, "Learn")
    config = Config(holdout=0.1)
    learned = learn(file, storage.path, config, work=work)
    utility = evaluate(storage, work=work, metrics=["hr@10"])
    print_line(
        f"A made-up shop: {learned.users:,} users, {learned.items} items, {learned.interactions:,} purchases. For each "
        f"item the model ({learned.model}) has weights for the {config.setting('neighbours')} items that are nearest "
        f"to it by who bought both ({duration(learned.seconds)})."
    )
    print_line(
        f"Of purchases kept aside, the first ten recommendations hit for {percentage(utility.values['hr@10'])} of the "
        "users."
    )


def _tell_recommending(storage: DiskStorage, user: str, data: SyntheticData) -> None:
    _heading(2, f"Recommend to {user}")
    chosen = recommend(storage, [user], k=5)[0]
    best = set(data.best_items(_USER_NUMBER, 20))
    print_table(
        ("rank", "item", "score", "planted taste"),
        [(r.rank, r.item_id, r.score, "fits" if r.item_id in best else "") for r in chosen],
    )


def _tell_forgetting(storage: DiskStorage, user: str, work: Work) -> None:
    _heading(3, f"Forget {user}")
    holding = show(storage, user)
    print_line(
        f"Held about {user}: {len(holding.interactions)} purchases. The model has no row of theirs; they count in the "
        "weights of what they bought and of the items near it."
    )
    forgotten = forget(storage, [Request(user)], work=work)
    print_line(
        f"Took them out of the counts and solved the weights again that follow from these: about "
        f"{percentage(forgotten.chain_ratio)} of the work of learning ({duration(forgotten.seconds)}). With so few "
        "items these are most of them; with many they are few."
    )
    print_line(f"Then searched the files of the workspace, found nothing of {user} there, and signed a certificate.")


def _tell_proof(storage: DiskStorage, user: str, work: Work) -> None:
    _heading(4, "Prove it")
    try:
        recommend(storage, [user])
    except UnknownUser:
        print_line(f"{user} is gone: asking for recommendations is refused. Users left: {status(storage)['users']:,}.")
    verification = verify(storage, work=work)
    verdict = "byte for byte the same" if verification.identical else "DIFFERENT"
    print_line(
        f"Training everything again from scratch, on data that never had {user}, gives {verdict} "
        f"({verification.compared} arrays compared)."
    )
    print_line("")
    print_line("Now with your data: erasable learn ratings.csv --into shop")


def _heading(number: int, text: str) -> None:
    print_line("")
    print_line(f"{number}. {text}", bold=True)
