"""The public names: adding or removing one is a decision."""

import importlib

import pytest

import erasable

UNITS = ["data", "grouping", "models", "training", "unlearning", "evaluation", "store", "proof", "operations"]


def test_the_library_has_one_front_door():
    assert sorted(erasable.__all__) == ["Recommender", "__version__"]


def test_its_methods():
    methods = {name for name in vars(erasable.Recommender) if not name.startswith("_")}
    assert methods == {
        "evaluate",
        "fit",
        "forget",
        "groups",
        "load",
        "learn_more",
        "plan",
        "recommend",
        "save",
        "show",
        "status",
        "verify",
    }


@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_says_what_others_may_use(unit):
    module = importlib.import_module(f"erasable.{unit}")
    assert all(hasattr(module, name) for name in module.__all__)
    assert sorted(module.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)) == module.__all__
