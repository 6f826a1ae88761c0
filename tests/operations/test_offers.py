"""What one person is offered: never what they have, and popular items where the model says nothing."""

from dataclasses import replace

import numpy as np
import pytest

from erasable import Recommender
from erasable.chain import Config, Scoring
from erasable.data import Ids
from erasable.grouping.registry import anchors_among
from erasable.operations import MemoryStorage, Work, evaluate, forget, learn_more, recommend
from erasable.operations.learn import learn_into
from erasable.operations.live import Live
from erasable.operations.offers import Served, Stock
from erasable.operations.prepare import NO_INPUTS, Inputs
from erasable.requests import Request
from erasable.requests.request import NOBODY_ASKED, Asked
from kit.fitting import fitting
from kit.handmade import handmade
from kit.places import place

WAYS = {
    "als": {"model": "als", "factors": 4},
    "als with anchors": {"model": "als", "factors": 4, "anchors": 0.5},
    "ease": {"model": "ease", "regularisation": 2.0},
    "ease with anchors": {"model": "ease", "regularisation": 2.0, "anchors": 0.5},
    "nmf": {"model": "nmf", "groups": 2, "epochs": 2},
    "nmf with anchors": {"model": "nmf", "groups": 2, "epochs": 2, "anchors": 0.5},
    "dmf": {"model": "dmf", "groups": 2, "epochs": 2},
    "dmf with anchors": {"model": "dmf", "groups": 2, "epochs": 2, "anchors": 0.5},
    "sisa, mean": {"strategy": "sisa", "groups": 2, "epochs": 2},
    "sisa, own": {"strategy": "sisa", "groups": 2, "epochs": 2, "aggregate": "own"},
    "retrain": {"model": "nmf", "strategy": "retrain", "epochs": 2},
}
each_way = pytest.mark.parametrize("settings", WAYS.values(), ids=WAYS)


def service_of(users=40, items=12):
    """Return {user: {item: rating}} in which early items are had by more people than late ones."""
    rng = np.random.default_rng(7)
    weights = 1 / np.arange(1, items + 1)
    chosen = [rng.choice(items, size=5, replace=False, p=weights / weights.sum()) for _ in range(users)]
    return {f"u{user:02}": {f"i{item:02}": 1 for item in sorted(has.tolist())} for user, has in enumerate(chosen)}


def learned(as_table, ratings, settings):
    storage = MemoryStorage()
    with storage.writing() as session:
        learn_into(session, as_table(ratings), Config(**fitting(settings)), NO_INPUTS, Work(1))
    return storage


def hermit():
    """Return an id that is no anchor at a share of one half."""
    names = [f"hermit{number}" for number in range(20)]
    is_anchor = anchors_among(Ids.of(names), 0.5, 0)
    return names[int(np.argmin(is_anchor))]


def counted(ratings):
    """Return the items with how many have each, most first, among equals by id."""
    items = sorted({item for has in ratings.values() for item in has})
    counts = {item: sum(item in has for has in ratings.values()) for item in items}
    return sorted(counts.items(), key=lambda pair: -pair[1])


class TestWhatSomeoneHas:
    @each_way
    def test_it_is_never_offered_held_out_or_not(self, as_table, settings):
        ratings = service_of()
        storage = learned(as_table, ratings, {**settings, "holdout": 0.4})
        live, whole = Live(storage), set().union(*ratings.values())
        for one in recommend(storage, None, k=100):
            offered = {item.item_id for item in one}
            assert offered
            assert offered <= whole - set(ratings[one.user_id])
            assert {offer.item_id for offer in live.recommend(one.user_id, 100).ranked} == offered

    def test_the_library_does_not_offer_it_either(self, as_table):
        ratings = service_of()
        found = Recommender(model="ease", holdout=0.4).fit(as_table(ratings)).recommend(list(ratings), k=100)
        assert not [row for row in found.to_pylist() if row["item_id"] in ratings[row["user_id"]]]

    def test_evaluation_still_finds_it_among_all_that_is_not_in_training(self, as_table):
        storage = learned(as_table, service_of(), {"model": "ease", "holdout": 0.4})
        assert evaluate(storage).values["hr@10"] > 0.9  # 12 items, of which 3 or so are in training


