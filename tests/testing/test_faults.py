"""The suites find what is wrong with a model: each fault that a newcomer might make fails a test."""

import subprocess
import sys
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from pydantic import Field

from erasable.extensions import install_command
from erasable.models import ALS, EASE, Change, Parameters
from erasable.models._als import ALSSettings
from erasable.testing import ModelSuite
from erasable.testing import _exactness as abilities

CALLS = count()


class Drifting(ALS):
    """Trains differently each time."""

    def train(self, shared, stage, effort):
        trained = super().train(shared, stage, effort)
        return Parameters({"item": trained.shared["item"] + np.float32(next(CALLS))}, {})


class InPlace(ALS):
    """Changes what it starts from."""

    def train(self, shared, stage, effort):
        trained = super().train(shared, stage, effort)
        shared["item"].setflags(write=True)
        shared["item"][:] = trained.shared["item"]
        return trained


class Crowded(ALS):
    """Solves rows that depend on how many others are there."""

    def represent(self, prepared, people, effort):
        return {name: rows * len(rows) for name, rows in super().represent(prepared, people, effort).items()}


class Numbered(ALS):
    """Starts an item from its number instead of its id."""

    def _starting_rows(self, ids, seed):
        return np.arange(len(ids) * self.settings.factors, dtype=np.float32).reshape(len(ids), -1) / 1000


class Threaded(ALS):
    """Gives other bytes on more threads."""

    def train(self, shared, stage, effort):
        trained = super().train(shared, stage, effort)
        return Parameters({"item": trained.shared["item"] * np.float32(effort.threads)}, {})


class Hashing(ALS):
    """Uses Python's own hashes, which differ between processes."""

    def train(self, shared, stage, effort):
        trained = super().train(shared, stage, effort)
        return Parameters({"item": trained.shared["item"] * np.float32(1 + hash("salt") % 1000)}, {})


class Remembering(ALS):
    """Keeps something of everyone it has ever seen."""

    seen = 0

    def train(self, shared, stage, effort):
        type(self).seen += len(stage.interactions)
        trained = super().train(shared, stage, effort)
        return Parameters({"item": trained.shared["item"] * np.float32(1 + type(self).seen / 1e6)}, {})


class Deaf(ALS):
    """Learns nothing of anybody."""

    def train(self, shared, stage, effort):
        return Parameters({"item": shared["item"] + np.float32(1)}, {})


class Impatient(ALS):
    """Trains as long as its own settings say, whatever the stage says."""

    def train(self, shared, stage, effort):
        return super().train(shared, replace(stage, epochs=self.settings.epochs), effort)


class DampedSettings(ALSSettings):
    """Settings one of which is said to reach rows only."""

    only_for_rows = frozenset({"damping"})
    damping: float = 0.5


class Damped(ALS):
    """Has a setting for rows only."""

    settings_class = DampedSettings

    def represent(self, prepared, people, effort):
        rows = super().represent(prepared, people, effort)["user"]
        return {"user": rows * np.float32(self.settings.damping)}


class Leaking(Damped):
    """Trains with a setting that is said to reach rows only, so that two trainings have one name."""

    def train(self, shared, stage, effort):
        trained = super().train(shared, stage, effort)
        return Parameters({"item": trained.shared["item"] * np.float32(self.settings.damping)}, {})


class Stale(ALS):
    """Prepares once, and keeps that for all shared parameters."""

    def prepare(self, shared):
        if not hasattr(self, "kept"):
            self.kept = super().prepare(shared)
        return self.kept


class Preparing(ALS):
    """Changes the shared parameters when it prepares them."""

    def prepare(self, shared):
        shared["item"].setflags(write=True)
        shared["item"][:] *= 2
        return super().prepare(shared)


class Wearing(ALS):
    """Changes what was prepared whenever it scores."""

    def score(self, prepared, row, owned):
        prepared.rows.setflags(write=True)
        prepared.rows[:] *= np.float32(0.5)
        return super().score(prepared, row, owned)


class Blind(ALS):
    """Prepares the same whatever the shared parameters are."""

    def prepare(self, shared):
        return super().prepare({"item": np.ones_like(shared["item"])})


class Idle(EASE):
    """Serves on with everything while an erasure waits."""

    def provisional(self, shared, change):
        return shared


class Halfway(EASE):
    """Leaves some of those who go."""

    def provisional(self, shared, change):
        some = change.taken.users.texts()[::2]
        return super().provisional(shared, Change(change.taken.of_users(some), change.given))


class Additive(EASE):
    """Learns those who go a second time instead of taking them out."""

    def provisional(self, shared, change):
        return super().provisional(shared, Change(change.given, change.taken))


class Selfish(ALS):
    """Finds an item like nothing but itself."""

    def similar(self, shared, number):
        return (np.arange(len(shared["item"])) == number).astype(np.float32)


class Reversed(ALS):
    """Returns distances, which are lower for what is more alike."""

    def similar(self, shared, number):
        return 1 - super().similar(shared, number)


class Numbers(ALS):
    """Returns the numbers of items, best first, instead of a score for each."""

    def similar(self, shared, number):
        return np.argsort(-super().similar(shared, number))


