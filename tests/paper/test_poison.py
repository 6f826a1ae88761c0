import json

import numpy as np
import pytest

from erasable.chain import Erasure, link_names
from erasable.paper._cells import ExperimentSettings
from erasable.paper._poison import (
    EXPERIMENT,
    FakeUsers,
    make_fake_users,
    measure_poison,
    never_polluted,
    push_success,
    some_users,
    with_fake_users,
)
from erasable.paper._report import save_figure
from erasable.paper._workbench import Chain, arrange_into_groups
from erasable.requests import Request
from kit.rated_shop import rated_shop
from kit.small_bench import small_bench
from kit.tables import table as interactions
from kit.utility_rows import claim_about

SMALL = ExperimentSettings(epochs=2, groups=(1, 2, 4), seeds=1, poisoned=10)
CLEAN = {"ndcg@10": 0.2, "hr@10": 0.5, "exposure": 0.01, "place": 0.7}
HURT = {"ndcg@10": 0.1, "hr@10": 0.4, "exposure": 0.2, "place": 0.3}


def result(poisoned, forgotten=CLEAN, identical=True):
    return {
        "states": {"poisoned": poisoned, "forgotten": forgotten, "never": CLEAN},
        "identical": identical,
        "forgetting": {"cost_ratio": 0.125, "chain_ratio": 1.0},
    }


def table(*results, seeds=1):
    """Write one result for each model, the same for both methods."""
    return [
        {"model": model, "method": method, "groups": 8, "seed": seed, **row}
        for seed in range(seeds)
        for model, found in zip(("dmf", "nmf"), results, strict=True)
        for method in ("L-Rand", "Retrain")
        for row in EXPERIMENT.values(found)
    ]


def verdict(words, *results):
    return claim_about(EXPERIMENT.claims, table(*results, seeds=2), words).verdict


def test_what_is_forgotten_must_be_as_if_it_had_never_been():
    good = result(HURT)
    for bad in (result(HURT, identical=False), result(HURT, forgotten=CLEAN | {"place": 0.6})):
        assert verdict("restores performance", good, good) == "holds"
        assert verdict("restores performance", good, bad) == "holds in part"
        assert verdict("restores performance", bad, bad) == "does not hold"


def test_that_poison_hurts_is_measured_and_not_assumed():
    hurt, helped = result(HURT), result(HURT | {"ndcg@10": 0.3})
    assert verdict("sensitive to polluted", hurt, hurt) == "holds"
    assert verdict("sensitive to polluted", hurt, helped) == "does not hold"  # a coin would give half
    assert verdict("sensitive to polluted", helped, helped) == "does not hold"
    claim = claim_about(EXPERIMENT.claims, table(helped, helped), "sensitive to polluted")
    assert "higher in 0 of 4 runs; it changes by -0.1000 on average, from 0.3000" in claim.measured


def test_an_attack_that_only_moves_items_up_succeeds_in_part():
    success, higher = result(HURT), result(HURT | {"exposure": 0.01})
    failure = result(CLEAN)
    assert verdict("intentional attack", success, success) == "holds"
    assert verdict("intentional attack", success, failure) == "does not hold"
    assert verdict("intentional attack", higher, higher) == "holds in part"
    assert verdict("intentional attack", higher, failure) == "does not hold"


def test_what_forgetting_took_is_said_against_the_chain_and_against_retraining():
    claim = claim_about(EXPERIMENT.claims, table(result(HURT), result(HURT)), "restores performance")
    assert "trains 100% of the chain again, 12% of the samples of Retrain" in claim.measured


def test_nothing_measured_gives_nothing():
    assert (EXPERIMENT.claims([]), EXPERIMENT.figures([])) == ([], {})


def test_the_table_has_a_line_for_each_metric_and_state():
    text = EXPERIMENT.tables(table(result(HURT), result(HURT)))
    assert text.count("\n") == 2 + 4 * 3 + 1
    assert "| exposure, poisoned | 0.2000 | 0.2000 | 0.2000 | 0.2000 |" in text


@pytest.mark.parametrize("seeds", [3, pytest.param(1, marks=pytest.mark.full)])
def test_the_figure_is_drawn(tmp_path, seeds):
    figures = EXPERIMENT.figures(table(result(HURT), result(HURT), seeds=seeds))
    assert all(file.stat().st_size > 5_000 for file in save_figure(figures["poison"], tmp_path / "poison"))


def test_the_grid_is_the_models_with_every_seed():
    entries = EXPERIMENT.entries(ExperimentSettings(), "data")
    assert len(entries) == len({entry.cell.name for entry in entries}) == 3 * 2
    assert {entry.labels["groups"] for entry in entries} == {8}


def test_exposure_and_place_are_those_of_items_that_a_user_does_not_have(monkeypatch):
    monkeypatch.setattr("erasable.paper._poison.TOP", 1)
    shop = rated_shop()
    pushed = interactions({"fake": "c"}, "abcd")
    fakes = FakeUsers(pushed, pushed.items.take([2]))
    found = push_success(Chain(shop.state, shop.checkpoints), fakes, 1)
    # Scores of a, b, c, d less what is owned: ann -, 2, 3, 1; bob 1, -, 2, 3; cat -, 1, -2, 2.
    assert found["exposure"] == pytest.approx(1 / 3)
    assert found["place"] == pytest.approx((0 + 1 / 3 + 2 / 3) / 3)


def test_of_very_many_users_only_some_are_asked(monkeypatch):
    real = interactions({f"u{number}": "ab" for number in range(20)})
    assert some_users(real, 0).digest() == real.digest()
    monkeypatch.setattr("erasable.paper._poison.MOST_ASKED", 5)
    chosen = [some_users(real, seed) for seed in (0, 0, 1)]
    assert [len(some.users) for some in chosen] == [5, 5, 5]
    assert chosen[0].digest() == chosen[1].digest() != chosen[2].digest()


def test_pushed_items_that_the_filter_dropped_reach_nobody():
    shop = rated_shop()
    pushed = interactions({"fake": "z"})
    fakes = FakeUsers(pushed, pushed.items)
    assert push_success(Chain(shop.state, shop.checkpoints), fakes, 1) == {"exposure": 0.0, "place": 1.0}


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return small_bench(tmp_path_factory.mktemp("poison"))


@pytest.mark.parametrize("place", range(2))
def test_forgetting_the_fake_users_gives_the_bytes_of_never_having_known_them(bench, place):
    entry = EXPERIMENT.entries(SMALL, bench.interactions.digest())[place]
    found = json.loads(json.dumps(measure_poison(bench, entry.cell)))
    assert found["identical"]
    assert (found["fakes"], len(found["pushed"])) == (6, 10)
    assert found["states"]["forgotten"] == found["states"]["never"] != found["states"]["poisoned"]
    assert found["forgetting"]["users"] == 6
    assert found["compared"] > 0


def test_what_was_never_polluted_is_put_together_from_scratch_and_has_the_same_names(bench):
    settings = EXPERIMENT.entries(SMALL, "data")[0].cell.settings
    fakes = make_fake_users(bench.interactions, bench.scale, 6, 0)
    polluted = arrange_into_groups(with_fake_users(bench.interactions, fakes), bench.scale, settings, 1)
    never = never_polluted(polluted, fakes, 1)
    assert never.users == 60
    assert never.held_out.digest() == bench.grouped(settings).held_out.digest()
    assert link_names(never) == link_names(Erasure.of([Request(user) for user in fakes.ids]).apply(polluted))
    assert np.sum([len(group) for group in never.groups]) + len(never.held_out) == len(bench.interactions)
