"""The keys to personal data encrypted in an external database: files in the workspace, destroyed at erasure.

A database server keeps deleted rows in dead tuples, in its write-ahead log, in replicas and in backups. Without the key
they are noise. So a key is written before anything is encrypted with it, never leaves the workspace, and is overwritten
when it is removed.
"""

import json
import re
import secrets
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag

from erasable.errors import QueueLost, SuppressionUnknown, WorkspaceError
from erasable.requests.database import beginning
from erasable.requests.tokens import decrypt, encrypt
from erasable.workspace.files import flush_folder, make_folder, overwrite_file, remove_file, write_file

_KEY_BYTES = 32
_PADDED_TO = 64  # bytes, to hide the length of an id
_MANY = 16
_ABOUT = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
_NAME = re.compile(rf"{_ABOUT.pattern}-[0-9a-f]{{16}}")


class KeyMissing(QueueLost):
    """The key of an open request is missing, so nobody knows who asked."""


@dataclass(frozen=True)
class Key:
    """A key, and the name of its file."""

    name: str
    secret: bytes = field(repr=False)


class KeyFiles:
    """A folder with a file for each key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, about: str) -> Key:
        """Make a key, durable when this returns; its name is never reused, so no other is destroyed in its place."""
        if not _ABOUT.fullmatch(about):
            raise WorkspaceError("a request's id has characters that a file name can't have: submit it again")
        if not self.folder.is_dir():
            make_folder(self.folder)
        key = Key(f"{about}-{secrets.token_hex(8)}", secrets.token_bytes(_KEY_BYTES))
        # As hexadecimal text: a scan would find short ids in random bytes by chance.
        write_file(self.folder / key.name, key.secret.hex().encode())
        return key

    def read(self, name: str) -> Key:
        """Return a key; without it nobody can be served."""
        path = self.folder / name
        try:
            key = bytes.fromhex(path.read_text("ascii"))
        except FileNotFoundError:
            raise KeyMissing(
                f"{path} is gone, and without it nobody can read who has asked to be erased, so nobody is served: "
                f"restore {path.parent} from its newest copy, and the database too if it was restored from an older one"
                "; or, if there is no copy, begin a new queue with ",
                beginning(self.folder.parent),
            ) from None
        except OSError as error:
            raise SuppressionUnknown(
                f"{path} can't be read ({error.strerror}), and it opens who has asked to be erased, so nobody is "
                "served: run this as the user who runs the service"
            ) from error
        except ValueError:
            key = b""
        if len(key) != _KEY_BYTES:
            raise KeyMissing(
                f"{path} is damaged, and it opens who has asked to be erased, so nobody is served: restore it "
                "from its newest copy; or, if there is none, begin a new queue with ",
                beginning(self.folder.parent),
            )
        return Key(name, key)

    def names(self) -> set[str]:
        """Return the names of all keys."""
        found = self.folder.iterdir() if self.folder.is_dir() else ()
        return {path.name for path in found if _NAME.fullmatch(path.name)}

    def destroy(self, names: Collection[str]) -> None:
        """Overwrite and remove keys; what was encrypted with them can no longer be read anywhere."""
        paths = [self.folder / name for name in names]
        if len(paths) < _MANY:
            for path in paths:
                _destroy(path)
        else:
            with ThreadPoolExecutor(_MANY) as pool:  # a disk flushes many files at once almost as fast as one
                list(pool.map(_destroy, paths))
        if paths:
            flush_folder(self.folder)


def _destroy(path: Path) -> None:
    try:
        overwrite_file(path, b"-" * 2 * _KEY_BYTES)
        remove_file(path)
    except WorkspaceError:
        if path.exists():  # else another server has removed it
            raise


def seal(key: bytes, about: str, content: Any) -> bytes:  # noqa: ANN401 - whatever JSON can say
    """Encrypt a value, bound to what it is about: it can't be decrypted as anything else."""
    text = json.dumps(content, separators=(",", ":")).encode()
    padded = text.ljust(-(-len(text) // _PADDED_TO) * _PADDED_TO)
    return encrypt(key, padded, about)


def unseal(key: bytes, about: str, sealed: bytes) -> Any:  # noqa: ANN401 - whatever JSON can say
    """Decrypt a value."""
    try:
        return json.loads(decrypt(key, sealed, about))
    except (InvalidTag, ValueError) as error:
        raise QueueLost(
            "the queue holds something that its key does not open, so nobody knows who has asked to be erased, and "
            "nobody is served: restore the database and the folder of keys from copies of the same time"
        ) from error
