"""Personal data in an external database: encrypted with keys of the workspace, decrypted in memory only.

No table or index holds an id or the digest of one, so nothing there can be looked up by person. Each process keeps the
open requests decrypted, and learns from the numbered changes which of them are new, changed or gone.
"""

import json
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from erasable.errors import QueueLost
from erasable.requests._key_files import Key, KeyFiles, seal, unseal
from erasable.requests._sqlite_file import in_parts, marks
from erasable.requests.database import Connection, Row, Value, WaitingInteraction
from erasable.requests.request import Request

Mark = tuple[int, str]
"""The number and the random id of the newest change; the id tells apart two histories with the same numbers."""

SEALED_TABLES = """
CREATE TABLE changes (
    change_number BIGINT PRIMARY KEY,
    change_id TEXT NOT NULL UNIQUE,
    change_time DOUBLE PRECISION NOT NULL,
    touched TEXT NOT NULL
);
CREATE TABLE intake_keys (key_name TEXT PRIMARY KEY, dropped BIGINT NOT NULL);
ALTER TABLE intake ADD COLUMN key_name TEXT NOT NULL;
CREATE INDEX intake_by_key ON intake (key_name);
ALTER TABLE open_requests ADD COLUMN key_name TEXT NOT NULL;
ALTER TABLE remarks ADD COLUMN key_name TEXT NOT NULL;
"""
"""Added to the queue's tables: what each change touched, and the key of each encrypted row."""
_WAITING = "waiting"
_LABEL = "label"
LABEL_LOST = "(its key is lost: rename the token)"


class OlderSnapshot(Exception):
    """Another thread has already read later changes than this transaction sees."""


@dataclass
class Touched:
    """What a change did to personal data: subjects by request (None: deleted), keys, dropped interactions."""

    subjects: dict[str, Request | None] = field(default_factory=dict)
    keys: dict[str, Key] = field(default_factory=dict)
    dropped: list[int] = field(default_factory=list)
    added: bool = False

    def written(self) -> str:
        """Return it as other processes read it; empty if nothing concerns them."""
        if not self.subjects and not self.dropped:
            return ""
        return json.dumps({"requests": sorted(self.subjects), "dropped": self.dropped})


class Transaction(Connection, Protocol):
    """A transaction on encrypted tables."""

    touched: Touched

    @property
    def mark(self) -> Mark:
        """The newest change before this transaction."""
        ...

    @property
    def newest(self) -> bool:
        """Whether no later change can exist than this transaction sees."""
        ...


@dataclass
class _Open:
    """All requests whose subject is kept, as of one change; guarded by `OpenSubjects.following`."""

    mark: Mark
    subjects: dict[str, Request] = field(default_factory=dict)
    keys: dict[str, Key] = field(default_factory=dict)
    of_user: dict[str, frozenset[str]] = field(default_factory=dict)

    def follow(self, mark: Mark, changed: Mapping[str, tuple[Request, Key] | None]) -> None:
        """Apply new, changed and deleted requests, at a cost independent of the number of open ones."""
        self.mark = mark
        for request_id, found in changed.items():
            before = self.subjects.pop(request_id, None)
            self.keys.pop(request_id, None)
            if before is not None:
                others = self.of_user.pop(before.user) - {request_id}
                self.of_user.update({before.user: others} if others else {})
            if found is not None:
                request, self.keys[request_id] = found
                self.subjects[request_id] = request
                self.of_user[request.user] = self.of_user.get(request.user, frozenset()) | {request_id}


