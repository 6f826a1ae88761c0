"""The issuer's name: remembered, carried by certificates, changed and dropped, and nobody's id."""

import json
import shutil
from pathlib import Path

import pytest

from erasable.errors import Refused, ResidueFound, UnknownUser
from erasable.operations import DiskStorage, forget, issuing_as, learn_more, name_issuer, scan
from erasable.requests import Request
from erasable.scan._folder import DECLARED
from kit.copies import copy_of

NEWCOMER = "newcomer-4711"


def issuers(storage) -> list[str | None]:
    with storage.reading() as session:
        return [json.loads(content)["issuer"] for name, content in session.issued().items() if name.endswith(".json")]


def test_it_is_carried_from_then_on_until_it_is_changed_or_dropped(storage, as_table):
    forget(storage, [Request("ann")])
    name_issuer(storage, "Example Ltd, Bremen")
    forget(storage, [Request("bob")])
    learn_more(storage, as_table({"zoe": {"a": 5}}))
    forget(storage, [Request("cat")])
    name_issuer(storage, "  Example   & Sons ")
    forget(storage, [Request("dan")])
    name_issuer(storage, "")
    forget(storage, [Request("eve")])
    assert issuers(storage) == [None, "Example Ltd, Bremen", "Example Ltd, Bremen", "Example & Sons", None]


@pytest.mark.parametrize(
    "name", ["ann", "Ann", "Service of ann", "ann's shop", "shop (ann)", "bob/ann", "a cat, there"]
)
def test_a_name_that_holds_an_id_is_refused_and_changes_nothing(storage, name):
    name_issuer(storage, "Example Ltd")
    with pytest.raises(Refused, match="holds the id of someone in the data"):
        name_issuer(storage, name)
    forget(storage, [Request("fay")])
    assert issuers(storage) == ["Example Ltd"]


@pytest.mark.parametrize("name", ["Annexe", "planning", "cats", "Danish Ltd"])
def test_an_id_that_is_a_part_of_a_longer_word_is_none(storage, name):
    name_issuer(storage, name)
    forget(storage, [Request("ann")])
    assert issuers(storage) == [name]


def test_a_name_that_is_too_long_is_refused(storage):
    with pytest.raises(Refused, match="give a shorter one"):
        name_issuer(storage, "x" * 201)


@pytest.fixture(scope="module", params=[f"Service of {NEWCOMER}", NEWCOMER, f"{'Ö' * 150} & <{NEWCOMER}>"])
def called_so(request, learned, as_table, tmp_path_factory) -> Path:
    """A shop that was called so while certificates were issued and sealed, and that a newcomer has joined since."""
    storage = DiskStorage(copy_of(learned, tmp_path_factory.mktemp("called so") / "shop"))
    name_issuer(storage, request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("erasable.workspace._versions.OPEN_CERTIFICATES", 2)
        for user in ("ann", "bob", "cat"):
            forget(storage, [Request(user)])
    name_issuer(storage, "Example Ltd")
    learn_more(storage, as_table({NEWCOMER: {"a": 5, "b": 1}, "zoe": {"a": 2, "b": 3}}))
    return storage.path


class TestSomeoneWhoIsCalledLikeAnIssuerBefore:
    @pytest.fixture
    def shop(self, called_so, tmp_path, monkeypatch) -> DiskStorage:
        monkeypatch.setattr("erasable.workspace._versions.OPEN_CERTIFICATES", 2)
        return DiskStorage(copy_of(called_so, tmp_path / "shop"))

    def test_is_certified_and_nothing_is_found_in_sealed_or_open_documents(self, shop):
        with shop.reading() as session:
            assert session.sealed_files
        forget(shop, [Request(NEWCOMER)])
        assert scan(shop.path, NEWCOMER).residues == ()
        last = list(shop.path.glob("certificates/*.json"))
        assert any(DECLARED in json.loads(path.read_bytes())["scan"]["searched"] for path in last)

    @pytest.mark.full
    @pytest.mark.parametrize("place", ["notes.txt", "certificates/kept.json", "old/certificates/{name}"])
    def test_is_still_found_in_every_other_file(self, shop, place):
        forget(shop, [Request(NEWCOMER)])
        planted = self.planted(shop, place)
        assert {residue.file for residue in scan(shop.path, NEWCOMER).residues} == {planted}

    def test_is_not_certified_while_another_file_holds_it(self, shop):
        planted = self.planted(shop, "notes.txt")
        with pytest.raises(ResidueFound, match=planted):
            forget(shop, [Request(NEWCOMER)])
        (shop.path / planted).unlink()
        assert len(forget(shop, []).certificates) == 1

    def planted(self, shop: DiskStorage, place: str) -> str:
        """Copy a certificate with the name to another place, and return which."""
        paper = next(path for path in shop.path.glob("certificates/*.json") if NEWCOMER in path.read_text())
        planted = shop.path / place.format(name=paper.name)
        planted.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(paper, planted)
        return planted.relative_to(shop.path).as_posix()

    def test_is_still_found_beside_the_name_on_our_own_documents(self, shop):
        forget(shop, [Request(NEWCOMER)])
        paper = next(path for path in shop.path.glob("certificates/*.json") if NEWCOMER in path.read_text())
        paper.write_text(json.dumps(json.loads(paper.read_bytes()) | {"proves": f"It is about {NEWCOMER}."}))
        found = scan(shop.path, NEWCOMER).residues
        assert {residue.file for residue in found} == {f"certificates/{paper.name}"}


class TestNamedWithAnErasure:
    def test_a_refused_erasure_leaves_the_name_before(self, storage):
        name_issuer(storage, "Example Ltd")
        with pytest.raises(UnknownUser), issuing_as(storage, "Other Ltd"):
            forget(storage, [Request("nobody")])
        with storage.reading() as session:
            preferences = session.documents().preferences
        assert (preferences.issuer, preferences.issuers) == ("Example Ltd", ("Example Ltd",))

    def test_an_erasure_carries_it(self, storage):
        with issuing_as(storage, "Other Ltd"):
            forget(storage, [Request("ann")])
        with issuing_as(storage, None):
            forget(storage, [Request("bob")])
        assert issuers(storage) == ["Other Ltd", "Other Ltd"]
