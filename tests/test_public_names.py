"""The public names: adding or removing one is a decision."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

import erasable
import erasable.errors

REFERENCE = Path(__file__).parent.parent / "docs" / "reference" / "api.md"
PUBLIC = ["models", "grouping", "testing", "evaluation", "scan"]
"""The units whose names are public; the others may change with any release, but for these."""
GIVEN_TO_AUTHORS = {
    "data": ("Ids", "Interactions", "RatingScale"),
    "seeding": ("child_key", "id_keys", "mix", "normals"),
    "seeding.compiled": ("below", "compiled", "draw"),
}
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
        "DoNotLearnFiles",
        "ErasableError",
        "ErasableWarning",
        "Inputs",
        "ItemKNN",
        "Laser",
        "ListUnusable",
        "ModelComparison",
        "NewerDocument",
        "NotReproducible",
        "Outside",
        "Popular",
        "Recommender",
        "Refused",
        "Request",
        "ResidueFound",
        "Retrain",
        "SASRec",
        "Sisa",
        "Suppressed",
        "SuppressionUnknown",
        "Tuned",
        "TwoTower",
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
        "compare",
        "hit_rate",
        "ndcg",
        "recall",
        "tune",
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
        "attack",
        "evaluate",
        "explain",
        "fit",
        "forget",
        "get_params",
        "groups",
        "items",
        "load",
        "hide_items",
        "learn_again",
        "learn_more",
        "plan",
        "recommend",
        "save",
        "score",
        "set_items",
        "scan",
        "set_params",
        "show",
        "similar_items",
        "status",
        "sync",
        "unhide_items",
        "upgrade",
        "users",
        "verify",
    }


@pytest.mark.parametrize("name", [name for name in dir(erasable.Recommender) if not name.startswith("_")])
def test_each_of_them_says_what_it_takes_and_shows_an_example(name):
    method = getattr(erasable.Recommender, name)
    sections = set(inspect.getdoc(method).splitlines())
    assert "Examples" in sections
    assert "Returns" in sections or name == "save"
    signature = inspect.signature(method.fget if isinstance(method, property) else method)
    assert "Parameters" in sections or len(signature.parameters) == 1


@pytest.mark.parametrize("name", sorted({*erasable.__all__} - {*vars(erasable.errors), "__version__"}))
def test_each_name_but_errors_says_what_it_takes_and_shows_an_example(name):
    assert {"Parameters", "Examples"} <= set(inspect.getdoc(getattr(erasable, name)).splitlines())


@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_says_what_others_may_use(unit):
    module = importlib.import_module(f"erasable.{unit}")
    assert all(hasattr(module, name) for name in module.__all__)
    assert sorted(module.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)) == module.__all__


def names_of(unit: str) -> dict[str, object]:
    module = importlib.import_module(f"erasable.{unit}")
    return {name: getattr(module, name) for name in GIVEN_TO_AUTHORS.get(unit, getattr(module, "__all__", ()))}


def is_class(value: object) -> bool:
    return isinstance(value, type)


def is_function(value: object) -> bool:
    """Whether it is a function, compiled or not; aliases of types can be called and are none."""
    return inspect.isroutine(inspect.unwrap(value))


def lacking_sections(value: object) -> list[str]:
    """Return the sections that the docstring of a class or a function lacks; what it inherits does not count."""
    found = {name for name, _ in re.findall(r"^(\w+)\n(-+)$", inspect.cleandoc(value.__doc__ or ""), re.MULTILINE)}
    needed = ["Examples"]
    if is_function(value):
        needed += ["Returns", *(["Parameters"] if inspect.signature(value).parameters else [])]
    elif not issubclass(value, BaseModel):  # settings have a sentence under each field (tests/test_docs.py)
        needed += [] if found & {"Parameters", "Attributes", "Methods"} else ["Parameters, Attributes or Methods"]
    return sorted(set(needed) - found)


@pytest.mark.parametrize(
    ("unit", "name"),
    [
        (unit, name)
        for unit in (*PUBLIC, *GIVEN_TO_AUTHORS)
        for name, value in names_of(unit).items()
        if is_class(value) or is_function(value)
    ],
)
def test_each_class_and_function_of_a_public_unit_has_its_sections(unit, name):
    assert lacking_sections(names_of(unit)[name]) == []


def test_what_is_neither_class_nor_function_is_a_constant_or_an_alias():
    values = {name: value for unit in (*PUBLIC, *GIVEN_TO_AUTHORS) for name, value in names_of(unit).items()}
    others = {name for name, value in values.items() if not is_class(value) and not is_function(value)}
    assert {name for name in others if not name.isupper()} == {"Arrays", "Follow", "Protocol", "Scores"}


class Documented:
    """Has its sections.

    Attributes
    ----------
    k : int
        How many.

    Examples
    --------
    >>> Documented.k
    3
    """

    k = 3

    def bare(self, k):
        """Return k; Parameters, Returns and Examples are words here."""

    def without_arguments():
        """Return 3.

        Returns
        -------
        int
            3.
        """


class Derived(Documented):
    pass


@pytest.mark.parametrize(
    ("value", "lacking"),
    [
        (Documented, []),
        (Derived, ["Examples", "Parameters, Attributes or Methods"]),
        (Documented.bare, ["Examples", "Parameters", "Returns"]),
        (Documented.without_arguments, ["Examples"]),
    ],
)
def test_sections_that_lack_are_found(value, lacking):
    assert lacking_sections(value) == lacking


def public_names() -> set[str]:
    """Return every public name after `erasable.`; what is offered twice is described once."""
    front = set(erasable.__all__) - {"__version__"}
    offered = {name: getattr(erasable, name) for name in front}
    return front | {
        f"{unit}.{name}"
        for unit in (*PUBLIC, *GIVEN_TO_AUTHORS)
        for name, value in names_of(unit).items()
        if offered.get(name) is not value
    }


def described_in(page: str) -> set[str]:
    """Return the names after `erasable.` that a page describes from their docstrings."""
    return set(re.findall(r"^\.\. auto(?:class|data|exception|function):: erasable\.([\w.]+)", page, re.MULTILINE))


def test_the_reference_describes_the_public_names_and_no_others():
    assert described_in(REFERENCE.read_text(encoding="utf-8")) == public_names()


def test_a_name_that_the_reference_lacks_is_found():
    page = REFERENCE.read_text(encoding="utf-8").replace(".. autoclass:: erasable.models.Stage\n", "")
    assert public_names() - described_in(page) == {"models.Stage"}