class TestWhatOnlySomeoneHasWhoAsked:
    """An item that nobody else has goes with its owner: at once, and for good."""

    @each_way
    def test_it_is_offered_to_nobody_from_then_on(self, as_table, settings):
        ratings = {**service_of(), "zoe": {"i00": 1, "i01": 1, "only zoe": 1}}
        storage = learned(as_table, ratings, settings)
        live, whole = Live(storage), set().union(*service_of().values())
        live.suppress(["zoe"])
        assert all({offer.item_id for offer in live.recommend(user, 100).ranked} <= whole for user in service_of())
        assert live.follow()
        assert all({offer.item_id for offer in live.recommend(user, 100).ranked} <= whole for user in service_of())
        forget(storage, [Request("zoe")])
        assert all({item.item_id for item in one} <= whole for one in recommend(storage, None, k=100))
        with storage.reading() as session:
            assert "only zoe" not in session.state().dataset.items.texts()

    def test_others_are_offered_it_before(self, as_table):
        ratings = {**service_of(), "zoe": {"i00": 1, "i01": 1, "only zoe": 1}}
        found = recommend(learned(as_table, ratings, WAYS["ease"]), ["u00"], k=100)
        assert "only zoe" in {item.item_id for item in found[0]}

    def test_what_is_declared_stays(self, as_table, tmp_path):
        ratings = {**service_of(), "zoe": {"i00": 1, "i01": 1, "only zoe": 1}}
        items = sorted(set().union(*ratings.values()))
        (tmp_path / "items.txt").write_text("\n".join(items))
        storage = MemoryStorage()
        with storage.writing() as session:
            inputs = Inputs(catalogue=tmp_path / "items.txt")
            learn_into(session, as_table(ratings), Config(**WAYS["ease"]), inputs, Work(1))
        forget(storage, [Request("zoe")])
        with storage.reading() as session:
            assert session.state().dataset.items.texts() == items


class TestWhereTheModelSaysNothing:
    @pytest.mark.parametrize("way", [name for name in WAYS if "anchors" in name or name == "ease"])
    def test_someone_whose_items_nobody_taught_gets_popular_ones(self, as_table, way):
        ratings = {**service_of(), hermit(): {"own": 1}}
        storage = learned(as_table, ratings, WAYS[way])
        (found,) = recommend(storage, [hermit()], k=5)
        best = [pair for pair in counted(ratings) if pair[0] != "own"][:5]
        assert [(one.item_id, one.score, one.popular, one.rank) for one in found] == [
            (item, count, True, rank) for rank, (item, count) in enumerate(best, start=1)
        ]
        assert [tuple(offer) for offer in Live(storage).recommend(hermit(), 5).ranked] == [
            (one.item_id, one.score, True) for one in found
        ]

    def test_rows_that_shrink_to_nothing_are_filled_up(self, as_table):
        alone = {f"alone{number}": {f"own{number}": 1} for number in range(30)}
        storage = learned(as_table, {**service_of(), **alone}, {"model": "als", "factors": 4, "regularisation": 100.0})
        found = recommend(storage, list(alone), k=3)
        assert all(one.popular for user in found for one in user)
        assert {one.item_id for user in found for one in user} <= {"i00", "i01", "i02", "i03"}

    def test_who_joins_with_new_items_alone_gets_popular_ones(self, as_table):
        storage = learned(as_table, service_of(), {"model": "nmf", "groups": 2, "epochs": 2, "rows": "solved"})
        learn_more(storage, as_table({"late": {"new": 1}}))
        (found,) = recommend(storage, ["late"], k=2)
        assert [(one.item_id, one.popular) for one in found] == [(item, True) for item, _ in counted(service_of())[:2]]

    def test_what_the_own_model_does_not_know_comes_after_what_it_does(self, as_table):
        storage = learned(as_table, service_of(), WAYS["sisa, own"])
        learn_more(storage, as_table({"late": {"i00": 1, "new": 1}, "later": {"i01": 1, "new": 1, "newer": 1}}))
        for one in recommend(storage, None, k=100):
            marks = [item.popular for item in one]
            assert marks == sorted(marks)
            scored = [item.score for item in one if not item.popular]
            assert scored == sorted(scored, reverse=True)
        assert any(item.popular for one in recommend(storage, None, k=100) for item in one)

    def test_what_speaks_for_leads_then_what_is_popular_then_what_speaks_against(self):
        made = handmade()
        dataset = made.state.dataset
        served = Served(dataset, Scoring(made.state, made.checkpoints), NOBODY_ASKED, Stock(dataset))
        items = dataset.items
        assert served.best(place(dataset, 0, 1), 10) == [
            (items[3], 3.0, False),
            (items[4], 3.0, False),
            (items[0], 1.0, True),
            (items[2], -1.0, False),
        ]
        # Nobody has the last item, so it is not popular.
        assert served.best(place(dataset, 1, 0), 10) == [
            (items[3], 2.0, False),
            (items[0], 1.0, False),
            (items[1], 1.0, True),
        ]
        assert served.best(place(dataset, 0, 1), 3) == served.best(place(dataset, 0, 1), 10)[:3]

    @each_way
    def test_a_shorter_list_is_the_beginning_of_a_longer_one(self, as_table, settings):
        ratings = {**service_of(), hermit(): {"own": 1}}
        storage = learned(as_table, ratings, {**settings, "holdout": 0.2})
        for short, long in zip(recommend(storage, None, k=3), recommend(storage, None, k=100), strict=True):
            assert short == long[:3]


