"""The simulated year of requests does what can be worked out by hand, and misses deadlines where it must."""

import doctest
from itertools import pairwise

import numpy as np
import pytest

from kit.benchmark import benchmark

simulation = benchmark("requests_simulation")
growth = benchmark("scale_growth")
year = benchmark("year_of_requests")

Rule = simulation.Rule
FREE = growth.BatchCosts(start=0, fixed=0, bucket=0, person=0, anchors=0, scan=0, scan_of_many=1, buckets=4)
NONE_FAILS = simulation.NONE_FAILS
HOUR = 3600


def costs(**seconds):
    return growth.replace(FREE, **seconds)


def run(received, rule, batch=FREE, anchors=(), failures=NONE_FAILS, outages=(), cores=1, seed=0):
    """Simulate requests received at these hours; those at the positions named are anchors'."""
    anchor = np.isin(np.arange(len(received)), list(anchors))
    requests = simulation.Requests(np.array(received, float), anchor)
    machine = simulation.Machine(failures, outages, np.random.default_rng(seed))
    return simulation.simulated(requests, rule, batch, machine, cores)


def test_a_request_is_begun_as_long_before_its_window_ends_as_the_service_does():
    assert [Rule(hours).begins_after for hours in (0, 1, 24, 168)] == [0, 0.75, 18, 144]


def test_a_batch_takes_what_is_due_and_what_came_while_it_worked_is_in_the_next():
    outcome = run([0, 0.5, 10], Rule(window=0), costs(scan=HOUR))
    assert outcome.done.tolist() == [1, 2, 11]
    assert outcome.began.tolist() == [0, 1, 10]
    assert outcome.working == 3


def test_all_that_wait_join_where_the_rule_says_so():
    outcome = run([0, 1, 17, 19], Rule(window=24, all_join=True), costs(scan=HOUR))
    assert outcome.began.tolist() == [18, 37]
    assert outcome.sizes.tolist() == [3, 1]
    assert outcome.waited.tolist() == [19, 18, 2, 19]


def test_by_the_services_rule_a_request_joins_once_it_is_a_day_old():
    outcome = run([0, 100, 130], Rule(window=168), costs(scan=HOUR))
    assert outcome.began.tolist() == [144, 130 + 144]  # at 144 the second is 44 hours old, the third 14
    assert outcome.sizes.tolist() == [2, 1]


def test_with_a_shorter_window_a_request_joins_once_it_has_waited_half_of_its_time():
    outcome = run([0, 1, 8, 10], Rule(window=24))
    assert outcome.began.tolist() == [18, 28]  # at 18 the third is 10 hours old, the fourth 8
    assert outcome.sizes.tolist() == [3, 1]


def test_an_anchor_joins_only_if_one_is_due():
    assert run([0, 1], Rule(window=168), anchors=[1]).sizes.tolist() == [1, 1]
    assert run([0, 1], Rule(window=168), anchors=[0, 1]).sizes.tolist() == [2]
    assert run([0, 1], Rule(window=168), anchors=[0]).sizes.tolist() == [2]


def test_a_batch_costs_its_buckets_and_people_and_one_training_if_there_is_an_anchor():
    batch = costs(start=1, fixed=2, bucket=40, person=10, anchors=1000, scan=300)
    rule = Rule(window=1, all_join=True)
    without, trained = run([0, 0], rule, batch), run([0, 0], rule, batch, anchors=[0, 1])
    buckets = 4 * (1 - 0.75**2)  # in which two people lie, on average
    assert without.working * HOUR == pytest.approx(1 + 2 + 40 * buckets + 2 * 10 + 300)
    assert trained.working * HOUR == pytest.approx(without.working * HOUR + 1000)


def test_cores_divide_all_but_the_start():
    batch = costs(start=8, bucket=80, scan=400)
    assert run([0], Rule(1), batch, cores=4).working * HOUR == pytest.approx(8 + (80 + 400) / 4)


def test_an_outage_holds_up_what_is_due_and_loses_the_step_that_it_hits():
    late = run([0], Rule(window=0), costs(scan=HOUR), outages=[(0, 5)])
    assert (late.done.tolist(), late.working) == ([6], 1)
    hit = run([0], Rule(window=0), costs(bucket=HOUR, scan=2 * HOUR), outages=[(2, 10)])
    assert (hit.done.tolist(), hit.working) == ([12], 4)  # erased by 1; the search from 1 to 2 is lost


