"""Public data sets that can be downloaded: where each is, how it is checked and on what terms; no download here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from erasable.errors import WrongUse

_HEX_DIGITS = {"sha256": 64, "md5": 32}


@dataclass(frozen=True)
class PublicSet:
    """One public data set; without a member, what is downloaded is the table itself and not a zip file."""

    name: str
    address: str
    checksum: str
    """The algorithm and the digest of what is downloaded, as sha256:... or md5:..."""
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
            raise WrongUse(f"{self.address!r} is no web address: give one that begins with https:// or http://")
        algorithm, _, digest = self.checksum.partition(":")
        if algorithm not in _HEX_DIGITS or not re.fullmatch(f"[0-9a-f]{{{_HEX_DIGITS[algorithm]}}}", digest):
            raise WrongUse(f"{self.checksum!r} is no checksum: give sha256: or md5: and the digest in small hex digits")


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
