"""Where interactions are read from: a file, a folder, a pattern of names, or a URL of an object store."""

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from glob import glob, has_magic
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

import pyarrow as pa
from pyarrow import fs

from erasable.data._object_stores import FileSystem, explained, is_of_the_store, is_url, store_of, without_credentials
from erasable.errors import DataRefused, WrongUse

_GZIP_MAGIC = b"\x1f\x8b"
_PARQUET_MAGIC = b"PAR1"
_PARQUET_ENDINGS = (".parquet", ".pq")
_BUFFER_BYTES = 2**20
URL_MADE_A_PATH = re.compile(r"(s3|gs|gcs|az|abfss?|file):/[^/]")
"""What a Path makes of a URL: it loses one of its slashes."""
_OF_A_WORKSPACE = ("manifest.json", "checkpoints")


def absolute_source(source: str | Path) -> str:
    """Return a path or pattern for processes in other working folders; a URL stays as it is."""
    return str(source) if is_url(str(source)) else os.path.abspath(source)


@dataclass(frozen=True)
class InputSource:
    """One file to read, on this machine or in an object store."""

    name: str
    """What to call it in messages: its path, or its URL without credentials."""
    path: str
    store: FileSystem | None = None
    """The object store that holds it; None for a file on this machine."""

    def open(self) -> BinaryIO:
        """Open it for reading bytes as they are."""
        if self.store is None:
            return Path(self.path).open("rb")
        return cast(BinaryIO, io.BufferedReader(self.store.open_input_file(self.path), _BUFFER_BYTES))

    def open_for_arrow(self) -> Any:  # noqa: ANN401 - Arrow's own kind of file
        """Open it as a file of Arrow, which its threads may read without Python."""
        return pa.OSFile(self.path, "rb") if self.store is None else self.store.open_input_file(self.path)

    @contextmanager
    def unpacked(self) -> Iterator[BinaryIO]:
        """Open it for reading bytes, decompressed if needed; errors name it and say what to do."""
        packed = self.start.startswith(_GZIP_MAGIC)
        try:
            with self.named_errors(), self.open() as stream:
                yield cast(BinaryIO, gzip.GzipFile(fileobj=stream)) if packed else stream
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataRefused(f"{self.name}: the gzip file is damaged: compress it again") from error

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Name the file in errors about reading it."""
        try:
            yield
        except gzip.BadGzipFile:
            raise
        except OSError as error:
            if self.store is not None and not isinstance(error, FileNotFoundError):
                with explained(self.name):
                    raise
            raise self._refusal(error) from (error if self.store is None else None)

    def refuse_if_store_failed(self, error: BaseException) -> None:
        """Refuse if an error came from the store, not from what the file holds."""
        if self.store is not None and isinstance(error, OSError) and is_of_the_store(error):
            with explained(self.name):
                raise error

    def refuse_unreadable(self) -> None:
        """Refuse a file that is missing, a folder, unreadable or empty."""
        assert self.start  # noqa: S101 - it is read when it is asked for

    @cached_property
    def start(self) -> bytes:
        """The first bytes, which tell the format; a file that is missing, a folder, unreadable or empty is refused."""
        if self.store is None and Path(self.path).is_dir():
            raise DataRefused(f"{self.name} is a directory: name a file in it")
        with self.named_errors(), self.open() as stream:
            start = stream.read(len(_PARQUET_MAGIC))
        if not start:
            raise DataRefused(f"{self.name} is empty: give a file with one interaction a line")
        return start

    @property
    def endings(self) -> list[str]:
        """The endings of its name, such as .csv and .gz."""
        return [ending.lower() for ending in PurePosixPath(self.path).suffixes]

    @property
    def is_parquet(self) -> bool:
        """Whether it is a Parquet file, by its name or its first bytes."""
        return self.endings[-1:] in [[ending] for ending in _PARQUET_ENDINGS] or self.start == _PARQUET_MAGIC

    def _refusal(self, error: OSError) -> DataRefused:
        if isinstance(error, FileNotFoundError):
            return DataRefused(f"{self.name} does not exist: check the path")
        return DataRefused(f"{self.name} can't be opened ({error.strerror}): check the path and its rights")


def local_source(path: str | Path) -> InputSource:
    """Return one file on this machine as a source."""
    return InputSource(str(path), str(path))


def name_of(given: object) -> str:
    """Return what to call a source in messages: a path, a URL without credentials, or "the table"."""
    if not isinstance(given, str | Path):
        return "the table"
    return without_credentials(given) if isinstance(given, str) and is_url(given) else str(given)


def sources_of(given: str | Path) -> tuple[InputSource, ...]:
    """Return the files that a path, a folder, a pattern or a URL means, by name; one that means none is refused."""
    if isinstance(given, str) and is_url(given):
        store, path = store_of(given)
        if not isinstance(store, fs.LocalFileSystem):
            return _in_store(store, path, name_of(given))
        given = path
    text = str(given)
    if not os.path.lexists(text) and URL_MADE_A_PATH.match(text):
        raise WrongUse(f"{text} does not exist; if it is a URL, give it as text: a Path loses one of its slashes")
    if Path(text).is_dir():
        if all(Path(text, name).exists() for name in _OF_A_WORKSPACE):
            raise WrongUse(f"{text} is a workspace: give the data that it was learned from")
        return _required(_in_folder(text), text)
    if os.path.lexists(text) or not has_magic(text):
        return (local_source(text),)
    matches = glob(text, recursive=True)
    found = [one for match in matches for one in (_in_folder(match) if Path(match).is_dir() else [local_source(match)])]
    # A pattern with ** finds a folder, and what is in it once more.
    distinct = {os.fsencode(one.path): one for one in found}
    return _required([distinct[path] for path in sorted(distinct)], text)


def _in_folder(folder: str) -> list[InputSource]:
    walked = ((Path(place).relative_to(folder), names) for place, _, names in os.walk(folder))
    inside = (str(place / name) for place, names in walked for name in names)
    kept = sorted(filter(_is_data, inside), key=os.fsencode)
    return [local_source(Path(folder, one)) for one in kept]


def _in_store(store: FileSystem, path: str, name: str) -> tuple[InputSource, ...]:
    fixed = "/".join(_before_pattern(path))
    with explained(name):
        there = store.get_file_info(fixed)
        if there.type == fs.FileType.File:
            return (InputSource(name, path, store),)
        if there.type == fs.FileType.NotFound:
            raise DataRefused(f"{name} does not exist: check the bucket and the path")
        listed = store.get_file_info(fs.FileSelector(fixed, recursive=True))
    inside = [one.path[len(fixed) + 1 :] for one in listed if one.type == fs.FileType.File]
    pattern = path[len(fixed) + 1 :]
    kept = [one for one in sorted(inside, key=str.encode) if _is_data(one) and _matches(one, pattern)]
    base = name[: len(name) - len(pattern)].rstrip("/") if pattern else name.rstrip("/")
    return _required([InputSource(f"{base}/{one}", f"{fixed}/{one}", store) for one in kept], name)


def _before_pattern(path: str) -> list[str]:
    parts = path.split("/")
    first = next((place for place, part in enumerate(parts) if "*" in part), len(parts))
    return parts[:first]


def _matches(path: str, pattern: str) -> bool:
    """Whether a path, or a folder above it, fits a pattern; without one, every path does."""
    names, wanted = path.split("/"), pattern.split("/") if pattern else []
    return len(wanted) <= len(names) and all(map(fnmatchcase, names, wanted))


def _is_data(path: str) -> bool:
    """Whether no part of a path is hidden or a marker such as _SUCCESS; _key=value is a partition."""
    parts = PurePosixPath(path).parts
    return not any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)


def _required(found: list[InputSource], name: str) -> tuple[InputSource, ...]:
    if not found:
        raise DataRefused(f"{name} holds no file to read: check the path; names that begin with . or _ are left out")
    return tuple(found)
