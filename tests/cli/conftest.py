"""The command as its user runs it, in this process or in its own; a small shop to run it on, learned once."""

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from erasable.cli.main import main
from erasable.workspace.files import QUEUE_FILES
from kit.copies import copy_of

COMMAND = Path(sys.executable).parent / "erasable"
LONG = "someone-with-a-long-unmistakable-id"
EVERY_ITEM = "eve"
ITEMS = ("a", "b", "c", "d", "e", "f")
RATINGS = {
    "ann": {"a": 5, "b": 4, "c": 1},
    "bob": {"a": 4, "b": 5, "d": 2},
    "cat": {"b": 3, "c": 4, "e": 5},
    "dan": {"c": 2, "d": 5, "e": 4},
    EVERY_ITEM: {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 1},
    "fay": {"a": 3, "d": 3, "e": 1},
    "gil": {"b": 1, "c": 5, "d": 4},
    LONG: {"a": 2, "c": 2, "e": 3},
}
SETTINGS = ("--model", "nmf", "--groups", "3", "--epochs", "6", "--batch", "16")


@dataclass(frozen=True)
class Result:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)


@dataclass(frozen=True)
class Service:
    """What is known about the small shop."""

    long: str = LONG
    every_item: str = EVERY_ITEM
    items: tuple[str, ...] = ITEMS
    settings: tuple[str, ...] = SETTINGS

    @property
    def ratings(self) -> dict[str, dict[str, int]]:
        return {user: dict(has) for user, has in RATINGS.items()}


@pytest.fixture(scope="session")
def facts() -> Service:
    return Service()


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command in this process."""

    def call(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["erasable", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        said = capsys.readouterr()
        return Result(code, said.out, said.err)

    return call


@pytest.fixture(scope="session")
def run_apart():
    """Run the command in a process of its own."""

    def call(*arguments: object, **settings: Any) -> Result:
        ended = subprocess.run(
            [str(COMMAND), *map(str, arguments)], capture_output=True, text=True, check=False, **settings
        )
        return Result(ended.returncode, ended.stdout, ended.stderr)

    return call


@pytest.fixture(scope="session")
def start_apart():
    """Start the command in a process of its own and go on."""
    started: list[subprocess.Popen[str]] = []

    def call(*arguments: object) -> subprocess.Popen[str]:
        words = [str(COMMAND), *map(str, arguments)]
        # A shell that starts the tests in the background has them ignore Ctrl-C, and their children would too.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        signal.signal(signal.SIGINT, before)
        return started[-1]

    yield call
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def ratings_file(tmp_path_factory) -> Path:
    """The small shop's interactions."""
    lines = [
        f"{user},{item},{rating},{1000 + number}"
        for user, has in RATINGS.items()
        for number, (item, rating) in enumerate(has.items())
    ]
    path = tmp_path_factory.mktemp("input") / "ratings.csv"
    path.write_text("\n".join(["user_id,item_id,rating,timestamp", *lines]) + "\n", encoding="utf-8")
    return path


def _learn(file: Path, into: Path, *options: str) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["erasable", "learn", str(file), "--into", str(into), *options])
        with pytest.raises(SystemExit, match="0"):
            main()
    return into


@pytest.fixture(scope="session")
def learned(ratings_file, tmp_path_factory) -> Path:
    """A workspace that has learned the small shop; to be read only."""
    return _learn(ratings_file, tmp_path_factory.mktemp("learned") / "shop", *SETTINGS)


@pytest.fixture(scope="session")
def measured(ratings_file, tmp_path_factory) -> Path:
    """A workspace that has kept some interactions out of training; to be read only."""
    return _learn(ratings_file, tmp_path_factory.mktemp("measured") / "shop", *SETTINGS, "--holdout", "0.4")


@pytest.fixture
def shop(learned, tmp_path) -> Path:
    """A copy of the workspace that may be changed."""
    return copy_of(learned, tmp_path / "shop")


@pytest.fixture(scope="session")
def content_of():
    """All files below a folder with their bytes, the locks apart, and the queue, where what was taken back is told."""

    def read(root: Path) -> dict[str, bytes]:
        paths = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock")
        paths = (path for path in paths if path.name not in QUEUE_FILES)
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}

    return read


BIG_USERS, BIG_GROUPS = 3000, 10


@pytest.fixture(scope="session")
def big_file(tmp_path_factory) -> Path:
    """Interactions that take seconds to train on; the user `first` comes first."""
    generator = np.random.default_rng(1)
    users = ["first", *(f"u{number:04d}" for number in range(1, BIG_USERS))]
    rows = [f"{user},i{item}" for user in users for item in generator.permutation(400)[:20]]
    path = tmp_path_factory.mktemp("big") / "big.csv"
    path.write_text("\n".join(["user_id,item_id", *rows]) + "\n")
    return path


@pytest.fixture(scope="session")
def big_learned(big_file, tmp_path_factory) -> Path:
    """A workspace in which forgetting the user `first` trains every stage again; to be read only."""
    folder = tmp_path_factory.mktemp("big-learned")
    users = ["first", *(f"u{number:04d}" for number in range(1, BIG_USERS))]
    rows = [f"{user},g,{number % BIG_GROUPS}" for number, user in enumerate(users)]
    (folder / "groups.csv").write_text("\n".join(["user_id,group,position", *rows]) + "\n")
    return _learn(
        big_file, folder / "shop", "--groups-from", str(folder / "groups.csv"), "--model", "nmf", "--epochs", "80"
    )


@pytest.fixture
def big_shop(big_learned, tmp_path) -> Path:
    """A copy of the big workspace that may be changed."""
    return copy_of(big_learned, tmp_path / "shop")
