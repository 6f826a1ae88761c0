"""Benchmarks as modules, to test what they work out."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[2] / "benchmarks"


def benchmark(name: str) -> ModuleType:
    """Return a script of benchmarks/ as a module; what it imports from there is found too."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))  # last, so that its names hide none
    return import_module(name)
