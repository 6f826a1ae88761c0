"""One bucket or many: how many people lie in a bucket decides no byte, so heavy tests run with both."""

from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

import pytest

from erasable.chain import buckets
from kit.choosing import cases

FEW = 5
"""So few people in a bucket that small data have many."""
SIZES = {"one bucket": buckets.PEOPLE_IN_A_BUCKET, "many buckets": FEW}


@contextmanager
def in_buckets_of(people: int) -> Iterator[None]:
    """Let about so many people lie in a bucket, in this process and those forked from it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(buckets, "PEOPLE_IN_A_BUCKET", people)
        yield


def by_name(name: str) -> int:
    """Return a size for a case, by its name alone: half of all cases have many buckets."""
    return [*SIZES.values()][crc32(name.encode()) % 2]


def in_buckets(quick: str) -> pytest.MarkDecorator:
    """Run a test with one bucket and with many, in the quick suite with those named; its module has `people`."""
    return pytest.mark.parametrize("people", cases(SIZES, [quick]), indirect=True)
