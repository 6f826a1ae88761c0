"""Kill learn and forget with SIGKILL at random moments, 200 times, and go on: nothing is lost or half done.

Each kill hits a real process at a moment drawn over the whole time that the command works. After a killed learn the
folder is learned into again; after a killed forget whoever forgets next finishes what was accepted, and only a request
that was not yet accepted is made again. In the end every file of data, checkpoints, holdout and settings must be byte
for byte that of an undisturbed run, every file, record and signature must be right, and there is one certificate.
Once more with a disk that is really full (a small file system in memory; needs root, else it is left out).
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # the kit that the tests share

from erasable.errors import DiskFull
from erasable.operations import DiskStorage, status, verify
from kit import small_shop
from kit.copies import copy_of
from kit.killing import killed_after
from reporting import documented_parser, print_table, save


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder), options)
        outcomes = {"learn": Counter(), "forget": Counter()}
        for number in range(options.kills):
            what = "learn" if number % 2 else "forget"
            outcomes[what][trial.killed_learn(number) if what == "learn" else trial.killed_forget(number)] += 1
            if sys.stderr.isatty():
                print(f"\r{number + 1} of {options.kills}", end="", file=sys.stderr, flush=True)
        full = trial.full_disk()
    rows = [[what, found, str(count)] for what, one in outcomes.items() for found, count in sorted(one.items())]
    print_table(("killed", "found afterwards", "times"), rows)
    print("lost 0, half done 0, final bytes equal to the undisturbed run's in all cases")
    print(f"full disk: {full}")
    settings = {"kills": options.kills, "users": options.users, "seed": options.seed}
    save("crash", {**settings, "found": {what: dict(one) for what, one in outcomes.items()}, "disk_full": full})


class Trial:
    """An undisturbed run to compare with, and the moments to kill at."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._folder = folder
        self._random = random.Random(options.seed)
        self._source = small_shop.table(options.users, 200)
        small_shop.learn_shop(folder / "warm", self._source)  # compiles, or loads what was compiled
        self._learn_seconds = _seconds(lambda: small_shop.learn_shop(folder / "shop", self._source))
        self._user = small_shop.member_of(folder / "shop", 1)
        forgotten = shutil.copytree(folder / "shop", folder / "forgotten")
        self._forget_seconds = _seconds(lambda: small_shop.forget_in(forgotten, self._user))
        self._learned = small_shop.lasting_files(folder / "shop")
        self._forgotten = small_shop.lasting_files(forgotten)

    def killed_learn(self, number: int) -> str:
        path = self._folder / f"learn-{number}"
        died = killed_after(self._moment(self._learn_seconds), lambda: small_shop.learn_shop(path, self._source))
        there = (path / "manifest.json").exists()
        if not there:
            small_shop.learn_shop(path, self._source)
        self._check(path, self._learned, certificates=0)
        shutil.rmtree(path)
        return "was done already" if not died else "learned" if there else "nothing, learned again"

    def killed_forget(self, number: int) -> str:
        path = Path(shutil.copytree(self._folder / "shop", self._folder / f"forget-{number}"))
        died = killed_after(self._moment(self._forget_seconds), lambda: small_shop.forget_in(path, self._user))
        found = status(DiskStorage(path))
        accepted = found["pending"] or found["erasures"]
        small_shop.forget_in(path, *(() if accepted else (self._user,)))
        self._check(path, self._forgotten, certificates=1)
        shutil.rmtree(path)
        step = {(1, 0): "as before", (1, 1): "accepted", (2, 1): "erased, not certified", (2, 0): "certified"}
        return step[found["version"], found["pending"]] if died else "was done already"

    def full_disk(self) -> str:
        """Learn and forget on a real file system that has no room for a second version."""
        place = self._folder / "small"
        place.mkdir()
        size = sum(map(len, self._learned.values())) + 100_000
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
        if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
            return "left out: no file system may be mounted here"
        try:
            path = copy_of(self._folder / "shop", place / "shop")
            return self._forget_on_full_disk(path)
        finally:
            subprocess.run(["umount", str(place)], check=True)

    def _forget_on_full_disk(self, path: Path) -> str:
        (path.parent / "ballast").write_bytes(b"x" * max(0, shutil.disk_usage(path).free - 30_000))
        try:
            small_shop.forget_in(path, self._user)
        except DiskFull as error:
            message = str(error).replace(str(path), "DIR")
        else:
            raise AssertionError("the disk was not full")
        _require(small_shop.lasting_files(path) == self._learned, "the old state stays")
        (path.parent / "ballast").unlink()
        shutil.move(path, self._folder / "rescued")
        small_shop.forget_in(self._folder / "rescued", self._user)
        self._check(self._folder / "rescued", self._forgotten, certificates=1)
        return message

    def _moment(self, seconds: float) -> float:
        return self._random.uniform(0, 1.1 * seconds)

    def _check(self, path: Path, expected: dict[str, bytes], certificates: int) -> None:
        found = status(DiskStorage(path))
        _require((found["pending"], found["erasures"]) == (0, certificates), f"one certificate: {found}")
        _require(small_shop.lasting_files(path) == expected, "the same bytes as undisturbed")
        _require(not small_shop.unnamed_files(path), "nothing is left over")
        with DiskStorage(path).reading() as session:
            _require(not session.damaged(), "every file is whole")
        if certificates:
            _require(verify(DiskStorage(path)).identical is True, "verified")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(f"broken: {what}")


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--users", type=int, default=600, help="more users make each command longer")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
