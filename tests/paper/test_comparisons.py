import pytest

from erasable.paper._utility_claims import (
    MethodComparison,
    Tally,
    compare,
    correlation_verdict,
    grouped,
    judged,
    mean_difference,
    rank_correlation,
    tally,
)
from erasable.paper._workbench import Summary


def pair(one, other, deviation=0.0):
    return MethodComparison({}, Summary(one, 0.0, 3), Summary(other, 0.0, 3), Summary(one - other, deviation, 3))


@pytest.mark.parametrize(
    ("one", "deviation", "outcome"),
    # with 3 seeds the interval reaches 4.303 / √3 = 2.484 deviations to each side
    [(0.3, 0.0, "higher"), (0.1, 0.0, "lower"), (0.2, 0.0, "tie"), (0.3, 0.041, "tie"), (0.3, 0.04, "higher")],
)
def test_a_difference_counts_if_its_interval_over_the_seeds_excludes_zero(one, deviation, outcome):
    assert pair(one, 0.2, deviation).outcome == outcome


def test_with_one_seed_no_difference_counts():
    assert MethodComparison({}, Summary(0.3, 0, 1), Summary(0.2, 0, 1), Summary(0.1, 0, 1)).outcome == "tie"


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (Tally(10, 0, 0), "holds"),
        (Tally(6, 4, 0), "holds in part"),
        (Tally(6, 0, 4), "holds in part"),
        (Tally(0, 10, 0), "not decided"),
        (Tally(4, 1, 5), "not decided"),
        (Tally(4, 0, 6), "does not hold"),
        (Tally(0, 4, 6), "does not hold"),
    ],
)
def test_a_verdict_that_is_up_to_the_ties_is_not_decided(found, verdict):
    assert found.verdict() == verdict
    assert found.reversed().reversed() == found


def test_what_all_methods_share_in_a_seed_does_not_hide_a_difference():
    rows = [
        {"method": method, "groups": 2, "seed": seed, "value": level + gain + 0.001 * (seed == 1 and method == "a")}
        for seed, level in enumerate((0.1, 0.2, 0.3))
        for method, gain in (("a", 0.01), ("b", 0.0))
    ]
    (found,) = compare(rows, "a", "b")
    assert found.outcome == "higher"
    assert found.one.deviation > found.differences.mean


def test_similar_means_near_however_the_seeds_spread():
    assert [pair(one, 1.0).similar for one in (0.96, 0.94, 1.04, 1.06)] == [True, False, True, False]
    assert not pair(0.5, 1.0, deviation=0.3).similar
    assert pair(0.0, 0.0).difference == 0


def test_methods_are_compared_over_seeds_in_the_cases_that_both_have():
    rows = [
        {"method": method, "groups": groups, "seed": seed, "value": value}
        for method, groups, values in (("a", 2, (1.0, 3.0)), ("b", 2, (1.0, 1.0)), ("a", 4, (1.0, 1.0)))
        for seed, value in enumerate(values)
    ]
    (found,) = compare(rows, "a", "b")
    assert (found.one.mean, found.other.mean, found.labels["groups"]) == (2.0, 1.0, 2)
    assert compare(rows, "a", "c") == []


def test_outcomes_are_counted_and_said():
    found = tally([pair(2, 1), pair(1, 2), pair(1, 1), pair(3, 1)])
    assert found == Tally(2, 1, 1)
    assert str(found) == "higher in 2 of 4 cases, tied in 1, lower in 1"
    assert mean_difference([pair(1, 2), pair(2, 4)]) == "50.0 per cent lower on average"


def test_verdicts_are_about_the_first_protocol_and_several_groups():
    rows = [
        {"protocol": protocol, "metric": metric, "groups": groups, "request": request, "value": 1.0}
        for protocol in ("one", "two")
        for metric in ("hr@10", "hr@20")
        for groups in (1, 2)
        for request in ("learn", "rand@2.5")
    ]
    assert len(judged(rows)) == 4
    assert [(row["groups"], row["request"]) for row in grouped(judged(rows))] == [(2, "learn")]
    assert judged([]) == []


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1, 2, 3], [4, 5, 9], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 1, 1], [1, 2, 3], 0.0),
        ([1, 1, 2], [5, 5, 6], 1.0),
    ],
)
def test_rank_correlation_is_spearmans(one, other, expected):
    assert rank_correlation(one, other) == expected


def test_the_smallest_correlation_decides():
    found = [correlation_verdict(values) for values in ([1.0, 0.9], [1.0, 0.6], [1.0, 0.4])]
    assert found == ["holds", "holds in part", "does not hold"]
