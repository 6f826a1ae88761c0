"""Writing files so that nothing is left half written: beside their place, then moved there."""

import errno
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from erasable.errors import Refused

_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def put_in_place(path: Path) -> Iterator[Path]:
    """Give a temporary path, of a file or a folder, to write to; it is moved to its place only if writing succeeds."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        partial.unlink(missing_ok=True)


@contextmanager
def made_folder(path: Path) -> Iterator[None]:
    """Make a folder and its missing parents; those made here are removed if the block fails."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise


@contextmanager
def on_disk(path: Path, *remedy: str) -> Iterator[None]:
    """Turn errors of the disk into a message with its remedy."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise Refused(f"the disk is full at {path.parent}: free some space and run this again") from error
        reason = error.strerror or str(error)
        raise Refused(f"{path} can't be written or read ({reason}): ", *remedy) from error
