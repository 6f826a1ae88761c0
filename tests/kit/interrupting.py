"""The command, interrupted with Ctrl-C at some moment: how it ended, and whether what it left is as before or as after.

A terminal sends Ctrl-C to a process and to all that work for it; `kill -INT` to the process alone. Both are done here.
What comes before Python has read the first line of ours, or after our last one, is Python's own to answer.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from erasable.chain import Config
from erasable.interrupts import INTERRUPTED, STOPPED, STOPPED_AT_ONCE
from erasable.operations import DiskStorage, Inputs, Work, learn, learn_more, status
from kit import small_shop
from kit.copies import copy_of
from kit.fitting import fitting

COMMAND = Path(sys.executable).parent / "erasable"
IN_TIME = 2.0
_PATIENCE = 10.0
_PYTHON_STARTS = 0.1  # seconds, in which its import system may swallow Ctrl-C before any line of ours is run
_SETTINGS = {"groups": 3, "grouping": "random", "order": "number", "epochs": 3, "holdout": 0.2}
MODELS = ("nmf", "als", "ease", "dmf")
_LINES = {f"erasable: {STOPPED}\n": "in order", f"erasable: {STOPPED_AT_ONCE}\n": "at once"}


@dataclass(frozen=True)
class End:
    """How a command ended that was interrupted."""

    code: int | None
    """None if it had to be killed."""
    seconds: float
    """From Ctrl-C to the end."""
    out: str
    err: str
    early: bool
    """Whether it had ended before Ctrl-C came."""
    lasted: float
    """From its start to Ctrl-C, or to its end if that came first."""

    @property
    def way(self) -> str:
        """Name the way in which it ended; what is no way to end is in capitals."""
        if self.code is None:
            lost = "Exception ignored in: <function _get_module_lock" in self.err and self.lasted < _PYTHON_STARTS
            return "lost by Python itself while it was starting" if lost else "HUNG"
        if self.early:
            return "was done already"
        if not self.err and (self.code == 0 or (self.code == 1 and self.out)):  # 1 is a verdict if nothing was refused
            return "was done by then"
        if "Traceback" in self.err:
            ours = any(f"{os.sep}erasable{os.sep}" in line for line in self.err.splitlines() if "File " in line)
            return "TRACEBACK" if ours else "while Python itself was starting"
        if self.code == -signal.SIGINT and not self.err:
            return "was done already" if self.out else "while Python itself was starting"
        if self.code == INTERRUPTED and self.err.count("\n") == 1:
            return _LINES.get(self.err, "with a remedy" if "--resume" in self.err else "OTHER WORDS")
        return "OTHERWISE"

    @property
    def is_right(self) -> bool:
        """Whether it ended as it should."""
        return not self.way.isupper()


def interrupted(
    words: Sequence[object], moment: float, everyone: bool, environment: Mapping[str, str] | None = None
) -> End:
    """Run a command, press Ctrl-C after some seconds, and say how it ended; nothing of it is left running."""
    process = started(words, environment)
    began = time.monotonic()
    with suppress(subprocess.TimeoutExpired):
        process.wait(moment)
    early, lasted = process.poll() is not None, time.monotonic() - began
    press(process, everyone)
    pressed = time.monotonic()
    try:
        out, err = process.communicate(timeout=_PATIENCE)
        return End(process.returncode, 0.0 if early else time.monotonic() - pressed, out, err, early, lasted)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return End(None, time.monotonic() - pressed, out, err, early, lasted)


def started(words: Sequence[object], environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start the command in a group of processes of its own, with Ctrl-C as a terminal has it."""
    # A shell that starts this in the background has it ignore Ctrl-C, and its children would too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [str(COMMAND), *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
    finally:
        signal.signal(signal.SIGINT, before)


def press(process: subprocess.Popen[str], everyone: bool) -> None:
    """Press Ctrl-C, for the process or for all of its group."""
    with suppress(ProcessLookupError):
        (os.killpg if everyone else os.kill)(process.pid, signal.SIGINT)


@dataclass(frozen=True)
class Trial:
    """A command to interrupt: what to run in which folder, and what must hold afterwards."""

    words: Callable[[Path], Sequence[object]]
    prepare: Callable[[Path], object]
    check: Callable[[Path], None]
    """Raises unless what is there is as before or as after, and the same command, run again, does its work."""
    environment: Mapping[str, str] = field(default_factory=dict)

    def seconds(self, place: Path) -> float:
        """Run it undisturbed, and return how long that takes."""
        place.mkdir()
        self.prepare(place)
        began = time.monotonic()
        process = started(self.words(place), self._environment(place))
        _, err = process.communicate()
        assert process.returncode in (0, 1, 3), err  # a verdict is one too
        shutil.rmtree(place)
        return time.monotonic() - began

    def interrupt(self, place: Path, moment: float, everyone: bool, fresh: bool = False) -> End:
        """Interrupt it at a moment, and look at what it has left; `fresh`: with nothing that was compiled before."""
        place.mkdir()
        self.prepare(place)
        environment = {**self._environment(place), **({"NUMBA_CACHE_DIR": str(place / "compiled")} if fresh else {})}
        end = interrupted(self.words(place), moment, everyone, environment)
        self.check(place)
        shutil.rmtree(place)
        return end

    def _environment(self, place: Path) -> Mapping[str, str]:
        return {name: value.format(place=place) for name, value in self.environment.items()}


