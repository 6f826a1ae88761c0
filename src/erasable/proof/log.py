"""The log: a record of each learn, forget and verify, each with the hash of the one before.

Records outlive the people they are about, so they hold only times, request ids and salted digests.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import ConfigDict, ValidationError

from erasable import fingerprint
from erasable.documents import format_in, newer, read_json, sealed_bytes, with_seal
from erasable.errors import NewerDocument, WorkspaceDamaged
from erasable.proof.certificate import CertifiedStep, FrozenDocument, canonical, now

FORMAT = 2
"""Records of 0.1 have no format number, which counts as 1; they hash their fields, later ones their bytes."""
BEGINNING = "0" * 64
"""The hash that the first record names as the previous one."""
RECORD_FIELDS = ("number", "previous", "at", "what", "hash")
FACTS = (
    *("format", "version", "state", "data", "erasable", "public_key", "readmitted"),
    *("stages", "steps", "cost", "duration", "files", "certificates", "pages"),
    *("identical", "compared"),
    *("adopted", "trained", "kept", "before", "after"),
    "taken_in",
)
"""Further fields of records, of this version or an earlier one."""
_DAMAGED = "the log is damaged: restore the workspace from a copy made after the last erasure"

Record = dict[str, Any]


class Head(NamedTuple):
    """The last record of the log: its number and hash."""

    number: int
    hash: str


NO_RECORD = Head(0, BEGINNING)
"""The head of an empty log."""


class _Read(FrozenDocument):
    """The fields of a record that are read; other fields may hold anything."""

    model_config = ConfigDict(extra="ignore", strict=True)

    format: int = 1
    number: int
    previous: str
    at: str
    what: str
    hash: str
    version: int | None = None
    state: str | None = None
    data: str | None = None
    public_key: str | None = None
    certificates: dict[str, str] | None = None
    pages: dict[str, str] | None = None
    steps: list[CertifiedStep] | None = None


def add_record(chain: bytes, what: str, facts: Mapping[str, Any]) -> bytes:
    """Return the log with one more record."""
    head = head_of(chain)
    known = {"format": FORMAT, "number": head.number + 1, "previous": head.hash, "at": now(), "what": what, "hash": ""}
    unsealed = canonical({**facts, **known})
    return chain + with_seal(unsealed, "hash", fingerprint.of_bytes(unsealed)) + b"\n"


def head_of(chain: bytes) -> Head:
    """Return the last record's number and hash.

    The end of the log is enough, since a record holds its own number.
    """
    if not chain:
        return NO_RECORD
    (last,) = records_of(chain[chain.rstrip(b"\n").rfind(b"\n") + 1 :])
    return Head(last["number"], last["hash"])


def records_of(chain: bytes) -> list[Record]:
    """Return the records of a log; refused if it is damaged."""
    try:
        records: list[Record] = [json.loads(line) for line in chain.split(b"\n") if line]
    except (ValueError, RecursionError):
        raise WorkspaceDamaged(_DAMAGED) from None
    if not all(map(_is_record, records)):
        later = newer_record(chain)
        raise NewerDocument(f"the log: {later}") if later else WorkspaceDamaged(_DAMAGED)
    return records


def _is_record(found: object) -> bool:
    """Whether each field that is read has the type that this version or an earlier one writes."""
    try:
        return _Read.model_validate(found).format in _HASHED
    except ValidationError:
        return False


def says_more_than_known(chain: bytes) -> bool:
    """Whether any record has a field that this version does not know."""
    return any(record.keys() - {*RECORD_FIELDS, *FACTS} for record in records_of(chain))


def newer_record(chain: bytes, before: Head = NO_RECORD) -> str | None:
    """Name the first record with a newer format, if there is one."""
    lines = enumerate(chain.split(b"\n")[:-1], start=before.number + 1)
    return next((said for number, line in lines if (said := _newer(line, number))), None)


def head_before(chain: bytes) -> Head:
    """Return the head of the earlier records, stored elsewhere, as named in the first record."""
    first, *_ = records_of(chain.split(b"\n", 1)[0]) or [{"number": 1, "previous": BEGINNING}]
    return Head(first["number"] - 1, first["previous"])


def first_fault(chain: bytes, pinned: tuple[Head, ...] = (), before: Head = NO_RECORD) -> str | None:
    """Say which record was removed, changed or moved, if one was.

    `pinned` are heads recorded elsewhere, such as in certificates: a log that was truncated, or rewritten from some
    record on, does not contain them. `before` is the head of earlier records.
    """
    hashes = [before.hash]
    for number, line in enumerate(chain.split(b"\n")[:-1], start=before.number + 1):
        fault = _fault(line, number, hashes[-1])
        if fault:
            return fault
        hashes.append(json.loads(line)["hash"])
    if chain and not chain.endswith(b"\n"):
        return f"record {before.number + len(hashes)} is cut off"
    known = dict(enumerate(hashes, start=before.number))
    later = (pin for pin in pinned if pin.number >= before.number)
    return next((_pin_fault(pin, max(known)) for pin in later if known.get(pin.number) != pin.hash), None)


def _fault(line: bytes, number: int, previous: str) -> str | None:
    record = _read(line)
    if record is None:
        return _newer(line, number) or f"record {number} was changed"
    if record["number"] != number:
        return f"record {number} is missing: record {record['number']} stands in its place"
    if record["previous"] != previous:
        return f"record {number} does not follow the one before it: one of the two was put there afterwards"
    return None


def _read(line: bytes) -> Record | None:
    """Return a record, None if its hash does not fit."""
    try:
        record: Record = read_json(line)
        hashed = _HASHED[format_in(record, unnamed=1)](line, record)
        whole = hashed is not None and fingerprint.of_bytes(hashed) == record["hash"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return record if whole and _is_record(record) else None


def _newer(line: bytes, number: int) -> str | None:
    try:
        found = format_in(read_json(line), unnamed=1) or 0
    except (ValueError, AttributeError):
        return None
    return f"record {number} {newer(found, FORMAT)}" if found > FORMAT else None


def _hashed_in_1(line: bytes, record: Record) -> bytes | None:
    """Return the hashed bytes of a record of 0.1: the canonical JSON of its fields without the hash."""
    return canonical({name: record[name] for name in record.keys() - {"hash"}}) if canonical(record) == line else None


def _hashed_in_2(line: bytes, record: Record) -> bytes | None:
    """Return the hashed bytes of a record: all of them, with nothing between the quotes of the hash."""
    return sealed_bytes(line, "hash", record["hash"])


_HASHED: dict[int | None, Callable[[bytes, Record], bytes | None]] = {1: _hashed_in_1, FORMAT: _hashed_in_2}


def _pin_fault(pin: Head, last: int) -> str:
    if pin.number > last:
        return f"the records after number {last} are missing: a certificate names record {pin.number}"
    return f"record {pin.number} is not the one that a certificate names: the log was rewritten"
