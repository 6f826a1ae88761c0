"""The do-not-learn list: who was erased, as keyed hashes, so that no old file brings them back unnoticed.

One list serves all recommenders of a shop. It lies outside any workspace, and its key lies in another folder.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.data import Ids, Interactions
from erasable.documents import format_in, newer
from erasable.errors import DataRefused, ListUnusable, Refused
from erasable.fingerprint import DIGEST_BYTES, canonical_json
from erasable.proof.suppression_files import (
    RESTORE,
    kept_apart,
    locked,
    new_list_key,
    read_content,
    read_key,
    remove_locks,
    replace_content,
    write_key,
)
from erasable.requests import Request
from erasable.store import files
from erasable.training import Knowledge
from erasable.unlearning import Erasure

_FORMAT = 1


@dataclass(frozen=True)
class Suppression:
    """Where a do-not-learn list and its key are.

    Parameters
    ----------
    list : Path
        The file of the list.
    key : Path
        The file of its key, in another folder.

    Examples
    --------
    >>> Suppression(Path("lists/erased.json"), Path("keys/erased.key")).list.name
    'erased.json'
    """

    list: Path
    key: Path


@dataclass(frozen=True)
class SuppressedCount:
    """How many erased people, and how many erased interactions of others, were found."""

    users: int = 0
    interactions: int = 0

    @property
    def total(self) -> int:
        """People and single interactions together."""
        return self.users + self.interactions

    def __str__(self) -> str:
        return f"people: {self.users}, single interactions: {self.interactions}"


NONE_SUPPRESSED = SuppressedCount()


@dataclass(frozen=True)
class SuppressionList:
    """Hashes of erased people and of erased interactions; without the key no guess can be tested against them."""

    key: bytes = field(repr=False)
    users: frozenset[bytes] = field(default=frozenset(), repr=False)
    interactions: frozenset[bytes] = field(default=frozenset(), repr=False)
    more: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    """What a newer version has written beside; it stays when the list is written again, and the seal covers it."""

    @classmethod
    def new(cls) -> "SuppressionList":
        """Return an empty list with a new key, in memory."""
        return cls(new_list_key())

    @classmethod
    def open(cls, suppression: Suppression) -> "SuppressionList":
        """Read a list; one that is missing, damaged or of another key is refused, never taken as empty."""
        found = _stored(*kept_apart(suppression.list, suppression.key))
        if found is None:
            raise ListUnusable(f"{suppression.list}: there is no do-not-learn list: ", RESTORE)
        return found

    @classmethod
    def open_or_create(cls, suppression: Suppression) -> "SuppressionList":
        """Read a list, or begin an empty one, with a new key if there is none.

        A list that is empty and has no key is what a killed process leaves of a beginning: it is begun again.
        """
        list_file, key_file = kept_apart(suppression.list, suppression.key)
        with locked(list_file):
            return _stored_or_begun(list_file, key_file)

    def users_among(self, users: Ids) -> NDArray[np.bool_]:
        """Say of each user whether they were erased whole."""
        if not self.users:
            return np.zeros(len(users), dtype=bool)
        return np.array([self._user_entry(user) in self.users for user in _as_json(users)], dtype=bool)

    def interactions_among(self, interactions: Interactions) -> tuple[NDArray[np.bool_], SuppressedCount]:
        """Say of each row whether it was erased, with its user or by itself, and how many of either there are."""
        whole = self.users_among(interactions.users)
        single = self._single_rows(interactions, whole)
        count = SuppressedCount(int(whole.sum()), int(single.sum()))
        return whole[interactions.user_index] | single, count

    def naming(self, users: Collection[str], pairs: Collection[tuple[str, str]]) -> "SuppressionList":
        """Return a list with the same key that holds these users and (user, item) pairs only."""
        of_pairs = (self._pair_entry(*_as_json(pair)) for pair in pairs)
        return SuppressionList(self.key, frozenset(map(self._user_entry, _as_json(users))), frozenset(of_pairs))

    def joined(self, other: "SuppressionList") -> "SuppressionList":
        """Return the entries of both lists, which have one key."""
        users, interactions = self.users | other.users, self.interactions | other.interactions
        return SuppressionList(self.key, users, interactions, {**other.more, **self.more})

    def without(self, other: "SuppressionList") -> "SuppressionList":
        """Return the entries that are not on the other list, which has the same key."""
        return replace(self, users=self.users - other.users, interactions=self.interactions - other.interactions)

    def entries_of(self, user: str, interactions: Interactions) -> "SuppressionList":
        """Return the entries here of one person: the whole person, and those of their interactions that are given."""
        own = interactions.of_users([user])
        named = self.naming([user], [(user, own.items[int(item)]) for item in own.item_index])
        return SuppressionList(self.key, self.users & named.users, self.interactions & named.interactions)

    @property
    def key_digest(self) -> str:
        """What tells the key from others and shows nothing of it; the file of the list names it."""
        return _keyed(self.key, canonical_json(["key"])).hex()

    @property
    def size(self) -> int:
        """How many entries there are."""
        return len(self.users) + len(self.interactions)

    def encoded(self) -> bytes:
        """Write the list as sorted JSON, so that the order tells no time, sealed with the key."""
        body = {
            **self.more,
            "format": _FORMAT,
            "key": self.key_digest,
            "users": sorted(entry.hex() for entry in self.users),
            "interactions": sorted(entry.hex() for entry in self.interactions),
        }
        return canonical_json({**body, "seal": _keyed(self.key, canonical_json(body)).hex()}) + b"\n"

    def _single_rows(self, interactions: Interactions, whole: NDArray[np.bool_]) -> NDArray[np.bool_]:
        rows = np.zeros(len(interactions), dtype=bool)
        if not self.interactions:
            return rows
        items, starts = _as_json(interactions.items), interactions.user_starts.tolist()
        users = _as_json(interactions.users)
        for row in np.flatnonzero(~whole).tolist():
            rows[starts[row] : starts[row + 1]] = [
                self._pair_entry(users[row], items[item]) in self.interactions
                for item in interactions.items_at(row).tolist()
            ]
        return rows

    # The parts come as JSON already: the canonical JSON of ["user", id] is put together once for each distinct id.
    def _user_entry(self, user: bytes) -> bytes:
        return _keyed(self.key, b'["user",' + user + b"]")

    def _pair_entry(self, user: bytes, item: bytes) -> bytes:
        return _keyed(self.key, b'["interaction",' + user + b"," + item + b"]")


def add_requests(suppression: Suppression, requests: Sequence[Request], begin: bool = True) -> int:
    """Put who and what is to be forgotten on the list, durably, and say how many entries are new.

    Where nothing may `begin`, a list that is missing is refused.
    """
    list_file, key_file = kept_apart(suppression.list, suppression.key)
    with locked(list_file):
        before = _stored_or_begun(list_file, key_file) if begin else SuppressionList.open(suppression)
        after = with_requests(before, requests)
        if after != before:
            replace_content(list_file, after.encoded())
    return after.size - before.size


def with_requests(before: SuppressionList, requests: Sequence[Request]) -> SuppressionList:
    """Return a list that also holds who and what is to be forgotten."""
    erasure = Erasure.of(requests)
    return before.joined(before.naming(erasure.users, erasure.pairs))


def replace_entries(suppression: Suppression, gone: SuppressionList, coming: SuppressionList) -> None:
    """Take entries off a list that is there and put others on it, durably, whatever others have changed meanwhile."""
    list_file, _ = kept_apart(suppression.list, suppression.key)
    with locked(list_file):
        before = SuppressionList.open(suppression)
        replace_content(list_file, before.without(gone).joined(coming).encoded())


def write_list(suppression: Suppression, content: SuppressionList) -> None:
    """Write a list with its key where none is, or an empty one; one that holds the same key's entries is joined."""
    list_file, key_file = kept_apart(suppression.list, suppression.key)
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
            files.remove_file(key_file)  # from here on the empty list counts as not begun
        _write_both(list_file, key_file, content)


