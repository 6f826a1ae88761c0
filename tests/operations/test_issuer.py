"""The issuer's name: remembered, carried by certificates, changed and dropped, and nobody's id."""

import json

import pytest

from erasable.errors import Refused
from erasable.operations import forget, learn_more, name_issuer
from erasable.unlearning import Request


def issuers(home) -> list[str | None]:
    with home.reading() as session:
        return [json.loads(content)["issuer"] for name, content in session.issued().items() if name.endswith(".json")]


def test_it_is_carried_from_then_on_until_it_is_changed_or_dropped(home, as_table):
    forget(home, [Request("ann")])
    name_issuer(home, "Example Ltd, Bremen")
    forget(home, [Request("bob")])
    learn_more(home, as_table({"zoe": {"a": 5}}))
    forget(home, [Request("cat")])
    name_issuer(home, "  Example   & Sons ")
    forget(home, [Request("dan")])
    name_issuer(home, "")
    forget(home, [Request("eve")])
    assert issuers(home) == [None, "Example Ltd, Bremen", "Example Ltd, Bremen", "Example & Sons", None]


@pytest.mark.parametrize("name", ["ann", "Ann", "Shop of ann", "ann's shop", "shop (ann)", "bob/ann", "a cat, there"])
def test_a_name_that_holds_an_id_is_refused_and_changes_nothing(home, name):
    name_issuer(home, "Example Ltd")
    with pytest.raises(Refused, match="holds the id of someone in the data"):
        name_issuer(home, name)
    forget(home, [Request("fay")])
    assert issuers(home) == ["Example Ltd"]


@pytest.mark.parametrize("name", ["Annexe", "planning", "cats", "Danish Ltd"])
def test_an_id_that_is_a_part_of_a_longer_word_is_none(home, name):
    name_issuer(home, name)
    forget(home, [Request("ann")])
    assert issuers(home) == [name]


def test_a_name_that_is_too_long_is_refused(home):
    with pytest.raises(Refused, match="give a shorter one"):
        name_issuer(home, "x" * 201)
