"""Our own models inherit the suites that are published for others."""

import pytest

from erasable.models import ALS, DMF, EASE, NMF
from erasable.testing import ModelSuite


class TestALS(ModelSuite):
    model = ALS(factors=8, regularisation=1.0, epochs=6)


class TestEASE(ModelSuite):
    model = EASE(neighbours=5, regularisation=5.0)


class TestEASEByRule(ModelSuite):
    model = EASE()


@pytest.mark.full  # its bytes are golden; the suite for EASE runs with neighbours
class TestDenseEASE(ModelSuite):
    model = EASE(neighbours="all", regularisation=5.0)
    rounded_anew = frozenset({"inverse"})


class TestNMF(ModelSuite):
    model = NMF(batch=128, epochs=6)


class TestDMF(ModelSuite):
    model = DMF(batch=128, epochs=6)
