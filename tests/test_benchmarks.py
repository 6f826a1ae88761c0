"""The benchmarks use only what is there: each name that they import from the package or the tests' kit is found."""

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(script):
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("erasable", "kit"):
            module = importlib.import_module(node.module)
            missing = [name.name for name in node.names if not _has(module, name.name)]
            assert not missing, f"{node.module} has no {missing}"


def _has(module, name):
    return hasattr(module, name) or importlib.util.find_spec(f"{module.__name__}.{name}") is not None
