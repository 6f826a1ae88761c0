"""One bit of a file, flipped and put back; and whether `verify` notices before it loads anything."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from erasable.errors import Refused, WorkspaceError
from erasable.operations import DiskHome
from erasable.operations.verify import integrity_fault
from erasable.proof import read_certificate


def files_of(folder: Path) -> list[Path]:
    """Return the files of a workspace that hold something; its locks are empty."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)


@contextmanager
def flipped(path: Path, chance: random.Random) -> Iterator[None]:
    """Flip one bit of a file while the block runs."""
    content = path.read_bytes()
    changed = bytearray(content)
    changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(changed)
    try:
        yield
    finally:
        path.write_bytes(content)


def notices(folder: Path, certificate: Path) -> bool:
    """Whether the checks that come before any loading find a fault."""
    try:
        with DiskHome(folder).reading() as session:
            return integrity_fault(session, read_certificate(certificate.read_bytes())) is not None
    except (WorkspaceError, Refused):
        return True