def test_crashes_repeat_a_step_as_often_as_they_must():
    failures = simulation.Failures(crashes=0.5, first_pause=0, outages=0, looked_at_after=0)
    outcomes = [run([0], Rule(0), costs(scan=HOUR), failures=failures, seed=seed) for seed in range(4000)]
    # Work until an hour passes without a crash: (e^λ - 1) / λ hours, and e^λ - 1 crashes on average.
    assert np.mean([one.working for one in outcomes]) == pytest.approx((np.exp(0.5) - 1) / 0.5, rel=0.05)
    assert np.mean([one.crashes for one in outcomes]) == pytest.approx(np.exp(0.5) - 1, rel=0.1)


def test_pauses_grow_as_in_the_service_and_then_somebody_looks():
    machine = simulation.Machine(simulation.Failures(), (), np.random.default_rng(0))
    assert [round(60 * machine._pause(attempt)) for attempt in range(1, 8)] == [1, 4, 16, 64, 256, 24 * 60, 1]


def test_requests_of_a_year_are_as_many_as_declared_and_burst():
    arrivals = simulation.Arrivals(a_year=50_000, bursts=1)
    years = [simulation.arrivals_of(arrivals, np.random.default_rng(seed)) for seed in range(10)]
    assert np.mean([len(one.received) for one in years]) == pytest.approx(50_000, rel=0.01)
    assert np.mean([one.anchor.mean() for one in years]) == pytest.approx(0.05, rel=0.05)
    for one in years:
        a_day = np.histogram(one.received, bins=np.arange(0, 365 * 24 + 1, 24))[0]
        assert a_day.max() > 7 * np.median(a_day)
        assert (np.diff(one.received) >= 0).all()


def test_without_bursts_gaps_are_those_of_a_poisson_process():
    arrivals = simulation.Arrivals(a_year=50_000, bursts=0)
    gaps = np.diff(simulation.arrivals_of(arrivals, np.random.default_rng(0)).received)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.02)


def test_outages_do_not_overlap_and_last_as_long_as_declared():
    failures = simulation.Failures(outages=100)
    drawn = simulation.outages_of(failures, np.random.default_rng(0))
    assert all(24 <= end - begin <= 96 for begin, end in drawn)
    assert all(before[1] <= after[0] for before, after in pairwise(drawn))


def test_the_queue_is_what_has_come_and_is_not_done():
    outcome = run([0, 1, 2], Rule(window=0), costs(scan=1.5 * HOUR))
    assert outcome.done.tolist() == [1.5, 3, 4.5]
    assert outcome.queue_at(np.array([-1.0, 0.0, 1.2, 1.5, 2.5, 9.0])).tolist() == [0, 1, 2, 1, 2, 0]


@pytest.mark.parametrize("window", year.WINDOWS.values())
def test_deadlines_are_missed_where_one_worker_is_too_slow(window):
    arrivals = simulation.Arrivals(a_year=1000, bursts=0)
    enough, too_slow = (
        year.figures(simulation.a_year(0, Rule(window), costs(person=hours * HOUR), 1, arrivals, NONE_FAILS), window, 1)
        for hours in (1, 12)
    )
    assert enough["within_month"] == 1
    assert too_slow["within_month"] < 0.5  # 12,000 hours of work for a year of 8,760
    assert too_slow["queue_max"] > 200
    assert too_slow["core_hours"] == pytest.approx(12 * too_slow["requests"])


def test_an_outage_of_more_than_a_month_misses_the_month():
    outcome = run([0, 0, 800], Rule(window=24), outages=[(1, 730)])
    assert year.figures(outcome, 24, 1)["within_month"] == pytest.approx(1 / 3)


def test_a_year_is_the_same_for_the_same_seed_and_another_for_another():
    batch = costs(scan=HOUR)
    first, again, other = (
        simulation.a_year(seed, Rule(168), batch, 1, simulation.Arrivals(a_year=2000), simulation.Failures())
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first.done, again.done)
    assert len(first.done) != len(other.done) or not np.array_equal(first.done, other.done)


def test_a_share_is_not_rounded_up_to_all():
    assert year._share((0.99999, 0.99999, 1.0)) == "99.9 %"
    assert year._share((1.0, 1.0, 1.0)) == "100 %"


@pytest.mark.parametrize("module", [simulation, year], ids=lambda module: module.__name__)
def test_examples_hold(module):
    assert doctest.testmod(module).failed == 0


def test_the_picture_is_drawn(tmp_path):
    years = {(1, window, joins): run([0, 50], Rule(1)) for window in year.WINDOWS for joins in year.JOINING}
    assert year.draw(years, tmp_path / "year.png").stat().st_size > 1000
