from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from erasable.chain import Config, Dataset, Link, State, stages_of
from erasable.data import Catalogue, RatingScale
from erasable.grouping.registry import anchors_among
from erasable.models.registry import make_model
from erasable.paper._theory_claims import (
    balanced_share,
    balanced_share_for,
    drawn_plans,
    drawn_shares,
    expected_share,
    formula_share,
    likely_plans,
    plans_by_group,
    retraining_costs,
)
from kit.tables import table

ITEMS = list("abcdefgh")
GROUPS = (
    table({"ann": "ab", "bob": "abcd"}, ITEMS),
    table({"cat": "a", "dan": "bcd"}, ITEMS),
    table({"eve": "aeh"}, ITEMS),
)
KNOWLEDGE = Dataset.of_groups(
    Config(model="nmf", groups=3, epochs=3, negatives=1, holdout=0),
    Catalogue.from_items(ITEMS),
    RatingScale(1, 1),
    GROUPS,
    GROUPS[0].select(np.zeros(len(GROUPS[0]), bool)),
)


def learned(dataset):
    """A state as learning leaves it if each sample takes a second."""
    tasks = stages_of(dataset)
    chain = (Link(task.name, task.parent, task.samples, float(task.samples)) for task in tasks)
    return State(dataset, tuple(chain))


def test_one_two_three_by_hand():
    # From group 1 on 6, from group 2 on 5, from group 3 on 3: (6·1 + 5·2 + 3·3) / 6 = 25/6, over Z = 6.
    assert retraining_costs([1, 2, 3]) == [6, 5, 3]
    assert expected_share([6, 5, 3], [1, 2, 3], 6) == pytest.approx(25 / 36)
    assert formula_share([1, 2, 3]) == pytest.approx(25 / 36)
    assert expected_share([6, 5, 3], [1, 1, 1], 6) == pytest.approx(14 / 18)


@pytest.mark.parametrize("groups", [2, 4, 8, 16])
def test_equal_costs_reach_the_bound_and_others_exceed_it(groups):
    assert formula_share([7] * groups) == pytest.approx(balanced_share(groups))
    assert formula_share([8, *[7] * (groups - 1)]) > balanced_share(groups)


def test_users_who_ask_at_once_by_enumeration():
    pairs = [(one, other) for one in range(3) for other in range(3)]
    assert balanced_share_for(3, 2) == pytest.approx(np.mean([3 - min(pair) for pair in pairs]) / 3)
    assert balanced_share_for(3, 1) == pytest.approx(balanced_share(3))


def test_plans_are_real_ones_of_a_typical_user_in_each_group():
    model = make_model(KNOWLEDGE.config)
    samples = [model.samples(group, 1) for group in GROUPS]
    assert samples == [12, 8, 6]
    plans = plans_by_group(KNOWLEDGE)
    assert [plan.rerun for plan in plans] == [(0, 1, 2), (1, 2), (2,)]
    # ann and bob are as near to the mean of 3: the first goes, with 2 interactions and 2 negatives.
    assert [plan.samples for plan in plans] == [26 - 4, 14 - 2, 0]


def test_a_group_without_users_has_no_plan():
    nobody = GROUPS[2].select(np.zeros(len(GROUPS[2]), bool))
    assert plans_by_group(KNOWLEDGE.with_groups(groups=(*GROUPS[:2], nobody)))[2] is None


def test_draws_come_near_the_mean_over_all_pairs():
    shares = dict(zip(range(3), np.array([26, 14, 6]) / 26, strict=True))
    positions = [0, 0, 1, 1, 2]
    by_all_pairs = np.mean([shares[min(pair)] for pair in combinations(positions, 2)])
    found = drawn_shares(KNOWLEDGE, [12, 8, 6])
    assert found.keys() == {"1", "5", "1 %", "5 %"}
    assert found["5"] == 1
    assert found["1"] == found["5 %"] == pytest.approx(np.mean([shares[place] for place in positions]), abs=0.1)
    assert found["1"] < by_all_pairs


def test_draws_depend_on_the_seed_only():
    other = replace(KNOWLEDGE, config=Config(model="nmf", groups=3, seed=1))
    assert drawn_shares(KNOWLEDGE, [12, 8, 6]) == drawn_shares(KNOWLEDGE, [12, 8, 6]) != drawn_shares(other, [12, 8, 6])


def test_a_random_user_is_a_typical_one_of_a_group():
    likely = likely_plans(learned(KNOWLEDGE))
    assert [one.share for one in likely] == [2 / 5, 2 / 5, 1 / 5]
    assert [one.plan.samples for one in likely] == [plan.samples for plan in plans_by_group(KNOWLEDGE)]
    assert [one.plan.seconds_estimated for one in likely] == [22, 12, 0]


def test_users_who_are_no_anchors_are_a_class_of_their_own_and_cost_no_stage():
    config = Config(model="nmf", groups=1, epochs=3, negatives=1, row_epochs=1, anchors=0.5, holdout=0)
    everyone = table({f"user {number}": ITEMS[: 1 + number % 8] for number in range(40)}, ITEMS)
    nobody = everyone.select(np.zeros(len(everyone), bool))
    anchors = anchors_among(everyone.users, 0.5, 0)
    assert 0 < anchors.sum() < 40
    shaping, others = likely_plans(learned(replace(KNOWLEDGE, config=config).with_groups((everyone,), nobody)))
    assert (shaping.share, others.share) == (anchors.mean(), 1 - anchors.mean())
    assert (shaping.plan.stages_rerun, others.plan.stages_rerun) == (1, 0)
    assert shaping.plan.cost_ratio > 0 == others.plan.cost_ratio
    counts = np.diff(everyone.user_starts)
    samples = make_model(config).samples(everyone, 3)
    for alike, plan in ((counts[anchors], shaping.plan), (counts[~anchors], others.plan)):
        forgotten = alike[np.argmin(abs(alike - alike.mean()))]
        left = everyone.without(users=[everyone.users[int(np.flatnonzero(counts == forgotten)[0])]])
        assert plan.samples_retrain == make_model(config).samples(left, 3) < samples


def test_drawn_plans_forget_so_many_users_at_once():
    state = learned(KNOWLEDGE)
    assert all(plan.samples_retrain == 0 for plan in drawn_plans(state, 1.0, 2))
    left = {plan.samples_retrain for plan in drawn_plans(state, 0.2, 40)}
    assert left == {3 * (26 - samples) for samples in (4, 8, 2, 6)}
    assert left == {plan.samples_retrain for plan in drawn_plans(state, 0.01, 40)}
