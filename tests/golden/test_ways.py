"""The ways are many, small and fair: every choice is there twice, and nobody who was forgotten comes back."""

import json
from collections import Counter
from itertools import chain

import pytest

from golden import making
from golden.digests import described
from golden.run_ways import EVERY
from golden.ways import STEPS, WAYS

CHAINS = [("laser", "stage", "1"), ("laser", "solved", "1"), ("laser", "solved", "0.5"), ("sisa", "stage", "1")]
AT_ONCE = [("retrain", "stage", "1"), ("retrain", "solved", "1"), ("retrain", "solved", "0.5")]
MEANINGFUL = {
    *((model, *way) for model in ("nmf", "dmf") for way in (*CHAINS, *AT_ONCE)),
    *(("ease", *way) for way in AT_ONCE),
    *(("als", *way) for way in AT_ONCE[1:]),
}
CHOICES = {
    "model": {"als", "ease", "nmf", "dmf"},
    "strategy": {"laser", "sisa", "retrain"},
    "rows": {"stage", "solved"},
    "anchors": {"1", "0.5"},
    "policy": {"fixed", "independent", "regroup"},
    "special": {
        "",
        "given",
        "risk",
        "core",
        "extended",
        "repeated",
        "far",
        "near-3",
        "near-5",
        "near-200",
        "slots",
        "vectors",
    },
    "grouping": {"random", "independent", "cbkm", "cbkm-near", "bkm", "clpa", "cgmm", "given"},
    "table": {"sparse", "dense"},
    "catalogue": {"declared", "followed"},
    "ratings": {"stars", "half", "unit", "ten", "zero-five", "zero-ten", "percent", "implicit"},
}
OPTIONS = {
    "--order": {"number", "easy", "hard", "count"},
    "--aggregate": {"mean", "own"},
    "--holdout": {"0.2"},
    "--min-interactions": {"5"},
    "--negatives": {"0", "1", "2"},
    "--batch": {"7", "2048"},
    "--epoch-budget": {"full"},
    "--row-epochs": {"1", "5"},
    "--learning-rate": {"0.02"},
    "--reach": {"6"},
    "--vectors": {"erasable"},
    "--risk-threshold": {"0.8"},
}


def twice(values):
    return {value for value, count in Counter(values).items() if count >= 2}


@pytest.mark.parametrize("choice", CHOICES)
def test_every_value_of_a_choice_is_there_twice(choice):
    assert twice(getattr(way, choice) for way in WAYS.values()) == CHOICES[choice]


@pytest.mark.parametrize("option", OPTIONS)
def test_every_value_of_an_option_is_there_twice(option):
    assert twice(way.given.get(option) for way in WAYS.values()) >= OPTIONS[option]


def test_every_meaningful_combination_is_there_under_every_policy():
    there = {(way.model, way.strategy, way.rows, way.anchors, way.policy) for way in WAYS.values()}
    assert there == {(*way, policy) for way in MEANINGFUL for policy in CHOICES["policy"]}


@pytest.mark.parametrize("catalogue", ["declared", "followed"])
def test_every_way_to_train_is_there_with_and_without_a_declared_catalogue(catalogue):
    ways = [way for way in WAYS.values() if way.catalogue == catalogue]
    assert {(way.model, way.strategy, way.rows, way.anchors) for way in ways} == MEANINGFUL


@pytest.mark.parametrize("name", EVERY)
class TestEveryWay:
    def test_nobody_comes_back_and_few_are_forgotten_at_once(self, name):
        shop = EVERY[name].shop
        forgets = [shop.forgotten(step) for step in STEPS if step.startswith("forget")]
        whole = set(chain(*forgets[:2]))
        assert not whole & {user for user, _ in shop.later}
        assert not whole & set(forgets[2])
        assert whole < {user for user, _ in shop.first}
        assert all(len(people) <= 8 for people in forgets)

    def test_more_brings_new_people_new_items_and_more_of_those_who_are_there(self, name):
        shop = EVERY[name].shop
        (first_users, first_items), (later_users, later_items) = (
            ({user for user, _ in rows}, {item for _, item in rows}) for rows in (shop.first, shop.later)
        )
        assert later_users - first_users
        assert later_users & first_users
        assert later_items - first_items == {"zz-new"}
        assert not set(shop.first) & set(shop.later)


def test_ways_are_what_they_were_when_digests_were_made():
    for path in making.FILES.glob("*/*.json"):
        kept = json.loads(path.read_text(encoding="utf-8"))["ways"]
        changed = [name for name, made in kept.items() if made["description"] != described(EVERY[name])]
        assert not changed, f"{path.name} was made of other ways: leave ways as they are, and add new ones"


def test_on_dense_data_every_group_has_every_item():
    for path in making.FILES.glob("*/*.json"):
        kept = json.loads(path.read_text(encoding="utf-8"))["ways"]
        marked = {name for name, made in kept.items() if made["every group has every item"]}
        assert {name for name in kept if EVERY[name].table == "dense"} <= marked
        assert all(made["catalogue"] == EVERY[name].catalogue for name, made in kept.items())
