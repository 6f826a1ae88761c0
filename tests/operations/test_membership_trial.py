"""The trial of a membership probe: what its chains learn from, and in which groups."""

import numpy as np
import pytest

from erasable import chain
from erasable.chain import LOCAL, Config, Dataset, arrange
from erasable.data import Catalogue, RatingScale, SyntheticSettings, synthesise
from erasable.evaluation.attack import Suspects
from erasable.grouping.points import ALONE
from erasable.models import Effort
from erasable.operations.attack import Trial, training_rows
from kit.choosing import some
from kit.fitting import fitting
from kit.tables import as_rows

ERASED = ["u0003", "u0011", "u0020"]


def dataset_of(**settings: object) -> Dataset:
    rows = synthesise(SyntheticSettings(users=40, items=30, groups=2, per_user=8, ratings=True)).interactions
    config = Config(**fitting({"groups": 2, "epochs": 1, "batch": 32, **settings}))
    return arrange(rows, Dataset.of_nobody(config, Catalogue.from_items(rows.items), RatingScale(1, 5)), ALONE)


def trial_of(dataset: Dataset) -> Trial:
    known = training_rows(dataset)
    rows = synthesise(SyntheticSettings(users=40, items=30, groups=2, per_user=8, ratings=True)).interactions
    people = rows.of_users([*ERASED, "u0001", "u0002"])
    return Trial(known, known.without(ERASED, ()), frozenset(ERASED), Suspects(people, np.zeros(5, dtype=np.int64), 1))


@pytest.fixture
def forgettings(monkeypatch):
    """What was known before and after each forgetting."""
    seen = []
    rightly = chain.forget

    def watched(state, after, store, effort):
        seen.append((state.dataset, after))
        return rightly(state, after, store, effort)

    monkeypatch.setattr(chain, "forget", watched)
    return seen


def rows_of(dataset: Dataset) -> set[tuple[str, str, float]]:
    return set().union(*(as_rows(group) for group in dataset.groups))


@pytest.mark.parametrize("settings", [{"holdout": 0.4}, {"holdout": 0.4, "policy": "regroup", "grouping": "bkm"}])
def test_what_was_held_out_is_learned_by_no_chain_whatever_its_seed(forgettings, settings):
    dataset = dataset_of(**settings)
    trial_of(dataset).measured(range(3), Effort())
    left = {row for row in rows_of(dataset) if row[0] not in ERASED}
    for before, after in forgettings:
        assert rows_of(before) == rows_of(dataset)
        assert rows_of(after) == left


def test_a_filter_that_was_applied_is_not_applied_to_training_rows_again(forgettings):
    dataset = dataset_of(min_interactions=6, holdout=0.5, policy="regroup", grouping="random")
    assert min(np.diff(group.user_starts).min() for group in dataset.groups) < 6
    trial_of(dataset).measured(range(3), Effort())
    assert all(rows_of(before) == rows_of(dataset) for before, _ in forgettings)


@pytest.mark.parametrize(("policy", "anew"), [("fixed", False), ("regroup", True)])
def test_groups_are_kept_or_decided_anew_as_the_policy_says(forgettings, policy, anew):
    trial_of(dataset_of(policy=policy, grouping="random")).measured(range(3), Effort())
    first = [frozenset(before.groups[0].users) for before, _ in forgettings]
    assert (len(set(first)) > 1) == anew


def test_one_model_that_has_forgotten_is_taken_as_it_is(forgettings):
    trial = trial_of(dataset_of())
    forgotten = np.zeros((4, 5))
    given = Trial(trial.known, trial.unknown, trial.erased, trial.suspects, forgotten)
    visited = []
    measured = given.measured(range(3), Effort(1, visited.append))
    assert sum(visited) == 3 * given.samples
    assert (len(measured.before), len(measured.never), forgettings) == (3, 3, [])
    assert measured.forgotten == [forgotten]
    assert measured.erased.tolist() == [False, False, True, True, True]


def test_every_chain_has_a_seed_of_its_own():
    measured = trial_of(dataset_of()).measured(range(3), Effort())
    chains = [*measured.before, *measured.forgotten, *measured.never]
    assert len({chain.tobytes() for chain in chains}) == 9


@pytest.mark.parametrize("settings", [{}, {"strategy": "sisa"}, {"policy": "regroup", "grouping": "random"}])
def test_samples_are_counted_beforehand(settings):
    trial, visited = trial_of(dataset_of(**settings)), []
    trial.measured(range(3), Effort(1, visited.append))
    assert sum(visited) == 3 * trial.samples


class Backwards:
    """An executor that carries out the last task first, and remembers all."""

    def __init__(self) -> None:
        self.tasks = []

    def map(self, function, tasks, effort):
        self.tasks += tasks
        return reversed(list(LOCAL.map(function, tasks[::-1], effort)))


@pytest.mark.parametrize("settings", some([{}, {"model": "als"}, {"strategy": "sisa"}], 1))
def test_each_chain_is_a_task_and_no_executor_changes_a_byte(settings):
    trial, backwards = trial_of(dataset_of(**settings)), Backwards()
    alone, threads = trial.measured(range(3), Effort()), trial.measured(range(3), Effort(3))
    elsewhere = trial.measured(range(3), Effort(2), backwards)
    for other in (threads, elsewhere):
        for kind in ("before", "forgotten", "never"):
            measured = zip(getattr(alone, kind), getattr(other, kind), strict=True)
            assert all(one.tobytes() == same.tobytes() for one, same in measured)
    assert {(task.known, task.number) for task in backwards.tasks} == {(k, n) for k in (True, False) for n in range(3)}