class Moody(ALS):
    """Finds other items alike each time."""

    def similar(self, shared, number):
        return super().similar(shared, number) + np.float32(next(CALLS) / 1000)


class Sharing(ALS):
    """Hands out its own array, which whoever is given it may change."""

    def similar(self, shared, number):
        self.kept = getattr(self, "kept", super().similar(shared, number))
        return self.kept


SMALL = {"factors": 4, "neighbours": "all", "regularisation": 1.0, "epochs": 3}


def suite_of(kind):
    """Return the suite of a model; one that derives from ours has a name of its own."""
    if kind.__module__ == __name__:
        kind.name = kind.__name__.lower()
    settings = {name: SMALL[name] for name in SMALL if name in kind.settings_class.model_fields}
    return type("Suite", (ModelSuite,), {"model": kind(**settings)})()


@pytest.mark.parametrize(
    ("kind", "test", "given"),
    [
        (Drifting, "test_the_same_seed_gives_the_same_bytes_whatever_was_trained_before", {}),
        (
            Drifting,
            "test_after_any_requests_the_state_is_the_one_learned_without_them",
            {"way": "all at once", "seed": 0},
        ),
        (InPlace, "test_training_never_changes_its_start", {}),
        (Crowded, "test_nobody_s_leaving_moves_a_byte_of_the_others", {"gone": ["u0014"]}),
        (Crowded, "test_nobody_else_s_data_moves_a_byte", {}),
        (Numbered, "test_an_item_starts_from_the_seed_and_its_id_alone", {}),
        (Threaded, "test_threads_do_not_change_a_byte_of_training", {"threads": 2}),
        pytest.param(Hashing, "test_another_process_gives_the_same_bytes", {}, marks=pytest.mark.full),
        (Remembering, "test_the_order_of_requests_does_not_matter", {"way": "all at once"}),
        (
            Remembering,
            "test_any_order_of_learning_and_forgetting_gives_what_learning_the_outcome_gives",
            {"way": "all at once", "seed": 0},
        ),
        (Deaf, "test_it_learns_a_checkerboard", {}),
        (Deaf, "test_what_someone_taught_does_reach_the_bytes", {}),
    ],
)
def test_a_fault_is_found(kind, test, given):
    getattr(suite_of(ALS), test)(**given)
    with pytest.raises(AssertionError):
        getattr(suite_of(kind), test)(**given)


ONE_GOES = {"after": abilities._AFTER["one goes"]}
ALL_GO = {"after": abilities._AFTER["everyone goes"]}


@pytest.mark.parametrize(
    ("right", "wrong", "test", "given"),
    [
        (ALS, Impatient, "test_settings_that_reach_no_stage_change_no_byte_of_it", {}),
        (Damped, Leaking, "test_settings_that_reach_no_stage_change_no_byte_of_it", {}),
        (ALS, Stale, "test_what_is_prepared_follows_from_the_shared_parameters_alone", {}),
        (ALS, Preparing, "test_what_is_prepared_follows_from_the_shared_parameters_alone", {}),
        (ALS, Wearing, "test_what_is_prepared_follows_from_the_shared_parameters_alone", {}),
        (ALS, Blind, "test_what_is_prepared_follows_from_the_shared_parameters_alone", {}),
        (EASE, Idle, "test_what_is_served_in_between_holds_nothing_of_who_leaves", ONE_GOES),
        (EASE, Additive, "test_what_is_served_in_between_holds_nothing_of_who_leaves", ONE_GOES),
        (EASE, Halfway, "test_what_is_served_in_between_holds_nothing_of_who_leaves", ALL_GO),
        (ALS, Selfish, "test_items_that_the_same_people_have_are_alike", {}),
        (ALS, Reversed, "test_items_that_the_same_people_have_are_alike", {}),
        (ALS, Numbers, "test_how_much_items_are_alike_follows_from_the_shared_parameters_alone", {}),
        (ALS, Moody, "test_how_much_items_are_alike_follows_from_the_shared_parameters_alone", {}),
        (ALS, Sharing, "test_how_much_items_are_alike_follows_from_the_shared_parameters_alone", {}),
    ],
)
def test_a_fault_of_an_ability_is_found(right, wrong, test, given):
    getattr(suite_of(right), test)(**given)
    with pytest.raises(AssertionError):
        getattr(suite_of(wrong), test)(**given)


def test_a_setting_of_which_no_other_value_is_found_is_asked_for():
    class Worded(DampedSettings):
        only_for_rows = frozenset({"words"})
        words: str = Field("a", pattern="^[ab]$")

    kind = type("Wordy", (Damped,), {"settings_class": Worded})
    suite = suite_of(kind)
    with pytest.raises(AssertionError, match="no other value of the setting 'words': give one in its other_values"):
        suite.test_settings_that_reach_no_stage_change_no_byte_of_it()
    type(suite).other_values = {"words": "b"}
    suite.test_settings_that_reach_no_stage_change_no_byte_of_it()


def test_without_pytest_it_says_what_to_install():
    code = "import sys; sys.modules['pytest'] = None; import erasable.testing"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert f"erasable.testing needs pytest: {install_command('testing')}" in found.stderr


def test_the_library_itself_never_loads_it():
    code = "import sys, erasable.cli.main, erasable.operations; print('pytest' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
