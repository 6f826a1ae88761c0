"""The do-not-learn list: keyed digests of who was erased, so that no old file brings them back unnoticed."""

import fcntl
import json
import os
import re
import secrets
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from erasable.chain.dataset import Dataset
from erasable.chain.plan import Erasure
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.documents import format_in, newer
from erasable.errors import ListUnusable, Refused, Said, WorkspaceError, said
from erasable.fingerprint import DIGEST_BYTES, canonical_json
from erasable.proof._entries import entries_of, keyed, rows_among, users_among
from erasable.requests.request import Request
from erasable.workspace import files
from erasable.workspace.files import MANIFEST, WRITER_LOCK

ANOTHER_LIST = Said(
    "do_not_learn=DoNotLearnFiles(Path(LIST), Path(KEY)) in Inputs or Outside",
    "--do-not-learn LIST --do-not-learn-key KEY",
)
NO_LIST = Said("without_do_not_learn=True in Inputs or Outside", "--no-do-not-learn")
RESTORE = said(
    "restore it from its newest copy, name another with ",
    ANOTHER_LIST,
    ", or do without one (learn and forget take ",
    NO_LIST,
    ")",
)
_ELSEWHERE = said("name another list with ", ANOTHER_LIST)
_KEY_BYTES = 32
_KEY_TEXT = re.compile(rb"([0-9a-f]{64})[ \r\n]*")


def kept_apart(path: Path, key_path: Path) -> tuple[Path, Path]:
    """Return the real paths of list and key; refuse paths inside a workspace, or in the same folder."""
    # Links are followed, so that the file is replaced and not the link.
    try:
        places = Path(os.path.realpath(path)), Path(os.path.realpath(key_path))
    except ValueError:
        raise ListUnusable(f"{str(path)!r} or {str(key_path)!r} can't name a file: ", _ELSEWHERE) from None
    for place in places:
        if os.path.isdir(place):
            raise Refused(f"{place} is a folder: name a file")
        # Other programs have manifests too; only with the writer lock is it a workspace.
        if any(all(os.path.exists(folder / name) for name in (MANIFEST, WRITER_LOCK)) for folder in place.parents):
            raise Refused(
                f"{place} lies inside a workspace: keep the do-not-learn list and its key outside of any, with ",
                ANOTHER_LIST,
            )
    if places[0].parent == places[1].parent:
        raise Refused(
            f"the do-not-learn list and its key lie in the same folder, {places[0].parent}: keep the key apart, so "
            "that nobody gets it together with the list or a backup of it"
        )
    return places


def read_key(path: Path) -> bytes | None:
    """Return the key in a file, None if there is no such file."""
    content = read_content(path)
    if content is None:
        return None
    text = _KEY_TEXT.fullmatch(content)
    if text is None:
        raise ListUnusable(f"{path} is not a key of a do-not-learn list (64 hexadecimal digits): ", RESTORE)
    return bytes.fromhex(text[1].decode())


def new_list_key() -> bytes:
    """Return a new key."""
    return secrets.token_bytes(_KEY_BYTES)


def write_key(path: Path, key: bytes) -> None:
    """Write a key to a file, durably."""
    replace_content(path, key.hex().encode() + b"\n")


def refuse_unwritable(path: Path) -> None:
    """Refuse a file that could not be replaced later, before any work is done."""
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ListUnusable(
            f"{path.parent} can't be written to: let the user who runs forget write there, or ", _ELSEWHERE
        )


def read_content(path: Path) -> bytes | None:
    """Return the content of a file, None if there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ListUnusable(f"{path} can't be read ({error.strerror}): check that you may read it") from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock for writing a file; waits for it."""
    if not os.path.isdir(path.parent):
        raise Refused(f"there is no folder {path.parent}: make it first")
    with _opened(_beside(path, ".lock")) as lock:
        _take(lock)
        # Left by a killed command; nothing reads it.
        files.remove_file(_beside(path, ".new"))
        yield


