"""From what was downloaded to one table of interactions; nothing is extracted by the name it has in a zip file."""

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from erasable.data.public_sets import PublicSet
from erasable.errors import DataRefused

TABLE_HEADER = b"user_id,item_id,rating,timestamp\n"
_BLOCK_BYTES = 2**20


def write_table(download: IO[bytes], wanted: PublicSet, into: IO[bytes], advance: Callable[[int], None]) -> None:
    """Write the ratings of a downloaded set as CSV with a header; another number of rows than expected is refused."""
    rows = 0
    separator = wanted.separator.encode()
    into.write(TABLE_HEADER)
    with _ratings_of(download, wanted) as stream:
        if wanted.header:
            stream.readline()
        for lines in _blocks_of_lines(stream):
            table = lines.replace(b"\r\n", b"\n").replace(separator, b",")
            into.write(table)
            done = table.count(b"\n")
            rows += done
            advance(done)
    if rows != wanted.rows:
        raise DataRefused(f"{wanted.address} holds {rows:,} rows and not {wanted.rows:,}: it may have changed there")


def count_rows(table: IO[bytes]) -> int:
    """Return how many rows a table has below its header."""
    return max(0, sum(lines.count(b"\n") for lines in _blocks_of_lines(table)) - 1)


@contextmanager
def _ratings_of(download: IO[bytes], wanted: PublicSet) -> Iterator[IO[bytes]]:
    download.seek(0)
    if wanted.member is None:
        yield download
        return
    try:
        with zipfile.ZipFile(download) as archive, _member(archive, wanted) as stream:
            yield stream
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataRefused(f"{wanted.address} is no zip file that can be read ({error}): run this again") from error


def _member(archive: zipfile.ZipFile, wanted: PublicSet) -> IO[bytes]:
    try:
        return archive.open(str(wanted.member))
    except KeyError:
        raise DataRefused(f"{wanted.address} holds no {wanted.member}: it may have changed there") from None
    except RuntimeError as error:  # a password, or a compression that Python does not know
        raise DataRefused(f"{wanted.member} in {wanted.address} can't be unpacked ({error})") from error


def _blocks_of_lines(stream: IO[bytes]) -> Iterator[bytes]:
    while block := stream.read(_BLOCK_BYTES):
        lines = block if block.endswith(b"\n") else block + stream.readline()
        yield lines if lines.endswith(b"\n") else lines + b"\n"
