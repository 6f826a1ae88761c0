"""Random cases of the acceptance test: a part of those that `scripts/bench exactness` runs, and that it can fail."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from erasable.requests import Request
from kit import case_runs
from kit.case_runs import AGREEMENT, CaseFailed, run_case, words_of
from kit.choosing import cases, numbers, some
from kit.random_cases import (
    CHAINS,
    GROUPINGS,
    KINDS,
    MODELS,
    STRATEGIES,
    WAYS,
    Ask,
    Moment,
    case_of,
    requests_of,
    without,
)
from kit.random_tables import ID_KINDS, SCALES, by_user, core, draw_ids

# The first case of each strategy with each grouping and policy.
NUMBERS = (
    *(0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 14, 16, 18, 19, 22, 23, 24, 25, 26, 27, 31, 33, 36, 39, 40, 44, 45, 47),
    *(65, 71, 73, 78, 98, 105, 115, 151, 155, 168, 190, 382),
)
# The first case of each other way with each policy, with and without data that come later.
OTHER_NUMBERS = (
    *(1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1011, 1015, 1018, 1019, 1021, 1022, 1026, 1031, 1040, 1044),
    *(1047, 1090, 1102, 1108, 1118, 1290),
)
# Of these each strategy with each policy, each grouping and model, each other way at once and later.
QUICK = (0, 1, 2, 5, 9, 12, 13, 1000, 1002, 1003, 1006, 1018, 1019, 1022, 1108)
# NMF side by side and in sequence, DMF in sequence; four to six stages each.
WITH_REFERENCE = (60, 82, 91)
POLICIES = {"fixed", "independent", "regroup"}


@pytest.fixture(scope="module")
def thousand():
    return [case_of(number) for number in range(1000)]


@pytest.mark.parametrize("number", numbers([*NUMBERS, *OTHER_NUMBERS], QUICK))
def test_forgetting_gives_the_bytes_of_learning_without(tmp_path, number):
    case = case_of(number)
    outcome = run_case(case, tmp_path)
    assert outcome.failure == "", str(case)
    assert outcome.checkpoints


@pytest.mark.parametrize("number", numbers(WITH_REFERENCE, [91]))
def test_what_forgetting_leaves_are_the_numbers_of_the_numpy_trainer(tmp_path, number):
    outcome = run_case(case_of(number), tmp_path, reference=True)
    assert outcome.failure == ""
    assert outcome.steady
    assert 0 < outcome.difference <= AGREEMENT


def test_the_cases_run_here_are_of_every_strategy_with_every_grouping_and_policy():
    found = Counter((c.strategy, c.grouping, c.policy) for c in (case_of(number).choices for number in NUMBERS))
    pairs = {(name, policy) for name in GROUPINGS for policy in ("fixed", "regroup")}
    pairs = pairs - {("independent", "fixed")} | {("independent", "independent")}
    assert found == Counter((strategy, *pair) for strategy in set(STRATEGIES) for pair in pairs)


def test_the_quick_cases_are_of_every_strategy_with_every_policy_and_of_every_grouping_model_and_way():
    found = [case_of(number) for number in QUICK]
    choices = [case.choices for case in found]
    assert {(c.strategy, c.policy) for c in choices} >= {(s, p) for s in STRATEGIES for p in POLICIES}
    assert {c.grouping for c in choices if c.way == "chain"} == {*GROUPINGS}
    assert {c.model for c in choices} >= {*MODELS}
    assert {(c.choices.way, c.later is not None) for c in found} >= {
        (w, later) for w in WAYS for later in (False, True)
    }


def test_the_cases_of_other_ways_run_here_are_of_every_way_and_policy_at_once_and_later():
    found = Counter((c.choices.way, c.choices.policy, c.later is not None) for c in map(case_of, OTHER_NUMBERS))
    assert found == Counter((way, policy, later) for way in WAYS for policy in POLICIES for later in (False, True))


@pytest.mark.full
def test_cases_of_other_ways_cover_all_there_is_to_choose():
    cases = [case_of(number) for number in range(CHAINS, CHAINS + 300)]
    choices = [case.choices for case in cases]
    assert {(c.way, c.model) for c in choices} == {
        *(("als", "als"), ("ease", "ease")),
        *((way, model) for way in ("solved", "anchors") for model in MODELS),
    }
    assert {(c.way, c.strategy) for c in choices if c.way in ("solved", "anchors")} == {
        (way, strategy) for way in ("solved", "anchors") for strategy in ("laser", "retrain")
    }
    assert {(c.way, c.anchors) for c in choices if c.way in ("als", "ease")} == {
        *(("als", anchors) for anchors in (None, 1.0, 0.0001, 0.3, 0.6)),
        *(("ease", anchors) for anchors in (None, 0.0001, 0.3, 0.6)),
    }
    assert {case.later.after for case in cases if case.later} == set(range(5))


def test_what_comes_later_is_a_part_of_the_table():
    for case in filter(lambda case: case.later, map(case_of, OTHER_NUMBERS)):
        assert case.first_pairs
        assert case.later.pairs
        assert case.first_pairs | case.later.pairs == case.table.pairs
        assert not case.first_pairs & case.later.pairs


@pytest.mark.full
def test_the_first_thousand_are_chains_which_the_reference_can_train(thousand):
    assert len(thousand) == CHAINS
    assert {(case.choices.way, case.later) for case in thousand} == {("chain", None)}


@pytest.mark.full
def test_a_thousand_cases_cover_all_there_is_to_choose(thousand):
    choices = [case.choices for case in thousand]
    assert {c.strategy for c in choices} == set(STRATEGIES)
    assert {c.grouping for c in choices} == set(GROUPINGS)
    assert {c.policy for c in choices} == POLICIES
    assert {(c.model, c.strategy, c.policy) for c in choices} == {
        (model, strategy, policy) for model in MODELS for strategy in STRATEGIES for policy in POLICIES
    }
    assert {c.groups for c in choices} == {c.epochs for c in choices} == set(range(1, 7))
    assert {(c.holdout, c.min_interactions, c.negatives) for c in choices} == {
        (holdout, minimum, negatives) for holdout in (0.0, 0.2) for minimum in (0, 2, 3) for negatives in (0, 1, 4)
    }
    assert {case.threads for case in thousand} == {(a, b) for a in range(1, 5) for b in range(1, 5)}
    assert {ask.kind for case in thousand for call in case.calls for ask in call} == set(KINDS)
    assert {len(case.calls) for case in thousand} == {1, 2, 3, 4}


@pytest.mark.full
def test_a_thousand_tables_are_awkward_in_every_way(thousand):
    tables = [case.table for case in thousand]
    assert {table.scale for table in tables} == {scale for _, scale in SCALES.values()}
    users = {user for table in tables for user in by_user(table.pairs)}
    assert all(kind(0) in users for kind in ID_KINDS.values())
    assert (
        {bool(table.extra) for table in tables} == {"timestamp" in table.columns for table in tables} == {True, False}
    )
    assert any(len(table.rows) > len(table.pairs) for table in tables)
    owned = [by_user(table.pairs) for table in tables]
    assert any(max(map(len, has.values())) == len({item for row in has.values() for item in row}) for has in owned)
    assert any(min(map(len, has.values())) == 1 for has in owned)
    assert all(5 <= len(has) <= 60 for has in owned)


def test_a_case_is_a_function_of_its_number():
    assert case_of(7) == case_of(7)
    assert len({str(case_of(number)) for number in range(20)}) == 20


_REPEAT = "import sys; sys.path.append(sys.argv[1]); from kit.random_cases import case_of; print(repr(case_of(7)))"


@pytest.mark.full
@pytest.mark.parametrize("hash_seed", some(["1", "2"], 1))
def test_a_case_is_the_same_in_every_process(hash_seed):
    words = [sys.executable, "-c", _REPEAT, str(Path(__file__).parent)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONIOENCODING": "utf-8"}
    answer = subprocess.run(words, env=environment, capture_output=True, check=True)
    assert answer.stdout.decode().rstrip("\n") == repr(case_of(7))


def test_ids_are_distinct_and_easily_mistaken():
    assert len(set(draw_ids(np.random.default_rng(1), 60))) == 60
    assert [ID_KINDS["numbers"](n) for n in range(4)] == ["7", "07", "007", "8"]
    composed, decomposed = ID_KINDS["unicode"](0), ID_KINDS["unicode"](1)
    assert composed != decomposed
    assert len(composed) < len(decomposed)


def test_a_filter_by_hand():
    pairs = {("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c", "y"), ("c", "z")}
    assert core(pairs, 0) == pairs
    assert core(pairs, 2) == {("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")}  # z goes, and c with it
    assert core(pairs, 3) == frozenset()


# What is asked for.


def moments(number):
    """Yield the moments of a case as if its groups were thirds of who is there, with what is asked for."""
    case, partly_gone = case_of(number), set()
    left = case.table.pairs
    for call in case.calls:
        people = list(by_user(case.held(left)))
        moment = Moment(left, [set(people[place::3]) for place in range(3)], frozenset(partly_gone))
        asked = requests_of(case, call, moment)
        yield case, moment, asked
        requests = [request for one in asked for request in one.requests]
        left = without(left, requests)
        partly_gone |= {request.user for request in requests}


@pytest.mark.parametrize("number", range(40))
def test_requests_are_about_what_is_held_and_leave_enough(number):
    for case, moment, asked in moments(number):
        held = by_user(case.held(moment.left))
        requests = [request for one in asked for request in one.requests]
        assert len({request.user for request in requests}) == len(requests)
        assert all(set(request.items or ()) <= set(held[request.user]) for request in requests)
        assert case.may_be_left(without(moment.left, requests))


def test_kinds_of_requests_are_what_they_say():
    seen = Counter()
    for case, moment, asked in (step for number in range(40) for step in moments(number)):
        held = by_user(case.held(moment.left))
        for kind, requests in ((one.kind, one.requests) for one in asked):
            seen[kind] += 1
            users, first = {request.user for request in requests}, requests[0]
            assert {
                "user": len(requests) == 1 and first.everything,
                "odd user": first.everything and users <= set(case.table.odd),
                "items": len(requests) == 1 and not first.everything,
                "last item": not first.everything and set(first.items or ()) == set(held[first.user]),
                "group": all(request.everything for request in requests) and users in moment.groups,
                "again": users <= moment.partly_gone and not first.everything,
            }[kind]
    assert set(seen) == set(KINDS)


def test_where_a_group_is_everyone_some_items_are_asked_for_instead():
    case = case_of(0)
    everyone = Moment(case.table.pairs, [set(by_user(case.held(case.table.pairs)))], frozenset())
    (asked,) = requests_of(case, [Ask("group", 5)], everyone)
    assert asked.kind == "items"


def test_requests_in_the_words_of_the_command(tmp_path):
    file = tmp_path / "requests.csv"
    assert words_of([Request("a")], file) == ["--user", "a"]
    assert words_of([Request("a", ("x", "y"))], file) == ["--user", "a", "--item", "x", "--item", "y"]
    assert words_of([Request("a"), Request("b", ("x", 'y"'))], file) == ["--user", "a", "--users-file", file]
    assert file.read_text() == 'user_id,item_id\nb,x\nb,"y"""\n'
    assert words_of([Request("a"), Request(" b"), Request("c,")], file) == ["--users-file", file]
    assert file.read_text() == "a\n b\nc,\n"