def remove_locks(*paths: Path) -> None:
    """Remove the lock files of removed files."""
    for path in paths:
        files.remove_file(_beside(path, ".lock"))


def replace_content(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably, keeping its mode; a new file is readable by its owner only."""
    new = _beside(path, ".new")
    files.write_file(new, content)
    if os.path.exists(path):
        new.chmod(stat.S_IMODE(path.stat().st_mode))
    files.replace_file(new, path)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _opened(lock: Path) -> BinaryIO:
    if not os.path.exists(lock):
        files.create_empty(lock)
    try:
        return lock.open("r+b" if os.access(lock, os.W_OK) else "rb")  # NFS needs write access for an exclusive lock
    except OSError as error:
        raise WorkspaceError(f"{lock} can't be opened ({error.strerror}): check that you may read it") from error


def _take(lock: BinaryIO) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        raise WorkspaceError(f"{lock.name} can't be locked ({error.strerror}): keep it on a local disk") from error


_FORMAT = 1


@dataclass(frozen=True)
class DoNotLearnFiles:
    """The files of a do-not-learn list and its key.

    Parameters
    ----------
    list : Path
        The file of the list.
    key : Path
        The file of its key, in another folder.

    Examples
    --------
    >>> DoNotLearnFiles(Path("lists/erased.json"), Path("keys/erased.key")).list.name
    'erased.json'
    """

    list: Path
    key: Path


@dataclass(frozen=True)
class ListedCount:
    """How many erased people, and erased interactions of other people, were found."""

    users: int = 0
    interactions: int = 0

    @property
    def total(self) -> int:
        """The sum of both."""
        return self.users + self.interactions

    def __str__(self) -> str:
        return f"people: {self.users}, single interactions: {self.interactions}"


NONE_LISTED = ListedCount()


@dataclass(frozen=True)
class DoNotLearnList:
    """Keyed digests of erased people and erased interactions; without the key no guess can be tested."""

    key: bytes = field(repr=False)
    users: frozenset[bytes] = field(default=frozenset(), repr=False)
    interactions: frozenset[bytes] = field(default=frozenset(), repr=False)
    more: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    """Fields that a newer version added; they are kept when the list is written, and the seal covers them."""

    @classmethod
    def new(cls) -> "DoNotLearnList":
        """Return an empty list with a new key, in memory."""
        return cls(new_list_key())

    @classmethod
    def open(cls, named: DoNotLearnFiles) -> "DoNotLearnList":
        """Read a list; a missing or damaged one, or one with another key, is refused and never taken as empty."""
        found = _stored(*kept_apart(named.list, named.key))
        if found is None:
            raise ListUnusable(f"{named.list}: there is no do-not-learn list: ", RESTORE)
        return found

    @classmethod
    def open_or_create(cls, named: DoNotLearnFiles) -> "DoNotLearnList":
        """Read a list, or make an empty one, with a new key if there is none.

        An empty list without a key is left when a process is killed while making one; it is made again.
        """
        list_file, key_file = kept_apart(named.list, named.key)
        with locked(list_file):
            return _stored_or_begun(list_file, key_file)

    def users_among(self, users: Ids, threads: int = 1) -> NDArray[np.bool_]:
        """Return for each user whether they were erased completely."""
        return users_among(users, self.users, self.key, threads)

    def interactions_among(self, interactions: Interactions, threads: int = 1) -> tuple[NDArray[np.bool_], ListedCount]:
        """Return for each row whether it was erased, with its user or singly, and the counts of both."""
        whole = self.users_among(interactions.users, threads)
        single = rows_among(interactions, whole, self.interactions, self.key, threads)
        count = ListedCount(int(whole.sum()), int(single.sum()))
        return whole[interactions.user_index] | single, count

    def naming(self, users: Collection[str], pairs: Collection[tuple[str, str]]) -> "DoNotLearnList":
        """Return a list with the same key of only these users and (user, item) pairs."""
        of_users = entries_of(self.key, (("user", user) for user in users))
        return DoNotLearnList(self.key, of_users, entries_of(self.key, (("interaction", *pair) for pair in pairs)))

    def joined(self, other: "DoNotLearnList") -> "DoNotLearnList":
        """Return the entries of both lists, which must have the same key."""
        users, interactions = self.users | other.users, self.interactions | other.interactions
        return DoNotLearnList(self.key, users, interactions, {**other.more, **self.more})

    def without(self, other: "DoNotLearnList") -> "DoNotLearnList":
        """Return the entries that are not on the other list, which must have the same key."""
        return replace(self, users=self.users - other.users, interactions=self.interactions - other.interactions)

    def entries_of(self, user: str, interactions: Interactions) -> "DoNotLearnList":
        """Return one person's entries: for the person, and for those of the given interactions that are theirs."""
        own = interactions.of_users([user])
        named = self.naming([user], [(user, own.items[int(item)]) for item in own.item_index])
        return DoNotLearnList(self.key, self.users & named.users, self.interactions & named.interactions)

    @property
    def key_digest(self) -> str:
        """A digest that identifies the key without revealing it; it is written in the list."""
        return keyed(self.key, ["key"]).hex()

    @property
    def size(self) -> int:
        """The number of entries."""
        return len(self.users) + len(self.interactions)

    def encoded(self) -> bytes:
        """Write the list as JSON, sealed with the key, and sorted so that the order does not reveal times."""
        body = {
            **self.more,
            "format": _FORMAT,
            "key": self.key_digest,
            "users": sorted(entry.hex() for entry in self.users),
            "interactions": sorted(entry.hex() for entry in self.interactions),
        }
        return canonical_json({**body, "seal": keyed(self.key, body).hex()}) + b"\n"


def add_requests(named: DoNotLearnFiles, requests: Sequence[Request], begin: bool = True) -> int:
    """Add what is to be erased to the list, durably, and return the number of new entries.

    Without `begin`, a missing list is refused.
    """
    list_file, key_file = kept_apart(named.list, named.key)
    with locked(list_file):
        before = _stored_or_begun(list_file, key_file) if begin else DoNotLearnList.open(named)
        after = with_requests(before, requests)
        if after != before:
            replace_content(list_file, after.encoded())
    return after.size - before.size


def with_requests(before: DoNotLearnList, requests: Sequence[Request]) -> DoNotLearnList:
    """Return the list with what is to be erased added."""
    erasure = Erasure.of(requests)
    return before.joined(before.naming(erasure.users, erasure.pairs))


def replace_entries(named: DoNotLearnFiles, gone: DoNotLearnList, coming: DoNotLearnList) -> None:
    """Remove entries from an existing list and add others, durably; changes by others meanwhile are kept."""
    list_file, _ = kept_apart(named.list, named.key)
    with locked(list_file):
        before = DoNotLearnList.open(named)
        replace_content(list_file, before.without(gone).joined(coming).encoded())


def write_list(named: DoNotLearnFiles, content: DoNotLearnList) -> None:
    """Write a list and its key where there is none, or an empty one; a list with the same key is joined."""
    list_file, key_file = kept_apart(named.list, named.key)
    with locked(list_file), locked(key_file):
        there = None if _is_begun_anew(list_file, key_file) else _stored(list_file, key_file)
        if there is not None and there.size and there.key != content.key:
            raise Refused(
                f"{list_file}: a do-not-learn list of an earlier workspace lies there: move it and its key away, or "
                "give another folder"
            )
        if there is not None and there.key == content.key:
            replace_content(list_file, content.joined(there).encoded())
            return
        if there is not None:
            files.remove_file(key_file)  # from here on the empty list counts as unfinished
        _write_both(list_file, key_file, content)


def remove_request(named: DoNotLearnFiles, request: Request) -> None:
    """Remove a person, or some of their interactions, from the list, so that they may be learned again."""
    list_file, _ = kept_apart(named.list, named.key)
    with locked(list_file):
        before = DoNotLearnList.open(named)
        pairs = [(request.user, item) for item in request.items or ()]
        gone = before.naming([request.user] if request.everything else [], pairs)
        if before.joined(gone) != before:
            raise Refused("what was named is not on the do-not-learn list: check the id; nothing was changed")
        replace_content(list_file, before.without(gone).encoded())


def held(suppressed: DoNotLearnList, dataset: Dataset) -> ListedCount:
    """Count erased data that a recommender holds, as after restoring an old backup."""
    users = interactions = 0
    for bucket in dataset.buckets if suppressed.size else ():
        found = suppressed.interactions_among(bucket.training)[1]
        users += found.users
        # People with held-out interactions are in training too, and counted there.
        interactions += found.interactions + suppressed.interactions_among(bucket.held_out)[1].interactions
    return ListedCount(users, interactions)


def _stored(list_file: Path, key_file: Path) -> DoNotLearnList | None:
    content = read_content(list_file)
    if content is None:
        return None
    key = read_key(key_file)
    if key is None:
        raise ListUnusable(f"{key_file}: the key of the do-not-learn list is missing: ", RESTORE)
    return _decoded(content, key, list_file)


def _stored_or_begun(list_file: Path, key_file: Path) -> DoNotLearnList:
    found = None if _is_begun_anew(list_file, key_file) else _stored(list_file, key_file)
    if found is not None:
        return found
    with locked(key_file):  # another list may be about to use this key
        key = read_key(key_file)
        if key is None:
            found = DoNotLearnList.new()
            _write_both(list_file, key_file, found)
        else:
            found = DoNotLearnList(key)
            replace_content(list_file, found.encoded())
    return found


def remove_list(named: DoNotLearnFiles, content: DoNotLearnList) -> None:
    """Remove a list and its key, unless the list has changed."""
    list_file, key_file = kept_apart(named.list, named.key)
    with locked(list_file), locked(key_file):
        if _stored(list_file, key_file) != content:
            return
        files.remove_file(key_file)
        files.remove_file(list_file)
    remove_locks(list_file, key_file)


def _write_both(list_file: Path, key_file: Path, content: DoNotLearnList) -> None:
    # The list comes first: an empty list without a key can only mean that this was interrupted.
    replace_content(list_file, replace(content, users=frozenset(), interactions=frozenset()).encoded())
    write_key(key_file, content.key)
    if content.size:
        replace_content(list_file, content.encoded())


def _is_begun_anew(list_file: Path, key_file: Path) -> bool:
    """Whether there is an empty list without a key."""
    content = read_content(list_file)
    if content is None or read_key(key_file) is not None:
        return False
    try:
        fields = json.loads(content)
        return bool(fields["format"] == _FORMAT and fields["users"] == [] == fields["interactions"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _decoded(content: bytes, key: bytes, path: Path) -> DoNotLearnList:
    damaged = ListUnusable(f"{path}: the do-not-learn list is damaged: ", RESTORE)
    try:
        fields = json.loads(content)
        number = format_in(fields)
        if number is not None and number > _FORMAT:
            raise ListUnusable(f"{path} {newer(number, _FORMAT)}")
        fingerprint, _, _ = (fields.pop(name) for name in ("key", "seal", "format"))
        users, interactions = (frozenset(map(bytes.fromhex, fields.pop(name))) for name in ("users", "interactions"))
        found = DoNotLearnList(key, users, interactions, fields)
        if fingerprint != found.key_digest:
            raise ListUnusable(f"{path}: the do-not-learn list was made with another key: give its own")
        # Writing it again checks the rest: the seal, the order of the entries, and their spelling.
        if any(len(entry) != DIGEST_BYTES for entry in chain(users, interactions)) or found.encoded() != content:
            raise damaged
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise damaged from None
    return found
