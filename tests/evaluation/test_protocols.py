from dataclasses import replace
from math import log2

import numpy as np
import pyarrow as pa
import pytest

from erasable.chain import Dataset, Earlier, Scoring, train_chain
from erasable.data import Interactions
from erasable.errors import DataRefused, Refused, WrongUse
from erasable.evaluation import PROTOCOLS, measure, measure_all, sampled_candidates
from erasable.models import Effort
from kit.rated_shop import rated_shop


def a_test_set(*rows):
    users, items = (pa.array([row[side] for row in rows], pa.string()) for side in (0, 1))
    return Interactions.from_columns(users, items, [row[2] if len(row) > 2 else 1.0 for row in rows])[0]


def found_for(learned, test, protocol="whole-catalogue"):
    return measure(learned.state, learned.checkpoints, test, 1, protocol)


class TestWholeCatalogue:
    def test_worked_by_hand(self, learned):
        # ann's list is b c d e, with b and e relevant; cat's is d a b e, with e relevant.
        found = found_for(learned, learned.state.dataset.held_out)
        ann, cat = (1 + 1 / log2(5)) / (1 + 1 / log2(3)), 1 / log2(5)
        assert (found.protocol, found.users) == ("whole-catalogue", 2)
        assert list(found.values) == ["hr@10", "ndcg@10", "recall@10", "hr@20", "ndcg@20", "recall@20"]
        assert found.values["hr@10"] == found.values["recall@20"] == 1
        assert found.values["ndcg@10"] == pytest.approx((ann + cat) / 2)

    def test_worked_by_hand_on_four_items(self, shop):
        # ann's list is c b d, all relevant; cat's is d b c, with d relevant: ratings do not matter.
        assert found_for(shop, shop.state.dataset.held_out).values["ndcg@10"] == 1
        # bob's list is d c a, with a relevant.
        assert found_for(shop, a_test_set(("bob", "a"))).values["ndcg@10"] == pytest.approx(1 / log2(4))

    def test_items_outside_the_catalogue_are_relevant_and_never_hit(self, learned):
        test = a_test_set(("ann", "b"), ("ann", "x"), ("ann", "y"))
        assert found_for(learned, test).values["recall@10"] == pytest.approx(1 / 3)


class TestOneOf100:
    def test_worked_by_hand_on_four_items(self, shop):
        # With a (owned) and one test item, the other two are the candidates.
        # ann: b (2) comes after c (3), before d (1).
        found = found_for(shop, a_test_set(("ann", "b")), "one-of-100")
        assert (found.protocol, found.users) == ("one-of-100", 1)
        assert (found.values["hr@10"], found.values["recall@10"]) == (1, 1)
        assert found.values["ndcg@10"] == pytest.approx(1 / log2(3))
        # cat: c (−2) comes after d (2) and b (1); bob: d (3) comes before c (2) and a (1).
        found = found_for(shop, a_test_set(("bob", "d"), ("cat", "c")), "one-of-100")
        assert found.values["ndcg@10"] == pytest.approx((1 + 1 / log2(4)) / 2)

    def test_of_several_test_items_one_is_ranked_and_the_others_are_no_candidates(self, shop):
        # ann has a in training and b, c, d in the test set: whichever is chosen stands alone.
        assert found_for(shop, shop.state.dataset.held_out.of_users(["ann"]), "one-of-100").values["ndcg@10"] == 1

    def test_an_item_outside_the_catalogue_is_never_hit(self, shop):
        assert found_for(shop, a_test_set(("ann", "x")), "one-of-100").values["hr@10"] == 0

    def test_the_test_item_competes_with_99_others(self):
        items = [f"i{number:03d}" for number in range(400)]
        # By score the test item is number 60 from the bottom, so about 84 of 99 candidates are above it.
        shop = wide_shop(items)
        found = found_for(shop, a_test_set(("ann", "i060")), "one-of-100")
        assert found.values["hr@20"] == 0
        # Second best of all, it comes first unless the best of 399 is drawn, and second then.
        found = found_for(shop, a_test_set(("ann", "i398")), "one-of-100")
        assert found.values["ndcg@10"] in (1, pytest.approx(1 / log2(3)))

    def test_is_what_sampled_candidates_gives_with_the_same_candidates(self, trained):
        # Of 40 items fewer than 99 are free, so the candidates are all that a user does not have.
        state, store = trained
        test, catalogue = state.dataset.held_out, state.dataset.items
        one = test.select(np.isin(np.arange(len(test)), test.user_starts[:-1]))
        owned = Interactions.merge(state.dataset.groups)
        numbers = {user: owned.of_users([user]).item_index.tolist() for user in one.users}
        free = {
            user: [item for number, item in enumerate(catalogue) if number not in numbers[user]] for user in numbers
        }
        given = sampled_candidates(state, store, one, free, 1)
        assert measure(state, store, one, 1, "one-of-100").values == given.values