def remove_request(suppression: Suppression, request: Request) -> None:
    """Take a person, or the items that the request names, off the list, so that they may be learned again."""
    list_file, _ = kept_apart(suppression.list, suppression.key)
    with locked(list_file):
        before = SuppressionList.open(suppression)
        pairs = [(request.user, item) for item in request.items or ()]
        named = before.naming([request.user] if request.everything else [], pairs)
        if before.joined(named) != before:
            raise Refused("what was named is not on the do-not-learn list: check the id; nothing was changed")
        replace_content(list_file, before.without(named).encoded())


def held(suppressed: SuppressionList, knowledge: Knowledge) -> SuppressedCount:
    """Count what a recommender holds although it was erased, as after an old backup was restored."""
    in_groups = [suppressed.interactions_among(group)[1] for group in knowledge.groups]
    # Whoever has something held out is in a group too, and counted there.
    held_out = suppressed.interactions_among(knowledge.held_out)[1].interactions
    users = sum(count.users for count in in_groups)
    return SuppressedCount(users, sum(count.interactions for count in in_groups) + held_out)


def _as_json(texts: Iterable[str]) -> list[bytes]:
    try:
        return [canonical_json(text) for text in texts]
    except UnicodeEncodeError:
        raise DataRefused("an id is not valid Unicode text: give ids as text") from None


