"""Reading files to be searched; those of a database that may be in use are read by another process."""

import subprocess
from pathlib import Path

_BESIDE_DATABASES = ("-wal", "-shm", "-journal")


def read_file(path: Path, most: int = -1) -> bytes:
    """Return what a file holds, all of it or the beginning."""
    if _may_be_database_in_use(path):
        return _read_elsewhere(path)[: None if most < 0 else most]
    with path.open("rb") as file:
        return file.read(most)


def _may_be_database_in_use(path: Path) -> bool:
    beside = (path.with_name(path.name + ending) for ending in _BESIDE_DATABASES)
    return path.name.endswith(_BESIDE_DATABASES) or any(other.exists() for other in beside)


def _read_elsewhere(path: Path) -> bytes:
    """Return what a file holds, without opening it here.

    Whoever closes a file loses all locks that the own process has on it. A worker that searches its own ledger would
    be taken for gone by others, who would then remove the log that it writes into (sqlite.org/howtocorrupt.html, 2.2).
    """
    found = subprocess.run(["cat", "--", path], capture_output=True, check=False)  # noqa: S603, S607
    if found.returncode:
        raise OSError(0, found.stderr.decode(errors="replace").strip() or "cat has failed")
    return found.stdout