# It can fail.


@pytest.mark.parametrize(
    "number",
    cases(
        {"fixed": 3, "regroup": 5, "independent": 8, "other way": 1000, "other way, later": 1018},
        ["regroup", "other way, later"],
    ),
)
def test_a_second_one_learned_with_another_seed_is_told(tmp_path, number):
    outcome = run_case(case_of(number), tmp_path, options_of_b=["--seed", "1001"])
    assert "have other names in B" in outcome.failure
    assert outcome.calls


@pytest.mark.parametrize(
    ("one", "other", "count", "reason"),
    [
        ({"x": b"1", "y": b"2"}, {"x": b"1", "y": b"3"}, 2, "1 of 2 checkpoints have other bytes"),
        ({"x": b"1", "y": b"2"}, {"x": b"1"}, 2, "1 of A's 2 checkpoints have other names"),
        ({"x": b"1"}, {"x": b"1", "y": b"2"}, 1, "0 of A's 1 checkpoints have other names"),
        ({}, {}, 2, "A has 0 checkpoints instead of 2"),
    ],
)
def test_checkpoints_that_differ_or_are_missing_are_told(one, other, count, reason):
    with pytest.raises(CaseFailed, match=reason):
        case_runs._check_same(one, other, count)


def test_a_refusal_fails_the_case(tmp_path):
    outcome = run_case(case_of(3), tmp_path, options_of_b=["--groups", "0"])
    assert "erasable learn ended with 2" in outcome.failure


def test_a_workspace_that_verify_finds_different_fails_the_case(tmp_path, monkeypatch):
    def spoil(case, folder, left, options=()):
        monkeypatch.undo()
        case_runs.learn_b(case, folder, left, options)
        for name in ("a", "b"):
            for path in (folder / name).rglob("*.safetensors"):
                path.write_bytes(path.read_bytes()[:-1] + b"!")

    monkeypatch.setattr(case_runs, "learn_b", spoil)
    assert "erasable verify ended with" in run_case(case_of(3), tmp_path).failure


def test_a_trainer_that_is_a_little_off_is_told(tmp_path, monkeypatch):
    right = case_runs.train_reference

    def off(*words):
        return {name: array + 2 * AGREEMENT for name, array in right(*words).items()}

    monkeypatch.setattr(case_runs, "train_reference", off)
    assert "the reference differs by 2.0e-05" in run_case(case_of(60), tmp_path, reference=True).failure


def test_a_trainer_that_shakes_is_not_steady_and_proves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(case_runs, "SHAKING", 0.01)
    outcome = run_case(case_of(60), tmp_path, reference=True)
    assert outcome.difference <= AGREEMENT < outcome.shaken
    assert not outcome.steady
