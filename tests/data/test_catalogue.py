import gzip
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.data import Catalogue, Ids, Interactions, over_own_items, read_catalogue
from erasable.errors import DataRefused, WrongUse


def test_declared_items_are_numbered_by_their_bytes():
    catalogue = Catalogue.from_items(["b", "10", "9", "a"])
    assert catalogue.items.texts() == ["10", "9", "a", "b"]
    assert (catalogue.versions, catalogue.declared) == ((4,), True)


def test_the_file_order_repeats_and_blank_lines_do_not_matter(tmp_path):
    path = tmp_path / "items.txt"
    path.write_bytes(b"\xef\xbb\xbfb\r\n\r\n a\r\nb\r\n007\r\n")
    catalogue = read_catalogue(path)
    assert catalogue.items.texts() == [" a", "007", "b"]
    assert catalogue.declared
    assert catalogue.items == Catalogue.from_items(["b", "007", " a"]).items


def test_a_compressed_catalogue_is_read(tmp_path):
    path = tmp_path / "items.txt.gz"
    path.write_bytes(gzip.compress(b"x\ny"))
    assert read_catalogue(str(path)).items.texts() == ["x", "y"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "items.txt is empty"),
        (b"\n \n", "items.txt: the catalogue is empty"),
        (b"a\n\xff\n", "items.txt, line 2: is not UTF-8"),
        (b"a\nb\0\n", "items.txt, line 2: holds a NUL"),
    ],
)
def test_a_bad_catalogue_is_refused(tmp_path, content, reason):
    path = tmp_path / "items.txt"
    path.write_bytes(content)
    with pytest.raises(DataRefused, match=reason):
        read_catalogue(path)


def test_a_missing_catalogue_is_refused(tmp_path):
    with pytest.raises(DataRefused, match=r"items\.txt does not exist"):
        read_catalogue(tmp_path / "items.txt")


def test_a_later_version_leaves_the_earlier_ones_as_they_were():
    grown = Catalogue.from_items(["b", "c"]).grown(["a", "c"])
    assert (grown.items.texts(), grown.versions) == (["b", "c", "a"], (2, 3))
    assert grown.grown(["a"]) is grown


@pytest.mark.parametrize("versions", [(), (1,), (3,), (2, 2), (1, 3)])
def test_versions_that_do_not_fit_the_items_are_refused(versions):
    with pytest.raises(WrongUse, match="versions"):
        Catalogue(Ids.of("ab"), versions, declared=True)


def test_an_empty_catalogue_is_refused():
    with pytest.raises(DataRefused, match="empty"):
        Catalogue.from_items([])


def rows_of(*pairs):
    return Interactions.from_columns(*(pa.array(side, pa.string()) for side in zip(*pairs, strict=True)))[0]


class TestItemsThatFollowThePeople:
    """Without a declared list, items are those that somebody has."""

    def test_all_parts_are_numbered_by_the_items_of_any_by_their_bytes(self):
        parts = [rows_of(("ann", "9"), ("ann", "b")), rows_of(("bob", "10"), ("bob", "b"))]
        found = over_own_items(parts)
        assert all(part.items.texts() == ["10", "9", "b"] for part in found)
        assert [part.item_index.tolist() for part in found] == [[1, 2], [0, 2]]

    def test_an_item_that_nobody_has_is_dropped(self):
        rows = rows_of(("ann", "a"), ("ann", "b"), ("bob", "c")).without(users=["ann"])
        (left,) = over_own_items([rows])
        assert (left.items.texts(), left.item_index.tolist()) == (["c"], [0])

    def test_what_is_numbered_like_this_is_left_as_it_is(self):
        rows = rows_of(("ann", "a"), ("bob", "b"))
        parts = [rows.of_users(["ann"]), rows.of_users(["bob"])]
        assert all(one is other for one, other in zip(over_own_items(parts), parts, strict=True))

    def test_nobody_has_nothing(self):
        (left,) = over_own_items([rows_of(("ann", "a")).of_users([])])
        assert (len(left), len(left.items)) == (0, 0)

    @pytest.mark.full
    def test_a_million_rows_take_no_second(self):
        generator = np.random.default_rng(0)
        names = pa.array([f"item {number}" for number in range(30_000)])
        keys = np.unique(generator.integers(0, 40_000 * 30_000, 1_000_000))
        users = Ids(pa.array([f"u{number:05d}" for number in range(40_000)]))
        user_index, item_index = (part.astype(np.int32) for part in np.divmod(keys, 30_000))
        rows = Interactions(users, Ids(names).sorted(), user_index, item_index, np.ones(len(keys), np.float32))
        began = time.perf_counter()
        over_own_items([rows.without(users=["u00007"]), rows.of_users(["u00007"])])
        assert time.perf_counter() - began < 1.5  # measured: 0.1 s


@given(st.sets(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=1), st.sampled_from("abc"))
def test_removing_a_user_changes_no_items_number(pairs, gone):
    users, items = zip(*sorted(pairs), strict=True)
    interactions, _ = Interactions.from_columns(pa.array(users), pa.array(items))
    frozen = Catalogue.from_items(interactions.items)
    left = interactions.without([gone]).with_items(frozen.items)
    assert left.items == frozen.items
    assert left.digest() == interactions.with_items(frozen.items).without([gone]).digest()