def wide_shop(items):
    """Return a shop of many items in which item n scores 9 n for ann."""
    shop = rated_shop()
    dataset = shop.state.dataset
    catalogue = type(dataset.catalogue).from_items([*dataset.items, *items])
    groups = tuple(group.with_items(catalogue.items) for group in dataset.groups)
    held_out = dataset.held_out.with_items(catalogue.items)
    wide = Dataset.of_groups(dataset.config, catalogue, dataset.scale, groups, held_out)

    class Store:
        def get(self, name):
            checkpoint = shop.checkpoints.get(name)
            rows = np.zeros((len(catalogue.items), 32), np.float32)
            rows[:, 0] = [int(item[1:]) if item[1:] else -1 for item in catalogue.items]
            shared = {**checkpoint.parameters.shared, "item": rows}
            return replace(checkpoint, parameters=replace(checkpoint.parameters, shared=shared))

    return replace(shop, state=replace(shop.state, dataset=wide), checkpoints=Store())


SCORES_OF_OTHERS = {"ann": [9, 2, 3, 1], "bob": [1, 4, 2, 3]}


class TestHeldOutOnly:
    def test_worked_by_hand_on_four_items(self, shop):
        # ann's test items by score: c (rated 2), b (5), d (4), the last two liked: 0.4, 1 and 0.8 of the highest.
        # cat's only one, d, is not liked.
        found = found_for(shop, shop.state.dataset.held_out, "held-out-only")
        full = 1 + sum(1 / log2(place) for place in range(2, 11))
        assert (found.protocol, found.users) == ("held-out-only", 2)
        assert found.values["hr@10"] == pytest.approx((2 / 10 + 0) / 2)
        assert found.values["hr@20"] == pytest.approx((2 / 20 + 0) / 2)
        assert found.values["ndcg@10"] == pytest.approx((1 + 0.8 / log2(3)) / full / 2)
        assert found.values["recall@10"] == pytest.approx((1 + 0) / 2)

    def test_scores_of_other_items_do_not_matter(self):
        held_out = rated_shop().state.dataset.held_out.of_users(["cat"])
        high, low = (rated_shop(scores=SCORES_OF_OTHERS | {"cat": [99, 99, 99, score]}) for score in (100, 0))
        assert found_for(high, held_out, "held-out-only") == found_for(low, held_out, "held-out-only")
        assert found_for(high, held_out) != found_for(low, held_out)

    def test_an_item_outside_the_catalogue_is_never_hit(self, shop):
        found = found_for(shop, a_test_set(("ann", "b", 5), ("ann", "x", 5)), "held-out-only")
        assert (found.values["hr@10"], found.values["recall@10"]) == (0.1, 0.5)

    def test_ratings_outside_the_scale_are_refused(self, shop):
        test = a_test_set(("ann", "b", 5), ("ann", "c", 6))
        with pytest.raises(DataRefused, match="rating 6 lies outside the scale 1–5"):
            found_for(shop, test, "held-out-only")
        assert found_for(shop, test).users == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
