import gzip

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.data import Catalogue, Ids, Interactions, read_catalogue
from erasable.errors import DataRefused, WrongUse


def test_items_present_are_frozen_by_their_bytes():
    catalogue = Catalogue.from_items(["b", "10", "9", "a"])
    assert catalogue.items.texts() == ["10", "9", "a", "b"]
    assert (catalogue.versions, catalogue.declared) == ((4,), False)


def test_the_file_order_repeats_and_blank_lines_do_not_matter(tmp_path):
    path = tmp_path / "items.txt"
    path.write_bytes(b"\xef\xbb\xbfb\r\n\r\n a\r\nb\r\n007\r\n")
    catalogue = read_catalogue(path)
    assert catalogue.items.texts() == [" a", "007", "b"]
    assert catalogue.declared
    assert catalogue.digest() == Catalogue.from_items(["b", "007", " a"]).digest()


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
    first = Catalogue.from_items(["b", "c"])
    grown = Catalogue(Ids.of(["b", "c", "a"]), (2, 3), declared=False)
    assert grown.digest(2) == first.digest()
    assert grown.digest() == grown.digest(3) != first.digest()


@pytest.mark.parametrize("versions", [(), (1,), (3,), (2, 2), (1, 3)])
def test_versions_that_do_not_fit_the_items_are_refused(versions):
    with pytest.raises(WrongUse, match="versions"):
        Catalogue(Ids.of("ab"), versions, declared=True)


def test_an_empty_catalogue_is_refused():
    with pytest.raises(DataRefused, match="empty"):
        Catalogue.from_items([])


@given(st.sets(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=1), st.sampled_from("abc"))
def test_removing_a_user_changes_no_items_number(pairs, gone):
    users, items = zip(*sorted(pairs), strict=True)
    interactions, _ = Interactions.from_columns(pa.array(users), pa.array(items))
    frozen = Catalogue.from_items(interactions.items)
    left = interactions.without([gone]).with_items(frozen.items)
    assert left.items == frozen.items
    assert left.digest() == interactions.with_items(frozen.items).without([gone]).digest()
