"""Certificates are for anyone: an attack on many of them finds nothing about the people, and finds what is planted."""

import numpy as np
import pytest

from kit.certificate_oracles import Attacked, erase_one_by_one, findings, with_planted

PEOPLE, CANDIDATES = 24, 90


@pytest.mark.full
@pytest.mark.parametrize(
    ("way", "secret"),
    [("als with anchors, some interactions", "anchor"), ("nmf chain, independent groups", "group")],
)
def test_nothing_is_told_but_what_0_1_told_is_found(way, secret, tmp_path):
    erasures = erase_one_by_one(way, tmp_path / "shop", PEOPLE, CANDIDATES)
    assert findings(erasures) == []
    assert (secret, True) in {
        (one.secret, one.leaf in ("cost_ratio", "stages_rerun")) for one in findings(erasures, with_planted)
    }


def made_up(**leaf) -> list[Attacked]:
    """Return certificates that say one thing of people with 0 to 39 interactions, in no order."""
    said = leaf["said"]
    numbers = np.random.default_rng(3).permutation(40).tolist()
    return [Attacked({"leaf": said(number)}, {"interactions": float(number)}, {}) for number in numbers]


def test_the_attack_finds_what_tells_and_only_that():
    for telling in (lambda number: str(number / 3), lambda number: "many" if number > 20 else "few"):
        assert findings(made_up(said=telling))[0].leaf == "leaf"
    for silent in (lambda number: "the same", lambda number: f"digest {hash((number, 5)):x}"):
        assert findings(made_up(said=silent)) == []


def test_the_attack_finds_what_two_certificates_in_a_row_tell():
    totals, left = [], 1000
    for one in made_up(said=lambda number: ""):
        left -= int(one.secrets["interactions"])
        totals.append(Attacked({"items": str(left)}, one.secrets, {}))
    assert "items, since the one before" in {one.leaf for one in findings(totals)}
