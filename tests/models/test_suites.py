"""Our own models inherit the suites that are published for others."""

from functools import wraps

import numpy as np
import pytest

from erasable.models import ALS, DMF, EASE, NMF, ItemKNN, Popular, SASRec, TwoTower
from erasable.testing import ModelSuite
from erasable.testing._suite import checkerboard, scores


def only_with_all(test):
    """Return a test of the suite that runs with --all: the quick suite starts another process for NMF alone."""

    @pytest.mark.full
    @wraps(test)
    def later(self, *given, **named):
        return test(self, *given, **named)

    return later


class WithoutProcesses(ModelSuite):
    test_another_process_gives_the_same_bytes = only_with_all(ModelSuite.test_another_process_gives_the_same_bytes)


class TestALS(WithoutProcesses):
    model = ALS(factors=8, regularisation=1.0, epochs=6)


class TestEASE(WithoutProcesses):
    model = EASE(neighbours=5, regularisation=5.0)


class TestEASEByRule(WithoutProcesses):
    model = EASE()


@pytest.mark.full  # its bytes are golden; the suite for EASE runs with neighbours
class TestDenseEASE(ModelSuite):
    model = EASE(neighbours="all", regularisation=5.0)
    rounded_anew = frozenset({"inverse"})


class TestNMF(ModelSuite):
    model = NMF(batch=128, epochs=6)


class TestDMF(WithoutProcesses):
    model = DMF(batch=128, epochs=6)


class TestSASRec(WithoutProcesses):
    model = SASRec(factors=8, blocks=1, length=12, epochs=10, batch=16, learning_rate=0.01)


class TestTwoTower(WithoutProcesses):
    model = TwoTower(factors=8, hidden=8, epochs=60, batch=16, learning_rate=0.02)


class TestItemKNN(WithoutProcesses):
    model = ItemKNN(neighbours=5, shrinkage=2.0)


class TestItemKNNByDefault(WithoutProcesses):
    model = ItemKNN()


class TestPopular(WithoutProcesses):
    model = Popular()

    def test_it_learns_a_checkerboard(self):
        """It does not: everyone has the same scores, by how many people have an item."""
        rows, _ = checkerboard()
        found = np.array(scores(self.model, self.learned(rows), rows))
        assert (found == (np.bincount(rows.item_index) / len(rows.users)).astype(np.float32)).all()
