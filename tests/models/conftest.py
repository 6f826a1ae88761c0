"""The kit as fixtures: modules of tests/kit by name."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _from_kit(name: str) -> ModuleType:
    path = Path(__file__).parents[1] / "kit" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"kit_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def tables() -> ModuleType:
    return _from_kit("tables")


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    return _from_kit("reference")


@pytest.fixture(scope="session")
def kernel_slopes() -> ModuleType:
    return _from_kit("kernel_slopes")


_agreement = _from_kit("agreement")


@pytest.fixture(scope="session")
def agreement() -> ModuleType:
    return _agreement


@pytest.fixture(params=_agreement.CASES, ids=str)
def case(request: pytest.FixtureRequest) -> object:
    return request.param
