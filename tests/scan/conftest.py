"""Two people who have nothing in common but a part of their ids, and a scan for one of them."""

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from erasable.operations._vocabulary import own_vocabulary
from erasable.scan import Held, Rows, Scan, Target, scan_contents, scan_folder
from erasable.scan._search import Cells, RawSearch, Values, as_bytes, lengths_before


@dataclass(frozen=True)
class Person:
    """Everything that a file may hold of somebody."""

    user: str
    items: tuple[str, ...]
    ratings: tuple[float, ...]
    times: tuple[float, ...]
    vector: np.ndarray
    text: str

    @property
    def rows(self) -> Rows:
        return Rows(self.items, self.ratings, self.times)

    @property
    def target(self) -> Target:
        return Target(self.user, rows=self.rows, personal=(self.vector,), texts=(self.text,))


def _person(user: str, number: int) -> Person:
    vector = np.random.default_rng(number).normal(0, 0.1, 16).astype(np.float32)
    times = tuple(1_600_000_123.0 + 1000 * number + step * 77 for step in range(4))
    ratings = (5.0, 1.0, 4.0, 2.0) if number else (2.0, 2.0, 3.0, 5.0)
    return Person(
        user,
        ("apple", "berry", "cherry", "date"),
        ratings,
        times,
        vector,
        blake2b(bytes([number]), digest_size=32).hexdigest(),
    )


@pytest.fixture(scope="session", autouse=True)
def loaded_loops() -> None:
    """Load the compiled loops, or compile them, before a test whose cases have a time limit."""
    content = b"user_id,item\nsomebody-else,x\n"
    scan_contents({"f.csv": content}, [Target("customer-1"), Target("eve")], own_vocabulary())
    RawSearch.of([b"customer-1"]).places(content)
    Values.of(["customer-1"]).in_cells(Cells.of(pa.array(["somebody-else"], pa.string())))
    lengths_before(as_bytes(b""), 0)


@pytest.fixture(scope="session")
def short() -> tuple[Person, Person]:
    """Somebody with a short id, and somebody else."""
    return _person("7", 0), _person("77", 1)


@pytest.fixture(scope="session")
def long() -> tuple[Person, Person]:
    """Somebody with a long id, and somebody else whose id begins like it."""
    return _person("customer-1", 0), _person("customer-12", 1)


@pytest.fixture
def scan(tmp_path):
    """Scan the folder of the test for some people, given as targets or by their ids; others are held, or items."""

    def call(
        *wanted: Target | str, skip: tuple[str, ...] = (), held: tuple[str, ...] = (), items: tuple[str, ...] = ()
    ) -> Scan:
        targets = [Target(one) if isinstance(one, str) else one for one in wanted]
        return scan_folder(tmp_path, targets, own_vocabulary(), skip=skip, held=Held((held,), (items,)))

    return call


@pytest.fixture
def places(scan):
    """Return the places in which somebody is found, with what was found there."""

    def call(*wanted: Target | str, **others: tuple[str, ...]) -> set[tuple[str, str]]:
        return {(residue.place, residue.what) for residue in scan(*wanted, **others).residues}

    return call


@pytest.fixture
def write(tmp_path):
    """Write a file below the folder of the test."""

    def call(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return call
