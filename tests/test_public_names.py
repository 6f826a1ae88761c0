"""The public names: adding or removing one is a decision."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import erasable
import erasable.errors

UNITS = [
    *("data", "grouping", "models", "chain", "testing"),
    *("evaluation", "scan", "workspace", "proof", "operations", "paper"),
]


def test_the_library_has_one_front_door():
    assert erasable.__all__ == [
        "ALS",
        "DMF",
        "EASE",
        "NMF",
        "BadRows",
        "Claim",
        "DataRefused",
        "DiskFull",
        "ErasableError",
        "ErasableWarning",
        "Inputs",
        "Laser",
        "ListUnusable",
        "NewerDocument",
        "NotReproducible",
        "Outside",
        "Recommender",
        "Refused",
        "Request",
        "ResidueFound",
        "Retrain",
        "Sisa",
        "Suppressed",
        "Suppression",
        "SuppressionUnknown",
        "Unfinished",
        "UnknownInteraction",
        "UnknownItem",
        "UnknownModel",
        "UnknownUser",
        "WorkspaceBusy",
        "WorkspaceDamaged",
        "WorkspaceError",
        "WrongModel",
        "WrongSetting",
        "WrongUse",
        "__version__",
        "hit_rate",
        "ndcg",
        "recall",
    ]


def test_every_name_is_there_and_nothing_is_loaded_before_it_is_used():
    code = "import sys, erasable; early = [name for name in sys.modules if name.startswith('erasable')]; "
    code += "found = [getattr(erasable, name) for name in erasable.__all__]; print(early, len(found))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == f"['erasable'] {len(erasable.__all__)}\n"
    with pytest.raises(AttributeError, match="has no attribute 'Forgetter'"):
        _ = erasable.Forgetter


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(erasable.__file__).read_text())
    seen = [alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted({*seen, "__version__"} - {"import_module"}) == sorted(erasable.__all__)


def test_its_methods():
    methods = {name for name in dir(erasable.Recommender) if not name.startswith("_")}
    assert methods == {
        "evaluate",
        "explain",
        "fit",
        "forget",
        "get_params",
        "groups",
        "load",
        "learn_more",
        "plan",
        "recommend",
        "save",
        "set_params",
        "show",
        "similar_items",
        "status",
        "upgrade",
        "verify",
    }


@pytest.mark.parametrize("name", [name for name in dir(erasable.Recommender) if not name.startswith("_")])
def test_each_of_them_says_what_it_takes_and_shows_an_example(name):
    method = getattr(erasable.Recommender, name)
    sections = set(inspect.getdoc(method).splitlines())
    assert "Examples" in sections
    assert "Returns" in sections or name == "save"
    assert "Parameters" in sections or len(inspect.signature(method).parameters) == 1


@pytest.mark.parametrize("name", sorted({*erasable.__all__} - {*vars(erasable.errors), "__version__"}))
def test_each_name_but_errors_says_what_it_takes_and_shows_an_example(name):
    assert {"Parameters", "Examples"} <= set(inspect.getdoc(getattr(erasable, name)).splitlines())


@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_says_what_others_may_use(unit):
    module = importlib.import_module(f"erasable.{unit}")
    assert all(hasattr(module, name) for name in module.__all__)
    assert sorted(module.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)) == module.__all__