class Service:
    """A small shop to run every long command on, and what undisturbed commands make of it."""

    def __init__(self, folder: Path, users: int = 300) -> None:
        table = small_shop.table(users, 100)
        self._rows, self._more = folder / "rows.parquet", folder / "more.parquet"
        pq.write_table(table.slice(0, len(table) * 9 // 10), self._rows)
        pq.write_table(table.slice(len(table) * 9 // 10), self._more)
        self._learned = {model: self._learn(folder / model, model) for model in MODELS}
        self._shop = folder / MODELS[0]
        self._user = small_shop.member_of(self._shop, 1)
        self._before = small_shop.lasting_files(self._shop)
        self._forgotten = self._after(folder / "forgotten", lambda path: small_shop.forget_in(path, self._user))
        self._grown = self._after(folder / "grown", self._learn_more)

    def trials(self) -> dict[str, Trial]:
        """Return the long commands by name."""
        reading = {
            "verify": ("verify", "--from-scratch"),
            "evaluate": ("evaluate",),
            "recommend": ("recommend", "--all"),
            "scan": ("scan", "--user", self._user),
            "plan": ("plan", "--random", "5"),
            "groups": ("groups",),
            "attack": ("attack", "--users", "20", "--seeds", "3"),
        }
        return {
            **{f"learn {model}": self._learning(model) for model in MODELS},
            "learn --more": Trial(self._words("learn", self._more, "--more", "--into"), self._copy, self._check_more),
            "forget": Trial(self._words("forget", "--user", self._user), self._copy, self._check_forgotten),
            **{name: Trial(self._words(*words), self._copy, self._check_unchanged) for name, words in reading.items()},
            "reproduce": Trial(self._reproduce, lambda place: None, _check_cells),
            "data make": Trial(_make, lambda place: None, _check_made),
            "demo": Trial(lambda place: ["demo"], lambda place: None, lambda place: None, {"TMPDIR": "{place}"}),
        }

    def _learning(self, model: str) -> Trial:
        def words(place: Path) -> Sequence[object]:
            settings = fitting({**_SETTINGS, "model": model})
            options = (word for name, value in settings.items() for word in (f"--{name}", value))
            return ["learn", self._rows, "--into", place / "shop", *options]

        def check(place: Path) -> None:
            if not (place / "shop" / "manifest.json").exists():
                self._learn(place / "shop", model)
            _require_same(place / "shop", self._learned[model])

        return Trial(words, lambda place: None, check)

    def _learn(self, path: Path, model: str) -> dict[str, bytes]:
        learn(self._rows, path, Config.of(fitting({**_SETTINGS, "model": model})), work=Work(2))
        return small_shop.lasting_files(path)

    def _learn_more(self, path: Path) -> None:
        learn_more(DiskStorage(path), self._more, Inputs(), Work(2))

    def _after(self, folder: Path, change: Callable[[Path], object]) -> dict[str, bytes]:
        path = copy_of(self._shop, folder / "shop")
        change(path)
        return small_shop.lasting_files(path)

    def _copy(self, place: Path) -> None:
        copy_of(self._shop, place / "shop")

    def _words(self, command: str, *options: object) -> Callable[[Path], Sequence[object]]:
        into = options and options[-1] == "--into"
        return lambda place: [command, *options, place / "shop"] if into else [command, place / "shop", *options]

    def _reproduce(self, place: Path) -> Sequence[object]:
        options = ("--seeds", "1", "--epochs", "2", "--workers", "2")
        return ["reproduce", "utility", "--data", self._rows, "--out", place / "out", *options]

    def _check_more(self, place: Path) -> None:
        path = place / "shop"
        assert small_shop.lasting_files(path) in (self._before, self._grown)
        self._learn_more(path)
        _require_same(path, self._grown)

    def _check_forgotten(self, place: Path) -> None:
        path = place / "shop"
        found = status(DiskStorage(path))
        assert small_shop.lasting_files(path) == (self._before if found["version"] == 1 else self._forgotten)
        small_shop.forget_in(path, *(() if found["pending"] or found["erasures"] else (self._user,)))
        assert status(DiskStorage(path))["erasures"] == 1
        _require_same(path, self._forgotten)

    def _check_unchanged(self, place: Path) -> None:
        _require_same(place / "shop", self._before)


def _require_same(path: Path, expected: dict[str, bytes]) -> None:
    assert small_shop.lasting_files(path) == expected, "not the bytes of an undisturbed command"
    assert not small_shop.unnamed_files(path), "something is left over"
    with DiskStorage(path).reading() as session:
        assert not session.damaged(), "a file is damaged"


def _make(place: Path) -> Sequence[object]:
    return ["data", "make", place / "made.parquet", "--users", 300_000, "--interactions", 5_000_000]


def _check_made(place: Path) -> None:
    """Require the whole file or none."""
    left = {path.name for path in place.iterdir()} - {"compiled"}
    assert left <= {"made.parquet"}, left
    if left:
        assert pq.read_metadata(place / "made.parquet").num_rows > 4_900_000


def _check_cells(place: Path) -> None:
    assert all(json.loads(file.read_text())["result"] for file in (place / "out").glob("cells/*.json"))
