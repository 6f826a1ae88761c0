"""What is published for models gives the bytes that it gave; where it does not, `HELPERS_REVISION` goes up."""

import numpy as np

from erasable.data import Ids
from erasable.fingerprint import of_arrays
from erasable.models import HELPERS_REVISION, missing_item, shuffled
from erasable.seeding import child_key, id_keys, mix, normals
from erasable.seeding.compiled import below, compiled, draw
from erasable.testing._suite import table
from kit.counts import Counts

OF_REVISION = {1: "4a1c4e42ac90a7822e1c9406c7cbcca3b5edad782fc1df2432106b2057e2bfdd"}


@compiled
def drawn(key, count):
    """Draw numbers inside compiled code, as kernels do, and sum them as they are written."""
    found, total = np.empty(count, np.int64), np.float32(0)
    for number in range(count):
        found[number] = below(draw(key, np.uint64(number)), 1 + number)
        total += np.float32(1) / np.float32(1 + found[number])
    return found, total


def test_helpers_give_the_bytes_of_their_revision():
    keys = id_keys(3, "a purpose", ["ann", "bob", "Zoë", ""])
    key, owned = np.uint64(child_key(3, "stage", 1, 2)), np.array([0, 3, 4, 9], np.int32)
    numbers, total = drawn(key, 50)
    rows, model = table({"u": "ab", "v": "b"}), Counts()
    found = {
        "keys": keys,
        "mixed": mix(keys, np.arange(4, dtype=np.uint64)),
        "normals": normals(keys, 5),
        "shuffled": shuffled(100, key),
        "missing": np.array([missing_item(owned, rank) for rank in range(8)]),
        "drawn": numbers,
        "total": np.array([total], np.float32),
        "extended": model.extended(model.start(rows.items, 1), Ids.of("abcd"), 1)["counts"],
    }
    assert of_arrays(found) == OF_REVISION[HELPERS_REVISION]
