"""The kit as fixtures: what tests of several units share, by the name of its module in tests/kit."""

from types import ModuleType

import pytest

from kit import agreement as _agreement
from kit import chains as _chains
from kit import kernel_slopes as _kernel_slopes
from kit import reference as _reference
from kit import tables as _tables


@pytest.fixture(scope="session")
def agreement() -> ModuleType:
    return _agreement


@pytest.fixture(scope="session")
def chains() -> ModuleType:
    return _chains


@pytest.fixture(scope="session")
def kernel_slopes() -> ModuleType:
    return _kernel_slopes


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    return _reference


@pytest.fixture(scope="session")
def tables() -> ModuleType:
    return _tables