class TestCounts:
    def test_who_was_forgotten_does_not_count(self, as_table):
        ratings = {**service_of(), hermit(): {"own": 1}}
        storage = learned(as_table, ratings, WAYS["als with anchors"])
        forget(storage, [Request("u00"), Request("u01")])
        del ratings["u00"], ratings["u01"]
        best = [pair for pair in counted(ratings) if pair[0] != "own"]
        (found,) = recommend(storage, [hermit()], k=100)
        assert [(one.item_id, one.score) for one in found] == best

    def test_neither_do_those_who_are_suppressed_and_what_they_alone_had_is_gone(self, as_table):
        ratings = {**service_of(), "u00": {"i00": 1, "rare": 1}, hermit(): {"own": 1}}
        live = Live(learned(as_table, ratings, WAYS["als with anchors"]))
        live.suppress(["u00", "u01", "nobody"])
        left = {user: has for user, has in ratings.items() if user not in ("u00", "u01", hermit())}
        for _ in range(2):
            assert [tuple(offer)[:2] for offer in live.recommend(hermit(), 100).ranked] == counted(left)
            live.follow()

    def test_they_are_counted_once(self, as_table, monkeypatch):
        live = Live(learned(as_table, {**service_of(), hermit(): {"own": 1}}, WAYS["als with anchors"]))
        monkeypatch.setattr(Stock, "counts_of", lambda *_: pytest.fail("counted again"))
        monkeypatch.setattr(np, "bincount", lambda *_: pytest.fail("counted again"))
        assert live.recommend(hermit(), 3).ranked
        assert replace(live.served).best(live.dataset.find(hermit()), 3)


def test_whoever_is_suppressed_or_comes_back_is_counted_out_and_in_by_and_by(as_table):
    storage = learned(as_table, service_of(), WAYS["als"])
    whole = Live(storage).served
    people = [user for group in whole.dataset.groups for user in group.users.texts()]
    generator = np.random.default_rng(3)
    served = replace(whole, asked=Asked(frozenset(people[:3])))
    for _ in range(20):
        _ = served.counts
        chosen = frozenset([*generator.choice(people, generator.integers(0, 9), replace=False).tolist(), "nobody"])
        served = served.suppressing(Asked(chosen)).scored_by(served.scoring)
        assert "counts" in served.__dict__  # not counted again
        assert np.array_equal(served.counts, served.stock.counts - served.stock.counts_of(chosen))


def test_whoever_asks_for_everything_too_is_suppressed_as_if_all_had_asked_at_once(as_table):
    storage = learned(as_table, service_of(), WAYS["als"])
    whole = Live(storage).served
    people = [user for group in whole.dataset.groups for user in group.users.texts()]
    item = next(iter(service_of()[people[0]]))
    before = Asked(frozenset(people[1:3]), {people[0]: frozenset([item])})
    more = frozenset([*people[3:6], "nobody"])
    served, expected = whole.suppressing(before).suppressing_also(more), whole.suppressing(before | Asked(more))
    assert "counts" in served.__dict__  # not counted again
    assert np.array_equal(served.counts, expected.counts)
    assert (served.asked, served.suppressed) == (expected.asked, expected.suppressed)
    assert served.partly_served.keys() == expected.partly_served.keys() == {people[0]}
    assert [served.find(user) for user in people] == [expected.find(user) for user in people]
