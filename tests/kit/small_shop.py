"""A small shop that learns and forgets through the operations, for tests of crashes and of tampering."""

from pathlib import Path

import pyarrow as pa

from erasable.chain import Config
from erasable.data import SyntheticSettings, synthesise
from erasable.operations import DiskStorage, Forgotten, Work, forget, learn
from erasable.requests import Request
from erasable.workspace import Workspace
from erasable.workspace.files import QUEUE_FILE, QUEUE_FILES

CONFIG = Config(model="nmf", groups=3, grouping="random", order="number", epochs=3, holdout=0.2)


def table(users: int = 30, items: int = 20) -> pa.Table:
    """Return made-up purchases with ratings."""
    rows = synthesise(SyntheticSettings(users=users, items=items, groups=2, per_user=6, ratings=True)).interactions
    return pa.table(
        {
            "user_id": rows.users.array.take(pa.array(rows.user_index)),
            "item_id": rows.items.array.take(pa.array(rows.item_index)),
            "rating": rows.rating,
        }
    )


def learn_shop(path: Path, source: pa.Table, config: Config = CONFIG) -> Path:
    """Learn into a new workspace, on one thread."""
    learn(source, path, config, work=Work(1))
    return path


def forget_in(path: Path, *users: str) -> Forgotten:
    """Forget users, and finish what was begun; on one thread."""
    return forget(DiskStorage(path), [Request(user) for user in users], work=Work(1), yes=True)


def member_of(path: Path, position: int) -> str:
    """Return the first user of a group."""
    with Workspace.reading(path) as workspace:
        return workspace.state().dataset.groups[position].users[0]


def lasting_files(path: Path) -> dict[str, bytes]:
    """Return the files that do not depend on the time or on chance: data, holdout, checkpoints, settings, catalogue."""
    passing = ("audit", "signing-key", "pending", "certificates", "sealed/")
    names = (name for name in _named(path) if not name.startswith(passing))
    return {name: (path / name).read_bytes() for name in names}


def unnamed_files(path: Path) -> list[str]:
    """Return the files that lie in a workspace and that its version does not name, the locks and the queue apart."""
    found = (file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    with Workspace.reading(path) as workspace:
        ours = {*workspace.manifest.files, *workspace.sealed_files, "manifest.json", *QUEUE_FILES}
    others = {name for name in found if not name.endswith(".lock")} - ours
    return sorted(name for name in others if not name.startswith(f"{QUEUE_FILE}.new-"))


def _named(path: Path) -> list[str]:
    with Workspace.reading(path) as workspace:
        return sorted(workspace.manifest.files)