class OpenSubjects:
    """The open requests with their subjects, decrypted in memory."""

    def __init__(self, keys: KeyFiles) -> None:
        self.keys = keys
        self.following = threading.RLock()
        self._open: _Open | None = None

    @contextmanager
    def as_of(self, transaction: Transaction) -> Iterator[_Open]:
        """Yield the open requests as of the start of a transaction, without its own changes."""
        with self.following:
            known, mark = self._open, transaction.mark
            if known is None or known.mark != mark:
                if known is not None and known.mark[0] > mark[0] and not transaction.newest:
                    raise OlderSnapshot
                known = self._open = self._followed(transaction, known, mark)
            yield known

    def take_over(self, transaction: Transaction, mark: Mark) -> None:
        """Apply a durable change of this process, without reading it back."""
        touched = transaction.touched
        with self.following:
            known = self._open
            if known is None or known.mark != transaction.mark:
                return  # the next reader reads it from the tables
            changed = {
                one: None if now is None else (now, touched.keys.get(one) or known.keys[one])
                for one, now in touched.subjects.items()
            }
            known.follow(mark, changed)

    def key_of(self, transaction: Transaction, request_id: str) -> Key:
        """Return the current key of a request, or make one."""
        forgotten = transaction.touched.subjects.get(request_id, ...) is None
        with self.as_of(transaction) as known:
            before = None if forgotten else known.keys.get(request_id)
        return transaction.touched.keys.get(request_id) or before or self.new_key(transaction, request_id)

    def new_key(self, transaction: Transaction, request_id: str) -> Key:
        """Make a new key for a request; the caller encrypts again, or drops, what has the old one."""
        made = transaction.touched.keys[request_id] = self.keys.make(request_id)
        return made

    def key_named(self, transaction: Transaction, request_id: str, name: str) -> Key:
        """Return a key of a request by its name."""
        with self.as_of(transaction) as known:
            kept = (transaction.touched.keys.get(request_id), known.keys.get(request_id))
        return next((key for key in kept if key and key.name == name), None) or self.keys.read(name)

    def _followed(self, transaction: Transaction, known: _Open | None, mark: Mark) -> _Open:
        changes = None if known is None else changes_since(transaction, known.mark, mark)
        if known is None or changes is None:
            known = _Open(mark)
            rows = transaction.execute("SELECT * FROM open_requests")
            known.follow(mark, {row["request_id"]: self._opened(row) for row in rows})
            return known
        wanted = {request_id for change in changes for request_id in change["requests"]}
        found: dict[str, tuple[Request, Key] | None] = dict.fromkeys(sorted(wanted))
        for row in rows_with(transaction, "SELECT * FROM open_requests", "request_id", wanted):
            found[row["request_id"]] = self._opened(row)
        known.follow(mark, found)
        return known

    def _opened(self, row: Row) -> tuple[Request, Key]:
        request_id, key = row["request_id"], self.keys.read(row["key_name"])
        user, items, code = unseal(key.secret, _subject(request_id), row["sealed_subject"])
        return Request(user, None if items is None else tuple(items), request_id, code), key


