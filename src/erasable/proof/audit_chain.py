"""The audit chain: a record of each learn, forget and verify, in which each record carries the hash of the one before.

Records outlive the people they are about: they hold times, request ids and salted digests, nothing else.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from erasable import fingerprint
from erasable.proof.canonical import canonical
from erasable.proof.clock import now

BEGINNING = "0" * 64
"""What the first record names as the one before."""
RECORD_FIELDS = ("number", "previous", "at", "what", "hash")

Record = dict[str, Any]


class Head(NamedTuple):
    """The last record of a chain: how many there are, and the hash of the last."""

    number: int
    hash: str


def add_record(chain: bytes, what: str, facts: Mapping[str, Any]) -> bytes:
    """Return a chain with one more record."""
    head = head_of(chain)
    record = {"number": head.number + 1, "previous": head.hash, "at": now(), "what": what, **facts}
    return chain + canonical(record | {"hash": _hash(record)}) + b"\n"


def head_of(chain: bytes) -> Head:
    """Return the last record's number and hash; of an empty chain 0 and the beginning.

    The end of a chain is enough: a record says its own number.
    """
    if not chain:
        return Head(0, BEGINNING)
    last = json.loads(chain[chain.rstrip(b"\n").rfind(b"\n") + 1 :])
    return Head(last["number"], last["hash"])


def records_of(chain: bytes) -> list[Record]:
    """Return the records of a chain that is whole."""
    return [json.loads(line) for line in chain.splitlines()]


def first_fault(chain: bytes, pinned: tuple[Head, ...] = ()) -> str | None:
    """Say which record was removed, changed or put elsewhere, if one was.

    `pinned` are heads that were written down elsewhere, such as in certificates: a chain that was cut off, or made
    anew from some record on, does not lead through them.
    """
    hashes = [BEGINNING]
    for number, line in enumerate(chain.split(b"\n")[:-1], start=1):
        fault = _fault(line, number, hashes[-1])
        if fault:
            return fault
        hashes.append(json.loads(line)["hash"])
    if chain and not chain.endswith(b"\n"):
        return f"record {len(hashes)} is cut off"
    return next((_pin_fault(pin, hashes) for pin in pinned if hashes[pin.number : pin.number + 1] != [pin.hash]), None)


def _fault(line: bytes, number: int, previous: str) -> str | None:
    record = _read(line)
    if record is None:
        return f"record {number} was changed"
    if record["number"] != number:
        return f"record {number} is missing: record {record['number']} stands in its place"
    if record["previous"] != previous:
        return f"record {number} does not follow the one before it: one of the two was put there afterwards"
    return None


def _read(line: bytes) -> Record | None:
    """Return a record that says what its hash says, written in the one way there is."""
    try:
        record = json.loads(line)
        claimed = record["hash"]
        rest = {name: value for name, value in record.items() if name != "hash"}
        whole = canonical(record) == line and _hash(rest) == claimed and {*RECORD_FIELDS} <= {*record}
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return record if whole else None


def _pin_fault(pin: Head, hashes: list[str]) -> str:
    if pin.number >= len(hashes):
        return f"the records after number {len(hashes) - 1} are missing: a certificate names record {pin.number}"
    return f"record {pin.number} is not the one that a certificate names: the chain was made anew"


def _hash(record: Mapping[str, Any]) -> str:
    return fingerprint.of_bytes(canonical(record))
