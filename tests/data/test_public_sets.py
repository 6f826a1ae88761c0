"""Public data sets: what is known of each, and what no description may say."""

import pytest

from erasable.data.public_sets import PUBLIC_SETS, public_set
from erasable.errors import WrongUse
from kit.file_server import described


def test_the_sets_and_their_rows():
    assert {name: known.rows for name, known in PUBLIC_SETS.items()} == {
        "ml-100k": 100_000,
        "ml-1m": 1_000_209,
        "ml-10m": 10_000_054,
        "ml-20m": 20_000_263,
        "amazon-digital-music": 836_006,
    }


@pytest.mark.parametrize("known", PUBLIC_SETS.values(), ids=lambda known: known.name)
class TestEverySet:
    def test_comes_over_a_safe_connection_and_is_checked_by_sha256(self, known):
        assert known.address.startswith("https://")
        assert known.checksum.startswith("sha256:")

    def test_says_its_terms_and_where_they_are_in_full(self, known):
        assert len(known.licence) > 40
        assert known.terms.startswith("https://")

    def test_is_found_by_its_name(self, known):
        assert public_set(known.name) is known


def test_checksums_are_not_shared():
    assert len({known.checksum for known in PUBLIC_SETS.values()}) == len(PUBLIC_SETS)


def test_an_unknown_name_is_refused_with_the_names_there_are():
    with pytest.raises(WrongUse, match=r"no data set 'ml-2m': give one of ml-100k, ml-1m, .*amazon-digital-music"):
        public_set("ml-2m")


@pytest.mark.parametrize("name", ["", "../tiny", "a/b", "Tiny", ".", "-a", "a b"])
def test_a_name_is_never_a_way_to_another_folder(name):
    with pytest.raises(WrongUse, match="can't name a data set"):
        described("https://example.org/tiny.zip", b"", name=name)


@pytest.mark.parametrize("address", ["ftp://example.org/a", "file:///etc/passwd", "example.org", ""])
def test_only_web_addresses_are_taken(address):
    with pytest.raises(WrongUse, match="not a web address"):
        described(address, b"")


@pytest.mark.parametrize("checksum", ["", "sha256:", "sha256:12", "md5:" + "0" * 64, "crc32:00000000", "0" * 64, "md5"])
def test_a_checksum_names_its_algorithm_and_is_whole(checksum):
    with pytest.raises(WrongUse, match="not a checksum"):
        described("https://example.org/tiny.zip", b"", checksum=checksum)


def test_md5_is_taken_where_it_is_what_is_published():
    assert described("https://example.org/tiny.zip", b"", checksum="md5:" + "0" * 32).checksum == "md5:" + "0" * 32