class SealedSubjects:
    """Who asked for what, encrypted with one key for each request."""

    def __init__(self, people: OpenSubjects) -> None:
        self._people = people

    def keep(self, connection: Connection, request: Request) -> None:
        """Keep user, items and receipt code of a request; its key is durable first."""
        transaction, request_id = own(connection), request.request_id
        key = self._people.key_of(transaction, request_id)
        sealed = seal(key.secret, _subject(request_id), [request.user, request.items, request.receipt_code])
        transaction.execute(
            "INSERT INTO open_requests (request_id, sealed_subject, key_name) VALUES (?, ?, ?) ON CONFLICT (request_id)"
            " DO UPDATE SET sealed_subject = excluded.sealed_subject, key_name = excluded.key_name",
            (request_id, sealed, key.name),
        )
        transaction.touched.subjects[request_id] = Request(
            request.user, request.items, request_id, request.receipt_code
        )

    def some(self, connection: Connection, request_ids: Collection[str]) -> list[Request]:
        """Return those of these requests whose subject is kept."""
        transaction = own(connection)
        changed = transaction.touched.subjects
        with self._people.as_of(transaction) as known:
            found = [changed[one] if one in changed else known.subjects.get(one) for one in request_ids]
        return [request for request in found if request is not None]

    def of_user(self, connection: Connection, user: str) -> list[Request]:
        """Return the requests of one person whose subject is kept."""
        transaction = own(connection)
        changed = transaction.touched.subjects
        with self._people.as_of(transaction) as known:
            before = [known.subjects[one] for one in sorted(known.of_user.get(user, ())) if one not in changed]
        return before + [one for one in changed.values() if one is not None and one.user == user]

    def all(self, connection: Connection) -> list[Request]:
        """Return all requests whose subject is kept."""
        transaction = own(connection)
        with self._people.as_of(transaction) as known:
            found = {**known.subjects, **transaction.touched.subjects}
        return [request for request in found.values() if request is not None]

    def count(self, connection: Connection) -> int:
        """Return the number of requests whose subject is kept."""
        transaction = own(connection)
        if transaction.touched.subjects:
            return len(self.all(transaction))
        with self._people.as_of(transaction) as known:
            return len(known.subjects)

    def forget(self, connection: Connection, request_ids: Collection[str]) -> None:
        """Delete the subjects and remarks of these requests; `Database.wipe` destroys their keys."""
        transaction = own(connection)
        with self._people.as_of(transaction):
            pass  # read the changes of others first, before anything is deleted here
        rows = [(request_id,) for request_id in request_ids]
        transaction.execute_many("DELETE FROM open_requests WHERE request_id = ?", rows)
        transaction.execute_many("DELETE FROM remarks WHERE request_id = ?", rows)
        transaction.touched.subjects.update(dict.fromkeys(request_ids))


class SealedRemarks:
    """Text that someone typed in, encrypted with the key of its request, which is replaced when any is dropped."""

    def __init__(self, people: OpenSubjects, subjects: SealedSubjects) -> None:
        self._people = people
        self._subjects = subjects

    def keep(self, connection: Connection, number: int, request_id: str, said: Mapping[str, str]) -> None:
        """Keep the text typed in with an event."""
        transaction = own(connection)
        key = self._people.key_of(transaction, request_id)
        transaction.execute(
            "INSERT INTO remarks (event_number, request_id, sealed_facts, key_name) VALUES (?, ?, ?, ?)",
            (number, request_id, seal(key.secret, _remark(number), dict(said)), key.name),
        )

    def of(self, connection: Connection, request_ids: Collection[str] | None) -> dict[int, Mapping[str, str]]:
        """Return the texts of some requests, or of all if None, by event number."""
        transaction, statement = own(connection), "SELECT * FROM remarks"
        if request_ids is None:
            rows = transaction.execute(statement)
        else:
            rows = rows_with(transaction, statement, "request_id", request_ids)
        return {int(row["event_number"]): self._opened(transaction, row) for row in rows}

    def drop(self, connection: Connection, numbers: Collection[int]) -> None:
        """Delete the texts of some events; `Database.wipe` destroys their keys."""
        transaction = own(connection)
        of = {row["request_id"] for row in rows_with(transaction, "SELECT * FROM remarks", "event_number", numbers)}
        for request_id in sorted(of):
            rest = {
                number: said for number, said in self.of(transaction, [request_id]).items() if number not in numbers
            }
            kept = self._subjects.some(transaction, [request_id])
            transaction.execute("DELETE FROM remarks WHERE request_id = ?", (request_id,))
            if rest or kept:
                self._people.new_key(transaction, request_id)
            for request in kept:
                self._subjects.keep(transaction, request)
            for number, said in rest.items():
                self.keep(transaction, number, request_id, said)

    def _opened(self, transaction: Transaction, row: Row) -> Mapping[str, str]:
        key = self._people.key_named(transaction, row["request_id"], row["key_name"])
        found: Mapping[str, str] = unseal(key.secret, _remark(row["event_number"]), row["sealed_facts"])
        return found


