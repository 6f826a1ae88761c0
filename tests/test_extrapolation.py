"""What is worked out for a hundred million people follows from what was measured; here from made-up measurements."""

import doctest
import json

import pytest

from kit.benchmark import benchmark

growth = benchmark("scale_growth")
extrapolation = benchmark("extrapolation")
SIZES = benchmark("scale").SIZES
NAMES = ("0.1M", "1M", "10M")
FIXED, SEARCHED, REWRITTEN, PERSON, TRAINED = 0.5, 1e-7, 2e-6, 0.01, 6e-7


def facts(name, part):
    """Return what a machine measures whose costs are exactly those above."""
    size = SIZES[name]
    of_many = growth.scan_of_many()
    one = FIXED + SEARCHED * size.interactions + REWRITTEN * growth.rows_of_a_bucket(size) + PERSON
    many = FIXED + SEARCHED * size.interactions * of_many + REWRITTEN * growth.rows_of_many(size) + 1000 * PERSON
    memory = 0.3 + 1e-8 * size.interactions
    measured = {
        "make": {"cpu": 1.0, "made": {"bytes": 4 * size.interactions}},
        "learn-als": {"cpu": 2 + 3e-6 * size.interactions, "disk_gb": 5e-9 * size.interactions},
        "learn-ease": {"cpu": 2 + 1e-6 * growth.pairs(size), "disk_gb": 7e-9 * size.interactions},
        "scan-als": {"cpu": 1.5 + 1e-7 * size.interactions, "start": 1.5},
        "recommend-als": {"cpu_beyond_start": 1e-6 * growth.rows_of_a_bucket(size)},
        "serve-als": {"cpu_until_first_answer": growth.SERVER_START + 1e-6 * growth.rows_of_a_bucket(size)},
        "forget-one-als": {"cpu_beyond_start": one, "start": 1.5},
        "forget-1000-als": {"cpu": 1.5 + many},
        "forget-anchor-als": {"cpu_beyond_start": one + TRAINED * size.interactions, "start": 1.5},
        "forget-one-ease": {"cpu_beyond_start": 1e-7 * growth.pairs(size), "start": 1.5},
    }
    return {"size": name, "part": part, "memory_gb": memory, **measured[part]}


@pytest.fixture
def folder(tmp_path):
    for name in NAMES:
        for part in growth.PRELIMINARY:
            (tmp_path / f"{name}-{part}.json").write_text(json.dumps(facts(name, part)))
    return tmp_path


def step(part):
    return next(one for one in extrapolation.STEPS if one.part == part)


def test_costs_that_made_the_measurements_are_found_again(folder):
    found, target = growth.batch_costs(growth.measured_in(folder)), growth.TARGET
    assert found.fixed == pytest.approx(FIXED, rel=0.01)
    assert found.person == pytest.approx(PERSON, rel=0.01)
    assert found.scan == pytest.approx(SEARCHED * target.interactions, rel=0.01)
    assert found.bucket == pytest.approx(REWRITTEN * target.interactions / 2048, rel=0.01)
    assert found.anchors == pytest.approx(TRAINED * target.interactions, rel=0.1)


def test_rows_drive_learning_and_pairs_drive_ease(folder):
    measured = growth.measured_in(folder)
    als = extrapolation.worked_out(step("learn-als"), measured, growth.TARGET)
    ease = extrapolation.worked_out(step("learn-ease"), measured, growth.TARGET)
    assert als.seconds == pytest.approx(2 + 3e-6 * 1e10)
    assert ease.seconds == pytest.approx(2 + 1e-6 * 1e10 * 100)  # 100 rows for each person
    assert als.memory == pytest.approx(0.3 + 100)
    assert als.seconds_at_most == als.seconds


def test_what_goes_over_the_network_is_counted(folder):
    measured = growth.measured_in(folder)
    als = extrapolation.worked_out(step("learn-als"), measured, growth.TARGET)
    ids = len("u100000000") + len("i200000")
    assert als.traffic == pytest.approx(40 + 2 * (8 + ids) * 10 + 2 * 50)
    scan = extrapolation.worked_out(step("scan-als"), measured, growth.TARGET)
    assert scan.traffic == pytest.approx(50)
    assert scan.on(10) == pytest.approx(100)
    assert scan.on(1000) == pytest.approx(50 / 1.25)


def test_workers_share_the_search_of_an_erasure_and_nothing_of_learning(folder):
    measured = growth.measured_in(folder)
    als = extrapolation.worked_out(step("learn-als"), measured, growth.TARGET)
    assert als.on(16) == als.seconds
    one = extrapolation.worked_out(step("forget-one-als"), measured, growth.TARGET)
    assert 0 < one.divided < one.seconds
    assert one.computing(16) == pytest.approx(one.seconds - one.divided * 15 / 16)


def test_what_grows_faster_than_in_a_line_has_an_upper_end():
    points = [(1e6, 1.0), (1e7, 20.0)]
    line = growth.line_through(points)
    assert line.exponent == pytest.approx(1.301, abs=0.001)
    assert line.at(1e8) == pytest.approx(19 / 9e6 * 1e8)
    assert line.at_most(1e8) == pytest.approx(400)


def test_one_size_alone_is_in_proportion_and_so_are_amounts_that_are_alike():
    assert growth.line_through([(10, 2.0)]).at(100) == 20
    assert growth.line_through([(10, 1.0), (12, 3.0)]).at(110) == pytest.approx(20)
    assert growth.line_through([(10, 3.0), (100, 2.0)]).at(1000) == 20  # less for more is noise


def test_parts_without_a_file_are_preliminary_and_said_to_be(tmp_path):
    (tmp_path / "1M-scan-als.json").write_text(json.dumps(facts("1M", "scan-als")))
    (tmp_path / "trial-scan-als.json").write_text(json.dumps(facts("1M", "scan-als") | {"size": "trial"}))
    measured = growth.measured_in(tmp_path)
    assert list(measured["scan-als"]) == ["1M"]
    assert not growth.is_preliminary(measured, "scan-als")
    assert growth.is_preliminary(measured, "learn-als")
    text, found = extrapolation.report(measured, workers=16, memory=256)
    assert text.count("(preliminary)") == len(found["preliminary"]) == len(extrapolation.STEPS) - 1


def test_what_breaks_first_comes_first(folder):
    measured = growth.measured_in(folder)
    found = dict(extrapolation.breaks(measured, memory=100.3))
    assert list(found.values()) == sorted(found.values())
    name = "learning with ALS, or training its anchors again, needs 100.3 GB in one process"
    assert found[name] == pytest.approx(100e6, rel=0.02)  # 10 bytes of a row, 100 rows of a person
    assert found["learning with ALS takes one core a day"] == pytest.approx(86_400 / 3e-4, rel=0.02)
    slots = "buckets of single slots have more than 75,000 people"
    assert found[slots] == pytest.approx(4096 * 75_000, rel=0.02)


@pytest.mark.parametrize("module", [growth, extrapolation], ids=lambda module: module.__name__)
def test_examples_hold(module):
    assert doctest.testmod(module).failed == 0
