"""Plant faults in a copy of the source, one at a time, and see whether the quick tests find them.

The faults stand in mutations.toml, each as a text of the package and what is put in its place; a text that does not
stand there exactly once ends the run before it begins. The tests of the fault's own unit run first, then all others,
and the first that fails ends it. It counts only if it passes without the fault. What is found is added to a file of
JSON lines, one for each fault, so that a run that was stopped goes on; whoever changes a fault has it run again.
  scripts/bench mutations                         all that are not in the file yet
  scripts/bench mutations --only WORD [--again]   those with a word in their name
  scripts/bench mutations --full WORD TEST...     one that the quick tests miss, with the full tests that find it
  scripts/bench mutations --check                 only whether each text is there
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

from reporting import RESULTS, documented_parser, print_table

ROOT = Path(__file__).parent.parent
FAULTS = Path(__file__).with_suffix(".toml")
KEPT = RESULTS / "mutations.jsonl"
_SOURCES = (".py", ".html", ".js", ".css")
_NOT_COPIED = ("data", "dist")  # nor what begins with a dot
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_QUICK = ("-m", "not full")


@dataclass(frozen=True)
class Mutation:
    """A fault: a text of the package, and what is put in its place."""

    name: str
    old: str
    new: str

    @property
    def digest(self) -> str:
        """What tells it from the same one as it was before."""
        return blake2b(json.dumps([self.old, self.new]).encode(), digest_size=8).hexdigest()

    def place(self, tree: Path) -> Path:
        """Return the one file that holds its text."""
        files = [path for path in (tree / "src").rglob("*") if path.suffix in _SOURCES]
        found = {path: count for path in files if (count := path.read_text(encoding="utf-8").count(self.old))}
        if [*found.values()] != [1]:
            places = ", ".join(f"{path.relative_to(tree)} ({count})" for path, count in found.items()) or "nowhere"
            raise SystemExit(f"{self.name}: its old text must stand in the package once, and stands {places}")
        return next(iter(found))

    def tests(self, tree: Path) -> str:
        """Return the tests of its unit: the folder of the same name, or the file for a module at the top."""
        unit = self.place(tree).relative_to(tree / "src" / "erasable").parts[0]
        found = f"tests/test_{unit}" if unit.endswith(".py") else f"tests/{unit}"
        if not (tree / found).exists():
            raise SystemExit(f"{self.name}: there are no tests of its unit at {found}")
        return found

    @contextmanager
    def planted(self, tree: Path) -> Iterator[None]:
        """Have the fault in a tree within the block."""
        path = self.place(tree)
        before = path.read_bytes()
        path.write_text(path.read_text(encoding="utf-8").replace(self.old, self.new), encoding="utf-8")
        try:
            yield
        finally:
            path.write_bytes(before)


@dataclass(frozen=True)
class Result:
    """What came of one fault; `by` is the first test that failed."""

    name: str
    digest: str
    outcome: str
    """found, hung, missed, or unsure: the test fails without the fault too."""
    by: str
    where: str
    """own unit, other units, or full."""
    seconds: float


class Tree:
    """A copy of the source with an environment of its own, in which all but erasable is that of this one."""

    def __init__(self, folder: Path, workers: int, longest: float) -> None:
        self.path = folder / "tree"
        self._workers, self._longest = workers, longest
        self.path.mkdir()
        for source in (path for path in ROOT.glob("[!.]*") if path.name not in _NOT_COPIED):
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, self.path / source.name)
        venv.create(self.path / ".venv", symlinks=True)
        (site,) = self.path.glob(".venv/lib/python*/site-packages")
        packages = next(path for path in sys.path if path.endswith("site-packages"))
        (site / "tree.pth").write_text(f"{self.path / 'src'}\n{packages}\n")
        script = self.path / ".venv" / "bin" / "erasable"
        script.write_text(f"#!{self.path}/.venv/bin/python\nfrom erasable.__main__ import main\nmain()\n")
        script.chmod(0o755)

    def first_failure(self, *words: str, workers: int | None = None) -> str:
        """Run tests until one fails, and return it; nothing if all pass, "hung" if they take too long."""
        workers = self._workers if workers is None else workers
        parallel = ("-n", str(workers), "--dist", "worksteal") if workers > 1 else ()
        command = [".venv/bin/python", "-m", "pytest", "-x", "-rfE", "-p", "no:cacheprovider", *parallel, *words]
        running = subprocess.Popen(
            command, cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            said, _ = running.communicate(timeout=self._longest)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
            return "hung"
        failed = _FAILED.search(said)
        if failed is None and running.returncode not in (0, 5):  # 5: no test was chosen
            raise SystemExit(f"pytest ended with {running.returncode}:\n{said[-3000:]}")
        return failed[1] if failed else ""


def main() -> None:
    """Run what is asked for, and show what is known so far."""
    options = _options()
    mutations = [Mutation(**one) for one in tomllib.loads(FAULTS.read_text(encoding="utf-8"))["mutation"]]
    for mutation in mutations:
        mutation.tests(ROOT)
    if options.check:
        print(f"{len(mutations)} texts stand in the package once each")
        return
    wanted = [one for one in mutations if (options.full or options.only).lower() in one.name.lower()]
    if options.full and len(wanted) != 1:
        raise SystemExit(f"{len(wanted)} faults have {options.full!r} in their name: name one")
    kept = _kept()
    todo = [one for one in wanted if options.again or options.full or (one.name, one.digest) not in kept]
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="mutations-", dir=in_memory) as folder:
        os.chmod(folder, 0o755)  # some tests read as another user
        tree = Tree(Path(folder), options.workers, options.longest) if todo else None
        for mutation in todo:
            result = _tried(tree, mutation, options.tests if options.full else ())
            with options.into.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")
            print(f"{result.outcome:7} {result.seconds:5.0f} s  {result.name}  {result.by}", flush=True)
    _show(mutations)


def _tried(tree: Tree, mutation: Mutation, full: Sequence[str]) -> Result:
    """Plant one fault and run the tests: of its own unit, then all others; or the full ones that are named."""
    began = time.monotonic()
    own = mutation.tests(tree.path)
    quick = {"own unit": (*_QUICK, own), "other units": (*_QUICK, f"--ignore={own}")}
    rounds = {"full": full} if full else quick
    with mutation.planted(tree.path):
        failures = ((where, tree.first_failure(*words)) for where, words in rounds.items())
        where, failed = next((one for one in failures if one[1]), ("", ""))
    outcome = "missed" if not failed else failed if failed == "hung" else "found"
    if outcome == "found" and tree.first_failure(failed, workers=1):
        outcome = "unsure"
    seconds = round(time.monotonic() - began, 1)
    return Result(mutation.name, mutation.digest, outcome, failed, where, seconds)


def _show(mutations: Sequence[Mutation]) -> None:
    """Print how many faults of each unit were found, and which were not."""
    kept = _kept()
    known = [kept[key] for one in mutations if (key := (one.name, one.digest)) in kept]
    print_table(("fault", "outcome", "by"), [(one["name"], one["outcome"], one["by"]) for one in known])
    quick = sum(one["outcome"] in ("found", "hung") and one["where"] != "full" for one in known)
    print(f"the quick tests found {quick} of {len(known)}; {len(mutations) - len(known)} were not tried yet")


def _kept() -> dict[tuple[str, str], dict[str, str]]:
    """Return the last result of each fault."""
    lines = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else []
    return {(one["name"], one["digest"]): one for one in map(json.loads, lines)}


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("tests", nargs="*", help="with --full: the tests to run")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--full", default="", metavar="WORD")
    parser.add_argument("--again", action="store_true", help="also those that are in the file")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--longest", type=float, default=1800, help="seconds after which tests count as hung")
    parser.set_defaults(into=KEPT)
    options = parser.parse_args()
    if bool(options.full) != bool(options.tests):
        parser.error("--full takes a word of a fault's name and the tests to run")
    return options


if __name__ == "__main__":
    main()