def _keyed(key: bytes, content: bytes) -> bytes:
    return blake2b(content, key=key, digest_size=DIGEST_BYTES).digest()


def _stored(list_file: Path, key_file: Path) -> SuppressionList | None:
    content = read_content(list_file)
    if content is None:
        return None
    key = read_key(key_file)
    if key is None:
        raise ListUnusable(f"{key_file}: the key of the do-not-learn list is missing: ", RESTORE)
    return _decoded(content, key, list_file)


def _stored_or_begun(list_file: Path, key_file: Path) -> SuppressionList:
    found = None if _is_begun_anew(list_file, key_file) else _stored(list_file, key_file)
    if found is not None:
        return found
    with locked(key_file):  # another list may be about to begin with this key
        key = read_key(key_file)
        if key is None:
            found = SuppressionList.new()
            _write_both(list_file, key_file, found)
        else:
            found = SuppressionList(key)
            replace_content(list_file, found.encoded())
    return found


def remove_list(suppression: Suppression, content: SuppressionList) -> None:
    """Remove a list and its key, unless someone has changed the list since."""
    list_file, key_file = kept_apart(suppression.list, suppression.key)
    with locked(list_file), locked(key_file):
        if _stored(list_file, key_file) != content:
            return
        files.remove_file(key_file)
        files.remove_file(list_file)
    remove_locks(list_file, key_file)


def _write_both(list_file: Path, key_file: Path, content: SuppressionList) -> None:
    # The list comes first: an empty one without a key can only be a beginning that was cut off.
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


def _decoded(content: bytes, key: bytes, path: Path) -> SuppressionList:
    damaged = ListUnusable(f"{path}: the do-not-learn list is damaged: ", RESTORE)
    try:
        fields = json.loads(content)
        number = format_in(fields)
        if number is not None and number > _FORMAT:
            raise ListUnusable(f"{path} {newer(number, _FORMAT)}")
        fingerprint, _, _ = (fields.pop(name) for name in ("key", "seal", "format"))
        users, interactions = (frozenset(map(bytes.fromhex, fields.pop(name))) for name in ("users", "interactions"))
        found = SuppressionList(key, users, interactions, fields)
        if fingerprint != found.key_digest:
            raise ListUnusable(f"{path}: the do-not-learn list was made with another key: give its own")
        # Writing it again covers the rest: the seal, the order of the entries, and how they are written.
        if any(len(entry) != DIGEST_BYTES for entry in chain(users, interactions)) or found.encoded() != content:
            raise damaged
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise damaged from None
    return found