class TestEveryProtocol:
    def test_users_that_are_not_known_are_left_out(self, shop, protocol):
        test = a_test_set(("ann", "b", 5), ("nobody", "b", 5), ("zoe", "a", 1))
        alone = a_test_set(("ann", "b", 5))
        assert found_for(shop, test, protocol) == found_for(shop, alone, protocol)

    def test_a_test_set_numbered_otherwise_gives_the_same(self, shop, protocol):
        test = a_test_set(("ann", "b", 5), ("ann", "c", 2), ("ann", "d", 4), ("cat", "d", 1))
        assert test.items != shop.state.dataset.held_out.items
        assert found_for(shop, test, protocol) == found_for(shop, shop.state.dataset.held_out, protocol)

    def test_a_test_set_without_a_known_user_is_refused(self, learned, protocol):
        empty = learned.state.dataset.held_out.without(users=["ann", "cat"])
        for test in (empty, a_test_set(("nobody", "a"))):
            with pytest.raises(Refused, match=r"learn with holdout=0\.1"):
                found_for(learned, test, protocol)

    @pytest.mark.parametrize("threads", [2, 3, 500])
    def test_threads_change_nothing(self, trained, protocol, threads):
        state, store = trained
        test = state.dataset.held_out
        assert measure(state, store, test, 1, protocol) == measure(state, store, test, threads, protocol)

    def test_a_user_s_values_do_not_depend_on_who_else_is_tested(self, trained, protocol):
        state, store = trained
        test = state.dataset.held_out
        alone = [measure(state, store, test.of_users([user]), 1, protocol).values["ndcg@10"] for user in test.users]
        together = measure(state, store, test, 1, protocol).values["ndcg@10"]
        assert together == pytest.approx(np.mean(alone))

    def test_a_forgotten_user_is_in_no_test_set(self, trained, protocol):
        state, store = trained
        test = state.dataset.held_out
        gone = replace(state, dataset=state.dataset.without(users=[test.users[0]], pairs=[]))
        chain = train_chain(gone.dataset, store, Effort(), earlier=Earlier(state.chain))
        assert measure(chain, store, test, 1, protocol) == measure(chain, store, gone.dataset.held_out, 1, protocol)
        assert measure(chain, store, test, 1, protocol).users == len(test.users) - 1


def test_several_protocols_at_once_give_what_each_gives_alone(trained):
    state, store = trained
    test = state.dataset.held_out
    found = measure_all(state, store, test, 2, PROTOCOLS)
    assert found == {protocol: measure(state, store, test, 1, protocol) for protocol in PROTOCOLS}
    assert list(found) == list(PROTOCOLS)


def test_several_protocols_score_each_user_once(trained, monkeypatch):
    state, store = trained
    scored, rows = [], Scoring.rows

    def counting(self, places):
        scored.extend(places)
        return rows(self, places)

    monkeypatch.setattr(Scoring, "rows", counting)
    measure_all(state, store, state.dataset.held_out, 1, PROTOCOLS)
    assert len(scored) == len(set(scored)) == len(state.dataset.held_out.users)


def test_whole_catalogue_is_what_is_measured_if_nothing_is_said(learned):
    test = learned.state.dataset.held_out
    assert measure(learned.state, learned.checkpoints, test, 1).protocol == "whole-catalogue"


def test_a_protocol_that_is_not_there_is_refused(learned):
    with pytest.raises(WrongUse, match="choose one of whole-catalogue, one-of-100, held-out-only"):
        found_for(learned, learned.state.dataset.held_out, "two-of-100")


class TestSampledCandidates:
    def test_ranks_the_test_item_among_the_given_ones(self, learned):
        # bob: the test item a (0) comes after d (3); c (-1) comes last, and e (3) is no candidate.
        test, candidates = a_test_set(("bob", "a")), {"bob": ["c", "d", "unheard-of"]}
        found = sampled_candidates(learned.state, learned.checkpoints, test, candidates, threads=1)
        assert found.protocol == "sampled candidates"
        assert found.values["ndcg@10"] == pytest.approx(1 / log2(3))

    def test_can_miss(self, learned):
        test, candidates = a_test_set(("bob", "x")), {"bob": ["c", "d"]}
        found = sampled_candidates(learned.state, learned.checkpoints, test, candidates, threads=1)
        assert found.values["hr@10"] == 0

    def test_a_user_without_candidates_is_refused(self, learned):
        test = a_test_set(("ann", "b"), ("bob", "a"))
        with pytest.raises(WrongUse, match="'bob'"):
            sampled_candidates(learned.state, learned.checkpoints, test, {"ann": ["c"]}, threads=1)

    @pytest.mark.parametrize("threads", [2, 3, 500])
    def test_threads_change_nothing(self, trained, threads):
        state, store = trained
        test = state.dataset.held_out
        candidates = {user: state.dataset.items.texts()[:15] for user in test.users}
        one, many = (sampled_candidates(state, store, test, candidates, number) for number in (1, threads))
        assert one == many
