"""The suites find what is wrong with a model: each fault that a newcomer might make fails a test."""

import subprocess
import sys
from itertools import count

import numpy as np
import pytest

from erasable.models import ALS, Parameters
from erasable.testing import ModelSuite

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


def suite_of(kind):
    """Return the suite of a model."""
    return type("Suite", (ModelSuite,), {"model": kind(factors=4, regularisation=1.0, epochs=3)})()


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
        (Hashing, "test_another_process_gives_the_same_bytes", {}),
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


def test_without_pytest_it_says_what_to_install():
    code = "import sys; sys.modules['pytest'] = None; import erasable.testing"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "erasable.testing needs pytest: pip install 'erasable[testing]'" in found.stderr


def test_the_library_itself_never_loads_it():
    code = "import sys, erasable.cli.main, erasable.operations; print('pytest' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