@dataclass
class _WaitingUsers:
    """Which user each waiting interaction belongs to, as of one change."""

    mark: Mark
    last: int = 0
    user_of: dict[int, str] = field(default_factory=dict)
    of_user: dict[str, set[int]] = field(default_factory=dict)

    def add(self, found: Iterable[WaitingInteraction]) -> None:
        """Add newer interactions."""
        for one in found:
            self.user_of[one.number] = one.user
            self.of_user.setdefault(one.user, set()).add(one.number)
            self.last = max(self.last, one.number)

    def drop(self, numbers: Iterable[int]) -> None:
        """Remove interactions that are gone."""
        for number in numbers:
            user = self.user_of.pop(number, None)
            if user is not None:
                self.of_user[user].discard(number)
                if not self.of_user[user]:
                    del self.of_user[user]


class SealedWaiting:
    """Interactions waiting to be learned, encrypted with a key that is replaced when any are dropped."""

    def __init__(self, people: OpenSubjects) -> None:
        self._keys = people.keys
        self._following = people.following
        self._users: _WaitingUsers | None = None

    def add(self, connection: Connection, interactions: Sequence[WaitingInteraction]) -> None:
        """Append interactions."""
        if not interactions:
            return
        transaction = own(connection)
        rows = transaction.execute("SELECT key_name FROM intake_keys WHERE dropped = 0 ORDER BY key_name LIMIT 1")
        key = self._keys.read(rows[0]["key_name"]) if rows else self._new_key(transaction)
        sealed = [(_sealed(key, one), key.name) for one in interactions]
        transaction.execute_many("INSERT INTO intake (sealed_interaction, key_name) VALUES (?, ?)", sealed)
        transaction.touched.added = True

    def of_user(self, connection: Connection, user: str) -> list[WaitingInteraction]:
        """Return those of one person, in order of arrival."""
        transaction = own(connection)
        with self._following:
            users = self._followed(transaction)
            numbers = set(users.of_user.get(user, ()))
            last = users.last
        # What this change itself added is not in memory until it is durable.
        late = self._after(transaction, last) if transaction.touched.added else []
        rows = rows_with(transaction, "SELECT * FROM intake", "interaction_number", sorted(numbers))
        return self._opened(rows) + [one for one in late if one.user == user]

    def all(self, connection: Connection) -> list[WaitingInteraction]:
        """Return all, in order of arrival."""
        return self._after(connection, 0)

    def drop(self, connection: Connection, numbers: Collection[int]) -> None:
        """Drop some, by number; `Database.wipe` destroys their key."""
        transaction, wanted = own(connection), sorted(numbers)
        named = rows_with(transaction, "SELECT DISTINCT key_name FROM intake", "interaction_number", wanted)
        names = sorted({row["key_name"] for row in named})
        transaction.execute_many("UPDATE intake_keys SET dropped = 1 WHERE key_name = ?", [(name,) for name in names])
        transaction.execute_many("DELETE FROM intake WHERE interaction_number = ?", [(number,) for number in wanted])
        transaction.touched.dropped += wanted

    def change_keys(self, connection: Connection) -> None:
        """Encrypt again what shares a key with dropped interactions, so that the key can be destroyed."""
        transaction = own(connection)
        worn = [row["key_name"] for row in transaction.execute("SELECT key_name FROM intake_keys WHERE dropped <> 0")]
        rest = self._opened(rows_with(transaction, "SELECT * FROM intake", "key_name", worn))
        if rest:
            key = self._new_key(transaction)
            transaction.execute_many(
                "UPDATE intake SET sealed_interaction = ?, key_name = ? WHERE interaction_number = ?",
                [(_sealed(key, one), key.name, one.number) for one in rest],
            )
        transaction.execute_many("DELETE FROM intake_keys WHERE key_name = ?", [(name,) for name in worn])

    def take_over(self, transaction: Transaction, mark: Mark) -> None:
        """Apply what a durable change of this process dropped."""
        with self._following:
            known = self._users
            if known is not None and known.mark == transaction.mark and not transaction.touched.added:
                known.drop(transaction.touched.dropped)
                known.mark = mark

    def _new_key(self, transaction: Transaction) -> Key:
        key = self._keys.make(_WAITING)
        transaction.execute("INSERT INTO intake_keys VALUES (?, 0)", (key.name,))
        return key

    def _after(self, connection: Connection, number: int) -> list[WaitingInteraction]:
        return self._opened(connection.execute("SELECT * FROM intake WHERE interaction_number > ?", (number,)))

    def _followed(self, transaction: Transaction) -> _WaitingUsers:
        """Return the users of all durable interactions, as of this transaction or later."""
        known, mark = self._users, transaction.mark
        if known is not None and (known.mark == mark or (known.mark[0] > mark[0] and not transaction.newest)):
            return known
        changes = None if known is None else changes_since(transaction, known.mark, mark)
        if known is None or changes is None:
            known = self._users = _WaitingUsers((0, ""))
        if not transaction.touched.added:
            known.add(self._after(transaction, known.last))
            known.drop(number for change in changes or () for number in change["dropped"])
            known.mark = mark
        return known

    def _opened(self, rows: Iterable[Row]) -> list[WaitingInteraction]:
        found = sorted(rows, key=lambda row: int(row["interaction_number"]))
        keys = {name: self._keys.read(name) for name in {row["key_name"] for row in found}}
        opened = []
        for row in found:
            user, item, rating, time = unseal(keys[row["key_name"]].secret, row["key_name"], row["sealed_interaction"])
            opened.append(WaitingInteraction(user, item, rating, time, row["interaction_number"]))
        return opened


