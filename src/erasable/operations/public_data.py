"""Get a public data set: download it, check it, and put its ratings in place as one table."""

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from erasable.data import PublicSet, count_rows, write_table
from erasable.errors import Refused, option
from erasable.operations.download import download
from erasable.operations.work import QUIET_WORK, Work

TABLE_NAME = "ratings.csv"
_FULL = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True)
class Fetched:
    """A public data set on disk; what was kept was counted, what was downloaded was checked by its checksum too."""

    name: str
    path: str
    rows: int
    kept: bool
    checksum: str | None
    address: str
    licence: str
    terms: str


def get_public_set(wanted: PublicSet, into: Path, work: Work = QUIET_WORK) -> Fetched:
    """Put a public data set into a folder unless it is there; if anything fails nothing is left behind."""
    table = into / wanted.name / TABLE_NAME
    with _on_disk(table):
        kept = _is_there(table, wanted)
        if not kept:
            work.reporter.note(f"the terms of {wanted.name}: {wanted.licence}; in full: {wanted.terms}")
            with _folder(table.parent):
                _fetch(wanted, table, work)
    checksum = None if kept else wanted.checksum
    return Fetched(wanted.name, str(table), wanted.rows, kept, checksum, wanted.address, wanted.licence, wanted.terms)


def _is_there(table: Path, wanted: PublicSet) -> bool:
    if not table.exists():
        return False
    with table.open("rb") as file:
        found = count_rows(file)
    if found != wanted.rows:
        raise Refused(
            f"{table} is there with {found:,} rows, but {wanted.name} has {wanted.rows:,}: "
            "move it away, or give another folder with ",
            option("into"),
        )
    return True


def _fetch(wanted: PublicSet, table: Path, work: Work) -> None:
    # The download has no name on disk: however this ends, it is gone.
    with tempfile.TemporaryFile(dir=table.parent) as downloaded:
        download(wanted.address, wanted.checksum, downloaded, work.reporter)
        with _put_in_place(table) as partial, partial.open("wb") as file:
            with work.reporter.track(f"unpacking {wanted.name}", wanted.rows) as advance:
                write_table(downloaded, wanted, file, advance)
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def _put_in_place(path: Path) -> Iterator[Path]:
    """Give a path to write to, which takes its place only if the writing succeeds."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """Make a folder and its missing parents; those that were made go again if what follows fails."""
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
def _on_disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise Refused(f"the disk is full at {path.parent}: free some space and run this again") from error
        reason = error.strerror or str(error)
        raise Refused(
            f"{path} can't be written or read ({reason}): check ", option("into"), " and its rights"
        ) from error
