"""Near ids: what is written a little differently is counted, and nobody is named."""

import unicodedata

import pytest

from erasable.data import Ids
from erasable.data.ids import NONE_NEAR, near_ids

NEAR = [
    ("Søren Åkjær@x.dk", unicodedata.normalize("NFD", "Søren Åkjær@x.dk"), ("Unicode form",)),
    ("Søren@x.dk", "So\u0338ren@x.dk", ("Unicode form",)),
    ("Zoë", "Zoe\u0308", ("Unicode form",)),
    ("Ann@Example.org", "ann@example.org", ("upper and lower case",)),
    ("STRASSE", "straße", ("upper and lower case",)),
    (" ann", "ann\t", ("surrounding blanks",)),
    ("ann+shop@x.org", "ann@x.org", ("a +tag",)),
    ("ann+shop@x.org", "ann+news@x.org", ("a +tag",)),
    ("007", "7", ("leading zeros",)),
    ("0", "000", ("leading zeros",)),
    ("Ann+shop@x.org ", "ann@x.org", ("surrounding blanks", "upper and lower case", "a +tag")),
    ("\uff21nn", "Ann", ("Unicode form",)),
]
FAR = [("ann", "anna"), ("70", "7"), ("a+b", "a"), ("0x7", "x7"), ("ann@x.org", "ann@y.org"), ("bob", "ann"), ("", "0")]


@pytest.mark.parametrize(("held", "asked", "differ_in"), [*NEAR, *((two, one, how) for one, two, how in NEAR)])
def test_what_is_written_differently_is_near(held, asked, differ_in):
    found = near_ids([Ids.of(["someone"]), Ids.of([held, "else"])], asked)
    assert (found.held, found.differ_in) == (1, differ_in)
    assert held not in found.sentence()
    assert asked not in found.sentence()


@pytest.mark.parametrize(("held", "asked"), FAR)
def test_what_is_written_otherwise_is_not(held, asked):
    assert near_ids([Ids.of([held])], asked) == NONE_NEAR


def test_who_is_held_has_no_near_ids():
    assert near_ids([Ids.of(["ann", "Ann"])], "ann") == NONE_NEAR


def test_all_are_counted_once_with_everything_they_differ_in():
    found = near_ids([Ids.of(["Ann", " ann"]), Ids.of(["Ann"])], "ann")
    assert (found.held, found.differ_in) == (2, ("surrounding blanks", "upper and lower case"))
    assert found.sentence().startswith(
        "nothing under this id; ids that differ only in surrounding blanks or upper and lower case are held: 2."
    )
