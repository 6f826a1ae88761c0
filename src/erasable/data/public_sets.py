"""Public data sets: addresses, checksums and licences, and how a download becomes one table."""

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import IO

from erasable.errors import DataRefused, WrongUse

_HEX_DIGITS = {"sha256": 64, "md5": 32}


@dataclass(frozen=True)
class PublicSet:
    """One public data set; without a member, the download is the table itself rather than a zip file."""

    name: str
    address: str
    checksum: str
    """The algorithm and the digest of the download, as sha256:... or md5:..."""
    rows: int
    separator: str
    licence: str
    terms: str
    """The address of the full terms."""
    member: str | None = None
    header: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise WrongUse(f"{self.name!r} can't name a data set: use small letters, digits and hyphens")
        if not self.address.startswith(("https://", "http://")):
            raise WrongUse(f"{self.address!r} is not a web address: give one that begins with https:// or http://")
        algorithm, _, digest = self.checksum.partition(":")
        if algorithm not in _HEX_DIGITS or not re.fullmatch(f"[0-9a-f]{{{_HEX_DIGITS[algorithm]}}}", digest):
            raise WrongUse(
                f"{self.checksum!r} is not a checksum: give sha256: or md5: and the digest in small hex digits"
            )


_GROUPLENS = "https://files.grouplens.org/datasets/movielens"
_MOVIELENS_LICENCE = (
    "for research, with GroupLens acknowledged in what is published; "
    "not to be passed on, and no commercial use, without their permission"
)
_AMAZON_LICENCE = (
    "no licence is stated; "
    "those who collected it ask to be cited (McAuley et al., SIGIR 2015; He and McAuley, WWW 2016)"
)
_SETS = (
    PublicSet(
        name="ml-100k",
        address=f"{_GROUPLENS}/ml-100k.zip",
        checksum="sha256:50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
        rows=100_000,
        separator="\t",
        licence=_MOVIELENS_LICENCE,
        terms=f"{_GROUPLENS}/ml-100k-README.txt",
        member="ml-100k/u.data",
    ),
    PublicSet(
        name="ml-1m",
        address=f"{_GROUPLENS}/ml-1m.zip",
        checksum="sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        rows=1_000_209,
        separator="::",
        licence=_MOVIELENS_LICENCE,
        terms=f"{_GROUPLENS}/ml-1m-README.txt",
        member="ml-1m/ratings.dat",
    ),
    PublicSet(
        name="ml-10m",
        address=f"{_GROUPLENS}/ml-10m.zip",
        checksum="sha256:813c411ccb6122564edfe752e7f80c4dcc5aa25fa94c93622f6877a7ba252862",
        rows=10_000_054,
        separator="::",
        licence=_MOVIELENS_LICENCE,
        terms=f"{_GROUPLENS}/ml-10m-README.html",
        member="ml-10M100K/ratings.dat",
    ),
    PublicSet(
        name="ml-20m",
        address=f"{_GROUPLENS}/ml-20m.zip",
        checksum="sha256:96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
        rows=20_000_263,
        separator=",",
        licence=_MOVIELENS_LICENCE,
        terms=f"{_GROUPLENS}/ml-20m-README.html",
        member="ml-20m/ratings.csv",
        header=True,
    ),
    PublicSet(
        name="amazon-digital-music",
        address="https://snap.stanford.edu/data/amazon/productGraph/categoryFiles/ratings_Digital_Music.csv",
        checksum="sha256:fdf164882460ff26fa2521e01f6a9cf8005ad252ddce308dd03519064f02d80e",
        rows=836_006,
        separator=",",
        licence=_AMAZON_LICENCE,
        terms="https://cseweb.ucsd.edu/~jmcauley/datasets/amazon/links.html",
    ),
)
PUBLIC_SETS: Mapping[str, PublicSet] = MappingProxyType({known.name: known for known in _SETS})


def public_set(name: str) -> PublicSet:
    """Return the public data set of that name."""
    if name not in PUBLIC_SETS:
        raise WrongUse(f"there is no data set {name!r}: give one of {', '.join(PUBLIC_SETS)}")
    return PUBLIC_SETS[name]


TABLE_HEADER = b"user_id,item_id,rating,timestamp\n"
_BLOCK_BYTES = 2**20


def write_table(download: IO[bytes], wanted: PublicSet, into: IO[bytes], advance: Callable[[int], None]) -> None:
    """Write the ratings of a downloaded set as CSV with a header; refuse an unexpected number of rows."""
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
    """Return the number of rows below a table's header."""
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
        raise DataRefused(f"{wanted.address} is not a readable zip file ({error}): run this again") from error


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
