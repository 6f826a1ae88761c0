from dataclasses import replace

import pytest

from erasable.chain import Config, Link, plan_change
from erasable.requests import Request

# Three groups with 4, 3 and 5 interactions; every user has a negative to sample.
ROWS = {"a": "pqr", "b": "s", "c": "pq", "d": "t", "e": "pq", "f": "rst"}
POSITIONS = {"a": 0, "b": 0, "c": 1, "d": 1, "e": 2, "f": 2}


def learn(chains, tables, **config):
    rows = tables.table(ROWS, catalogue="pqrstu")
    return chains.learn(rows, Config(model="nmf", groups=3, **config), POSITIONS, declared=True)


def planned(chains, state, requests):
    return plan_change(state, chains.after(state, requests))


# With 4 negatives an interaction is 5 samples. Of 6 shared epochs each stage gets 2; retraining takes all 6.
@pytest.mark.parametrize(
    ("request_", "rerun", "samples", "retrain"),
    [
        (Request("a"), 3, 2 * 5 * (1 + 3 + 5), 6 * 5 * 9),
        (Request("b"), 3, 2 * 5 * (3 + 3 + 5), 6 * 5 * 11),
        (Request("c"), 2, 2 * 5 * (1 + 5), 6 * 5 * 10),
        (Request("f"), 1, 2 * 5 * 2, 6 * 5 * 9),
        (Request("f", ("s",)), 1, 2 * 5 * 4, 6 * 5 * 11),
        (Request("a", ("p", "q")), 3, 2 * 5 * (2 + 3 + 5), 6 * 5 * 10),
    ],
    ids=str,
)
def test_a_plan_by_hand(chains, tables, request_, rerun, samples, retrain):
    plan = planned(chains, learn(chains, tables, epochs=6).state, [request_])
    assert (plan.stages_rerun, plan.stages_total, plan.rerun) == (rerun, 3, tuple(range(3 - rerun, 3)))
    assert (plan.samples, plan.samples_retrain) == (samples, retrain)
    assert plan.cost_ratio == samples / retrain


def test_with_the_full_budget_each_stage_costs_all_epochs(chains, tables):
    plan = planned(chains, learn(chains, tables, epochs=6, epoch_budget="full").state, [Request("c")])
    assert plan.samples == 6 * 5 * (1 + 5)
    assert plan.cost_ratio == plan.chain_ratio == 6 / 10


def test_without_negatives_an_interaction_is_one_sample(chains, tables):
    plan = planned(chains, learn(chains, tables, epochs=6, negatives=0).state, [Request("c")])
    assert (plan.samples, plan.samples_retrain) == (2 * 6, 6 * 10)


def test_requests_together_cost_as_much_as_their_earliest_group(chains, tables):
    plan = planned(chains, learn(chains, tables, epochs=6).state, [Request("f", ("s",)), Request("d")])
    assert plan.stages_rerun == 2
    assert plan.samples == 2 * 5 * (2 + 4)


def test_the_chain_ratio_is_the_share_of_the_chain_that_is_trained_again(chains, tables):
    plan = planned(chains, learn(chains, tables, epochs=6).state, [Request("c")])
    assert plan.samples_chain == 2 * 5 * 10
    assert plan.chain_ratio == 6 / 10
    assert plan.cost_ratio == pytest.approx(plan.chain_ratio / 3)


def test_retraining_everything_has_the_ratio_1(chains, tables):
    rows = tables.table(ROWS, catalogue="pqrstu")
    learned = chains.learn(rows, Config(model="nmf", strategy="retrain", epochs=6), dict.fromkeys(POSITIONS, 0))
    plan = planned(chains, learned.state, [Request("f")])
    assert (plan.stages_rerun, plan.stages_total, plan.cost_ratio) == (1, 1, 1.0)


def test_an_interaction_that_is_only_held_out_costs_nothing(chains, tables):
    state = learn(chains, tables, epochs=6, holdout=0.5).state
    held = sorted(tables.as_rows(state.dataset.held_out))
    assert held
    for user, item, _ in held:
        plan = planned(chains, state, [Request(user, (item,))])
        assert (plan.rerun, plan.samples, plan.cost_ratio) == ((), 0, 0.0)


def test_forgetting_everyone_costs_nothing_but_the_stages(chains, tables):
    plan = planned(chains, learn(chains, tables, epochs=6).state, [Request(user) for user in ROWS])
    assert (plan.stages_rerun, plan.samples, plan.samples_retrain, plan.cost_ratio) == (3, 0, 0, 0.0)


def test_no_change_is_no_stage(chains, tables):
    state = learn(chains, tables).state
    assert plan_change(state, state.dataset).stages_rerun == 0


@pytest.mark.parametrize("budget", ["shared", "full"])
@pytest.mark.parametrize("user", list(ROWS))
def test_the_plan_is_what_forgetting_does(chains, tables, budget, user):
    learned = learn(chains, tables, epochs=4, epoch_budget=budget, holdout=0.3)
    plan = planned(chains, learned.state, [Request(user)])
    after = chains.forget(learned, [Request(user)]).state
    again = [link for link in after.chain if link.fingerprint not in learned.names]
    assert len(again) == plan.stages_rerun
    assert sum(link.samples for link in again) == plan.samples
    kept = [place for place in range(plan.stages_total) if place not in plan.rerun]
    assert [after.chain[place] for place in kept] == [learned.state.chain[place] for place in kept]


def test_the_estimate_is_the_samples_at_the_pace_of_the_last_training(chains, tables):
    learned = learn(chains, tables, epochs=6)
    chain = tuple(replace(link, seconds=2.0) for link in learned.state.chain)
    plan = planned(chains, replace(learned.state, chain=chain), [Request("c")])
    # 6 seconds for 2 · 5 · 12 = 120 samples; 60 samples to go.
    assert plan.seconds_estimated == pytest.approx(3.0)


def test_planning_changes_nothing(chains, tables):
    learned = learn(chains, tables)
    before = learned.contents()
    planned(chains, learned.state, [Request("a")])
    assert learned.contents() == before
    assert learned.state.dataset.find("a").group == 0
    assert all(isinstance(link, Link) for link in learned.state.chain)
