"""Makes and keeps golden digests: of the present code, or of a released version from its commit in the history."""

import io
import json
import os
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from golden.digests import Made
from golden.environment import environment

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = Path(__file__).resolve().parent
ADAPTERS = {"0.1": "golden.read_0_1", "0.2": "golden.read_0_2", "0.3": "golden.read_0_3"}
"""How to read what each released version writes."""
PRESENT = "golden.read_present"
"""How to read what the present code writes."""
UNRELEASED = "unreleased"
"""What stands for a version where no release has a way yet."""
MEMORY = Path("/dev/shm")
"""Where temporary folders go if it is there: thousands of flushes take long on a busy disk."""


class NoHistory(Exception):
    """The commit of a version is not in the history that is here."""


def made_here(names: Sequence[str]) -> dict[str, Made]:
    """Make ways with the present code."""
    with _folder() as folder:
        return _run(PRESENT, ROOT / "src", folder, names)


def made_from_history(version: str, names: Sequence[str], root: Path = ROOT) -> dict[str, Made]:
    """Make ways with the code of a version, which is unpacked and compiled in a temporary folder."""
    with _folder() as folder:
        source = _unpacked(version, folder / "released", root)
        return _run(ADAPTERS[version], source, folder, names)


def golden_ways(
    version: str, names: Sequence[str], files: Path = FILES, root: Path = ROOT
) -> tuple[dict[str, Made], str]:
    """Return what ways must give here, and say where that comes from.

    It comes from the file of this environment; ways that it does not hold are made from the history, all of them where
    there is no such file.
    """
    path = file_for(version, environment(), files)
    kept = kept_ways(path, version, root) if path else {}
    absent = [name for name in names if name not in kept]
    made = made_from_history(version, absent, root) if absent else {}
    told = [f"{len(names) - len(absent)} ways compared with {path.relative_to(files)}"] if path else []
    if absent:
        told.append(f"{len(absent)} ways made side by side from commit {commit_of(version, root)[:12]}")
    return {name: kept.get(name) or made[name] for name in names}, f"golden bytes of {version}: {', '.join(told)}"


def commit_of(version: str, root: Path = ROOT) -> str:
    """Return the commit of a released version; none for what no release has."""
    if version == UNRELEASED:
        return ""
    return tomllib.loads((root / "releases.toml").read_text(encoding="utf-8"))[version]


def file_for(version: str, here: Mapping[str, str], files: Path = FILES) -> Path | None:
    """Return the file of digests of a version that was made in this environment, if there is one."""
    kept = sorted((files / version).glob("*.json"))
    return next((path for path in kept if json.loads(path.read_text(encoding="utf-8"))["environment"] == here), None)


def kept_ways(path: Path, version: str, root: Path = ROOT) -> dict[str, Made]:
    """Return the ways that a file holds."""
    content = json.loads(path.read_text(encoding="utf-8"))
    if content["commit"] != commit_of(version, root):
        raise ValueError(f"{path} was made from {content['commit']}, and releases.toml names another commit")
    return content["ways"]


def write(version: str, ways: Mapping[str, Made], files: Path = FILES) -> Path:
    """Write the file of digests of a version for this environment; each step of a way has a line."""
    here = environment()
    stamp = sha256(json.dumps(here, sort_keys=True).encode()).hexdigest()[:8]
    path = file_for(version, here, files) or files / version / f"{here['machine']}-{here['processor']}-{stamp}.json"
    facts = {"version": version, "commit": commit_of(version), "environment": here}
    lines = [json.dumps(facts, indent=1, ensure_ascii=False)[:-2] + ',\n "ways": {']
    lines.append(",\n".join(f"  {json.dumps(name)}: {_written(made)}" for name, made in ways.items()))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*lines, " }", "}"]) + "\n", encoding="utf-8")
    return path


def _written(made: Made) -> str:
    facts = json.dumps({name: value for name, value in made.items() if name != "steps"})[1:-1]
    steps = ",\n".join(f"   {json.dumps(step)}: {_compact(digests)}" for step, digests in made["steps"].items())
    return f'{{{facts}, "steps": {{\n{steps}\n  }}}}'


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@contextmanager
def _folder() -> Iterator[Path]:
    """Give a temporary folder, in memory where that can be."""
    with TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None, prefix="golden-") as folder:
        yield Path(folder)


def _unpacked(version: str, folder: Path, root: Path) -> Path:
    commit = commit_of(version, root)
    # A clone that fetches what it lacks would go over the network.
    quiet = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
    archive = subprocess.run(
        ["git", "-C", str(root), "archive", "--format=tar", commit, "src"], capture_output=True, env=quiet, check=False
    )
    if archive.returncode:
        raise NoHistory(
            f"the source of {version} (commit {commit}) can't be read from the history "
            f"({archive.stderr.decode(errors='replace').strip()}): get a full clone with git fetch --unshallow, and "
            "run this again"
        )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
        packed.extractall(folder, filter="data")
    return folder / "src"


def _run(adapter: str, source: Path, folder: Path, names: Sequence[str]) -> dict[str, Made]:
    """Run ways in a process of its own, which finds this source first and keeps compiled code beside it."""
    output = folder / "digests.json"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHON", "COV_"))}
    path = os.pathsep.join(map(str, (source, FILES.parent)))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "golden.run_ways", adapter, str(source), str(output), *names],
        capture_output=True,
        env={**kept, "PYTHONPATH": path},
        cwd=folder,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{source} could not make its digests: {done.stderr.decode(errors='replace').strip()}")
    return json.loads(output.read_text(encoding="utf-8"))
