"""Which items each stage knows: those of its own learners and of the stages before, in the order in which they come."""

from dataclasses import replace

import numpy as np
import pytest

from erasable.chain import Config, KnownItems, link_names
from erasable.data import Catalogue, RatingScale
from erasable.grouping.registry import anchors_among

SCALE = RatingScale(1, 1)
POSITIONS = {"ann": 0, "bob": 0, "cat": 1, "dan": 2, "eve": 2}
ROWS = {"ann": ["m", "z"], "bob": ["m", "k"], "cat": ["a", "m", "k"], "dan": ["z", "b"], "eve": ["c", "a"]}


@pytest.fixture
def knows(chains, tables):
    """Return what each stage knows, in the order in which it numbers it."""

    def knows(rows=ROWS, **settings):
        config = Config(**{"model": "nmf", "groups": 3, "epochs": 3, **settings})
        known = chains.dataset(tables.table(rows), config, POSITIONS, SCALE)
        return [known.known(position).ids.texts() for position in range(known.stages)]

    return knows


def test_a_stage_knows_its_own_items_and_those_of_the_stages_before(knows):
    assert knows() == [["k", "m", "z"], ["k", "m", "z", "a"], ["k", "m", "z", "a", "b", "c"]]


def test_models_apart_know_their_own_items_only(knows):
    assert knows(strategy="sisa") == [["k", "m", "z"], ["a", "k", "m"], ["a", "b", "c", "z"]]


def test_items_of_people_who_are_no_anchors_are_known_to_no_stage(chains, tables):
    rows = tables.random_table(3, users=30, items=9, ratings=True)
    config = Config(model="nmf", groups=3, epochs=3, anchors=0.3)
    known = chains.dataset(rows, config, None, RatingScale(1, 5))
    for position, group in enumerate(known.groups[:3]):
        anchors = group.users.take(np.flatnonzero(anchors_among(group.users, 0.3, config.seed)))
        own = group.of_users(anchors.texts())
        before = known.known(position - 1).ids.texts() if position else []
        brought = {own.items[number] for number in own.item_index.tolist()} - {*before}
        assert known.known(position).ids.texts() == [*before, *sorted(brought)]
        assert known.learners(position).items == known.known(position).ids


def test_an_item_that_is_only_held_out_is_held_and_known_to_no_stage(chains, tables):
    rows = tables.table({f"u{number:02d}": [f"own {number}", "p", "q", "r"] for number in range(30)})
    known = chains.dataset(rows, Config(model="ease", holdout=0.5), None, SCALE)
    unknown = {known.items[number] for number in np.flatnonzero(~known.known_to_some).tolist()}
    assert unknown
    assert unknown == {item for item in rows.items if item not in known.known(0).ids.texts()}
    assert {*known.items} == {rows.items[number] for number in rows.item_index.tolist()}


@pytest.mark.parametrize("gone", ["ann", "bob"])
def test_an_item_that_goes_moves_no_number_of_an_earlier_stage(knows, gone):
    """ann alone has brought z and bob alone k, both of which later stages have too: it is theirs then."""
    rows = {user: items for user, items in ROWS.items() if user != gone}
    assert knows(rows)[0] == {"ann": ["k", "m"], "bob": ["m", "z"]}[gone]
    assert knows(rows)[1] == {"ann": ["k", "m", "a"], "bob": ["m", "z", "a", "k"]}[gone]
    rows = {user: items for user, items in ROWS.items() if user != "dan"}
    assert knows(rows)[:2] == knows()[:2]
    assert knows(rows)[2] == ["k", "m", "z", "a", "c"]


def test_names_cover_the_items_known_and_no_later_ones(chains, tables):
    config = Config(model="nmf", groups=3, epochs=3)
    names, others = (
        link_names(chains.dataset(tables.table(rows), config, POSITIONS, SCALE))
        for rows in (ROWS, {**ROWS, "eve": ["c", "a", "0 comes first"]})
    )
    assert [one == other for one, other in zip(names, others, strict=True)] == [True, True, False]


def test_where_every_group_has_every_item_nothing_differs_from_a_declared_catalogue(chains, tables):
    rows = tables.table(dict.fromkeys(POSITIONS, "pqrst"))
    for strategy in ("laser", "sisa"):
        config = Config(model="nmf", strategy=strategy, groups=3, epochs=3)
        known = chains.dataset(rows, config, POSITIONS, SCALE)
        declared = replace(known, catalogue=Catalogue.from_items(known.items))
        assert link_names(known) == link_names(declared)


def test_what_only_an_erased_person_had_is_gone_and_what_is_declared_stays(chains, tables):
    config = Config(model="nmf", groups=3, epochs=3)
    known = chains.dataset(tables.table(ROWS), config, POSITIONS, SCALE)
    declared = replace(known, catalogue=Catalogue.from_items(known.items))
    assert known.without(["dan"], []).items.texts() == ["a", "c", "k", "m", "z"]
    assert declared.without(["dan"], []).items == known.items
    assert declared.without(["dan"], []).following().items.texts() == ["a", "c", "k", "m", "z"]


class TestNumbers:
    KNOWN = KnownItems.among(Catalogue.from_items("abcde").items, np.array([3, 0, 4]))

    def test_an_own_number_is_the_place_in_the_own_order(self):
        assert self.KNOWN.ids.texts() == ["d", "a", "e"]
        assert self.KNOWN.numbers_of(np.array([0, 1, 3], np.int32)).tolist() == [0, 1]

    def test_rows_are_those_of_known_items_in_the_own_order(self, tables):
        rows = tables.table({"ann": {"a": 1.0, "b": 2.0, "d": 4.0}, "bob": {"c": 3.0}}, catalogue="abcde")
        own = self.KNOWN.over(rows)
        assert (own.users.texts(), own.item_index.tolist(), own.rating.tolist()) == (["ann"], [0, 1], [4.0, 1.0])

    def test_scores_stand_where_the_items_are(self):
        found = self.KNOWN.among_all(np.array([1, 2, 3], np.float32))
        assert found.tolist() == [2, -np.inf, -np.inf, 1, 3]

    def test_who_knows_everything_numbers_as_everyone_does(self, tables):
        rows = tables.table({"ann": "abcde"})
        whole = KnownItems.among(rows.items, np.arange(5))
        scores = np.ones(5, np.float32)
        assert whole.over(rows) is rows
        assert whole.among_all(scores) is scores
