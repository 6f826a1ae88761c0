"""Ids of every kind, planted anywhere in our own files and in common others, are found, and nobody else is.

`scripts/bench planted` does all of it; here is a sample, drawn anew only when the places change.
"""

import random
from pathlib import Path

import pytest

from kit.planting import KINDS, SHORT, foreign_plants, outcome, own_plants, workspace_with_ledger

_SAMPLE = 45


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("everywhere") / "shop"
    return folder, workspace_with_ledger(folder)


def sampled(plants):
    chance = random.Random(4711)
    return [(plant, chance.choice(list(KINDS))) for plant in chance.sample(plants, _SAMPLE)]


def check(folder: Path, chosen, held) -> None:
    wrong = []
    for plant, kind in chosen:
        came_of_it = outcome(folder, plant, KINDS[kind], held)
        if came_of_it.false_alarms or (not came_of_it.found and plant.is_searched(KINDS[kind])):
            wrong.append((plant.kind, plant.name, kind, came_of_it))
    assert wrong == []


def test_in_files_of_others(tmp_path, shop):
    check(tmp_path, sampled(foreign_plants()), shop[1])


def test_in_our_own_files(shop):
    folder, held = shop
    check(folder, sampled(own_plants(folder)), held)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in SHORT])
@pytest.mark.parametrize("spot", ["text in an event", "reason of an event", "inside a label"])
def test_what_was_typed_into_the_ledger(shop, kind, spot):
    folder, held = shop
    plant = next(plant for plant in own_plants(folder) if plant.name == spot)
    assert outcome(folder, plant, KINDS[kind], held).found
