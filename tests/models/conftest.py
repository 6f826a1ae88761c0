"""Every model in every setting that the reference trainer is compared in."""

import pytest

from kit.agreement import CASES


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> object:
    return request.param