class SealedLabels:
    """Labels of tokens, each encrypted with its own key and stored behind the key's name."""

    def __init__(self, keys: KeyFiles) -> None:
        self._keys = keys

    def written(self, label: str) -> str:
        """Return the encrypted label; `Database.wipe` destroys the key of a label that it replaces."""
        if not label:
            return ""
        key = self._keys.make(_LABEL)
        return f"{key.name} {seal(key.secret, key.name, label).hex()}"

    def read(self, written: str) -> str:
        """Return the decrypted label; a lost key only costs the label."""
        if not written:
            return ""
        name, _, sealed = written.partition(" ")
        try:
            return str(unseal(self._keys.read(name).secret, name, bytes.fromhex(sealed)))
        except QueueLost:
            return LABEL_LOST


def _sealed(key: Key, one: WaitingInteraction) -> bytes:
    return seal(key.secret, key.name, [one.user, one.item, one.rating, one.time])


def keys_in_use(connection: Connection) -> set[str]:
    """Return the names of all keys in use."""
    return {
        row["name"]
        for row in connection.execute(
            "SELECT key_name AS name FROM open_requests UNION SELECT key_name FROM remarks "
            "UNION SELECT key_name FROM intake_keys UNION SELECT split_part(label, ' ', 1) FROM tokens"
        )
    }


def changes_since(transaction: Transaction, known: Mark, mark: Mark) -> list[Mapping[str, Any]] | None:
    """Return what the changes after one mark, up to another, touched; None if they are no longer listed."""
    rows = transaction.execute(
        "SELECT change_number, change_id, touched FROM changes WHERE change_number >= ? AND change_number <= ? "
        "AND (touched <> '' OR change_number = ?) ORDER BY change_number",
        (known[0], mark[0], known[0]),
    )
    if known != (0, "") and (not rows or (rows[0]["change_number"], rows[0]["change_id"]) != known):
        return None
    return [json.loads(row["touched"]) for row in rows if row["touched"] and row["change_number"] > known[0]]


def rows_with(
    connection: Connection, statement: str, column: str, values: Collection[str] | Collection[int]
) -> list[Row]:
    """Return the rows in which a column has one of these values."""
    wanted: list[Value] = list(values)
    found: list[Row] = []
    for part in in_parts(wanted):
        found += connection.execute(f"{statement} WHERE {column} IN ({marks(part)})", part)
    return found


def own(connection: Connection) -> Transaction:
    """Return a connection typed as the transaction that it is here."""
    return cast(Transaction, connection)


def _subject(request_id: str) -> str:
    return f"subject of {request_id}"


def _remark(number: int) -> str:
    return f"remark {number}"
