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
def chains() -> ModuleType:
    return _from_kit("chains")


@pytest.fixture
def learned() -> object:
    """A state made by hand, whose scores anyone can read off."""
    return _from_kit("handmade").handmade()
