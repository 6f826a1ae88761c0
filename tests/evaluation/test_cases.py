import threading
from dataclasses import replace

import numpy as np
import pytest

from erasable.chain import Scoring, buckets
from erasable.chain.buckets import Buckets
from erasable.data.slots import slot_keys
from erasable.evaluation import protocols as cases
from erasable.evaluation.protocols import cases_of, for_each_case, measured_people
from kit.tables import table


def test_a_case_is_a_known_user_with_group_row_and_test_rows(shop):
    dataset = shop.state.dataset
    ann, cat = cases_of(dataset, dataset.held_out)
    assert (ann.user, ann.place.group, ann.place) == ("ann", 0, dataset.find("ann"))
    assert (ann.items.tolist(), ann.ratings.tolist()) == ([1, 2, 3], [5, 2, 4])
    assert (cat.user, cat.place.group, cat.items.tolist(), cat.chosen) == ("cat", 1, [3], 3)
    assert [dataset.user_at(case.place) for case in (ann, cat)] == ["ann", "cat"]


def test_items_outside_the_catalogue_have_distinct_numbers_past_its_end(shop):
    (case,) = cases_of(shop.state.dataset, table({"ann": ["b", "x", "y"]}))
    assert case.items[0] == 1
    assert len({*case.items.tolist()}) == 3
    assert min(case.items[1:]) >= 4


def test_the_chosen_item_is_one_of_the_own_and_the_same_whoever_else_is_there(trained):
    state, _ = trained
    test = state.dataset.held_out
    chosen = {case.user: case.chosen for case in cases_of(state.dataset, test)}
    assert all(case.chosen in case.items for case in cases_of(state.dataset, test))
    for user in (test.users[0], test.users[7]):
        others = cases_of(state.dataset, test.without(users=[user]))
        assert {case.user: case.chosen for case in others} == {who: item for who, item in chosen.items() if who != user}


def test_the_chosen_item_goes_by_its_own_hash(trained):
    state, _ = trained
    test = state.dataset.held_out
    case = max(cases_of(state.dataset, test), key=lambda case: len(case.items))
    others = [test.items[item] for item in case.items.tolist() if item != case.chosen]
    for item in others:
        fewer = test.of_users([case.user]).without(pairs=[(case.user, item)])
        assert cases_of(state.dataset, fewer)[0].chosen == case.chosen


def test_the_seed_decides_which_item_is_chosen(trained):
    state, _ = trained
    dataset = state.dataset
    other = replace(dataset, config=dataset.config.changed(seed=1))
    one, two = ([case.chosen for case in cases_of(known, known.held_out)] for known in (dataset, other))
    assert one != two


@pytest.mark.parametrize("threads", [1, 2, 3, 100])
def test_answers_come_in_the_order_of_the_cases(trained, threads):
    state, checkpoints = trained
    cases = cases_of(state.dataset, state.dataset.held_out)
    scoring, seen = Scoring(state, checkpoints), set()

    def ask(case, scores):
        seen.add(threading.get_ident())
        assert scores.tobytes() == scoring.scores(case.place).tobytes()
        return case.user

    assert for_each_case(scoring, cases, ask, threads) == [case.user for case in cases]
    assert len(seen) <= min(threads, len(cases))


def test_users_come_in_the_order_of_the_test_set_whatever_their_group(trained):
    state, _ = trained
    cases = cases_of(state.dataset, state.dataset.held_out)
    assert [case.user for case in cases] == state.dataset.held_out.users.texts()
    assert np.unique([case.place.group for case in cases]).tolist() == [0, 1]


class TestThoseWhoAreMeasured:
    def test_few_are_all_measured(self, trained):
        dataset = trained[0].dataset
        assert measured_people(dataset).digest() == dataset.held_out.digest()
        assert not measured_people(dataset).by_slot

    def test_without_a_holdout_nobody_is(self, trained):
        dataset = trained[0].dataset
        nothing = dataset.with_groups(held_out=dataset.held_out.without(users=dataset.held_out.users.texts()))
        assert len(measured_people(nothing)) == 0

    def test_of_many_those_with_the_smallest_hashes_are_whoever_else_is_there(self, trained, monkeypatch):
        monkeypatch.setattr(cases, "PEOPLE_MEASURED", 10)
        dataset = trained[0].dataset
        held_out, chosen = dataset.held_out, measured_people(dataset)
        assert len(chosen.users) == 10
        assert chosen.digest() == held_out.of_users(chosen.users.texts()).digest()
        keys = dict(zip(held_out.users, slot_keys(held_out.users, dataset.config.seed).tolist(), strict=True))
        assert set(chosen.users) == set(sorted(keys, key=keys.__getitem__)[:10])
        other = replace(dataset, config=dataset.config.changed(seed=8))
        assert set(measured_people(other).users) != set(chosen.users)
        others = [user for user in held_out.users if user not in chosen.users][::2]
        fewer = dataset.with_groups(held_out=held_out.without(users=others))
        assert measured_people(fewer).digest() == chosen.digest()
        assert measured_people(dataset.without(others, [])).digest() == chosen.digest()

    @pytest.mark.parametrize("people", [3, 10, 40])
    def test_they_are_the_same_in_any_buckets_and_only_the_first_of_these_are_read(self, trained, monkeypatch, people):
        monkeypatch.setattr(cases, "PEOPLE_MEASURED", 10)
        dataset = trained[0].dataset
        expected = measured_people(dataset)
        monkeypatch.setattr(buckets, "PEOPLE_IN_A_BUCKET", people)
        dealt = dataset.with_groups()
        held_out = np.cumsum([len(bucket.held_out.users) for bucket in dealt.buckets])
        needed = int(np.searchsorted(held_out, 10)) + 1
        _ = dealt.counts
        read, made = [], Buckets._made
        monkeypatch.setattr(Buckets, "_made", lambda self, number: read.append(number) or made(self, number))
        assert measured_people(dealt).digest() == expected.digest()
        assert read == [*range(needed)]
