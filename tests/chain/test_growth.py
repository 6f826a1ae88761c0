"""Who comes later, and where they go; that the path does not matter is asked in tests/chain/test_any_path.py."""

import pytest

from erasable.chain import Config, grown
from erasable.data import Catalogue, RatingScale
from erasable.grouping.groups import independent_labels
from erasable.grouping.points import ALONE
from kit.fitting import fitting

SCALE = RatingScale(1, 5)


@pytest.fixture
def rows(tables):
    return tables.random_table(3, users=12, items=9, ratings=True)


@pytest.fixture
def newcomer(tables, rows):
    return tables.table({"zoe": {"i001": 5.0, "i003": 4.0}}).with_items(rows.items)


@pytest.mark.parametrize(
    ("settings", "position"),
    [
        ({"groups": 3}, 3),
        ({"groups": 3, "strategy": "sisa"}, 3),
        ({"groups": 3, "rows": "solved"}, 3),
        ({"strategy": "retrain", "model": "nmf"}, 0),
        ({"strategy": "retrain", "model": "nmf", "anchors": 0.5}, 1),
        ({"model": "als"}, 1),
        ({"model": "ease"}, 0),
        ({"model": "ease", "anchors": 0.5}, 1),
    ],
    ids=str,
)
def test_a_newcomer_goes_where_the_settings_say(chains, rows, newcomer, settings, position):
    known = chains.dataset(rows, Config(**fitting(settings)), None, SCALE)
    assert grown(known, newcomer, ALONE).find("zoe")[0] == position


def test_with_independent_groups_the_id_decides(chains, rows, newcomer):
    known = chains.dataset(rows, Config(model="nmf", groups=3, grouping="independent"), None, SCALE)
    assert grown(known, newcomer, ALONE).find("zoe")[0] == independent_labels(newcomer, 3, 0)[0]


def test_where_rows_are_solved_all_newcomers_share_one_group(chains, tables, rows, newcomer):
    known = chains.dataset(rows, Config(model="nmf", groups=2, rows="solved"), None, SCALE)
    later = tables.table({"yan": {"i002": 1.0}}).with_items(rows.items)
    twice = grown(grown(known, newcomer, ALONE), later, ALONE)
    assert twice.groups[2].users.texts() == ["yan", "zoe"]
    assert (len(twice.groups), twice.stages) == (3, 2)


def test_a_known_user_keeps_what_is_there_and_the_later_rating_stays(chains, tables, rows):
    known = chains.dataset(rows, Config(model="nmf", groups=3), None, SCALE)
    user = known.groups[0].users[0]
    before = {item: rating for _, item, rating in tables.as_rows(known.data_of([user]))}
    changed = next(iter(before))
    coming = tables.table({user: {changed: 6 - before[changed], "i008": 2.0}}).with_items(rows.items)
    after = {item: rating for _, item, rating in tables.as_rows(grown(known, coming, ALONE).data_of([user]))}
    assert after == {**before, changed: 6 - before[changed], "i008": 2.0}


def test_the_others_are_untouched(chains, rows, newcomer):
    known = chains.dataset(rows, Config(model="nmf", groups=3), None, SCALE)
    assert [group.digest() for group in grown(known, newcomer, ALONE).groups[:3]] == [
        group.digest() for group in known.groups
    ]


def test_a_later_version_of_a_declared_catalogue_changes_no_number(chains, rows):
    known = chains.dataset(rows, Config(model="nmf", groups=3), None, SCALE)
    later = Catalogue.from_items(known.items).grown(["a new one", "newer", rows.items[0]])
    assert later.versions == (9, 11)
    assert later.items.texts() == [*rows.items.texts(), "a new one", "newer"]
    assert [group.digest() for group in known.over(later.items).groups] == [group.digest() for group in known.groups]
    assert Catalogue.from_items(["a"]).grown(["a"]).versions == (1,)
