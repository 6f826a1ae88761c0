"""What is imported is declared: in the core where everyone needs it, else in the extra of the unit that does."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "erasable"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# What beside the core a unit or file may import: each comes with an extra of its own.
EXTRAS_OF = {
    "plots.py": {"plots"},
    "paper": {"paper", "plots"},
    "service": {"service"},
    "testing": {"testing"},
    "requests/postgres.py": {"postgres"},
    "operations/_ray.py": {"ray"},
    "models/_sasrec_network.py": {"torch"},
    "models/_two_tower_network.py": {"torch"},
    "models/_torch_server.py": {"torch"},
    "operations/_study.py": {"tune"},
}
# Part of a library is used that it does not promise to keep: where, of which, and so up to which release.
PRIVATE = {"uvicorn": {"service/_running.py"}, "numba": {"seeding/atomics.py", "seeding/compiled.py"}}
PRIVATE_PARTS = re.compile(
    r"\buvicorn\.(?:protocols|_|loops|supervisors)|\bnumba\.(?:core|np|_)|\._cache\b|\._cache_file\b|\._source_stamp\b"
)


def declared(extra: str | None = None) -> set[str]:
    """Return the distributions that are declared, by name as pip compares them."""
    listed = PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]
    return {plain(Requirement(line).name) for line in listed}


def distributions_of(module: str) -> set[str]:
    return {plain(name) for name in installed().get(module, [module])}


@cache
def installed() -> Mapping[str, list[str]]:
    return packages_distributions()


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(source: str) -> Iterator[str]:
    """Yield the first part of each module that a file imports from elsewhere, unless only a type checker does."""
    tree = ast.parse(source)
    checked = [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    skipped = {id(inner) for node in checked for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        yield from (name.split(".")[0] for name in names)


def undeclared(source: str, where: str) -> set[str]:
    """Return what a file imports that neither the core nor an extra of its unit declares."""
    extras = EXTRAS_OF.get(where, set()) | EXTRAS_OF.get(where.split("/")[0], set())
    allowed = declared().union(*(declared(extra) for extra in extras))
    others = set(imported(source)) - {*sys.stdlib_module_names, "erasable"}
    return {name for name in others if not distributions_of(name) & allowed}


def sources() -> dict[str, str]:
    return {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}


def test_everything_that_is_imported_is_declared():
    found = {where: undeclared(source, where) for where, source in sources().items()}
    assert {where: names for where, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("source", "where", "found"),
    [
        ("import numpy.linalg\nimport erasable.errors\nimport os", "data/ids.py", set()),
        ("import hypothesis", "data/ids.py", {"hypothesis"}),
        ("def late():\n    from packaging.version import Version", "cli/main.py", {"packaging"}),
        ("import matplotlib", "cli/groups.py", {"matplotlib"}),
        ("import matplotlib, gensim", "paper/_report.py", set()),
        ("from starlette.routing import Mount", "operations/live.py", {"starlette"}),
        ("from starlette.routing import Mount", "service/_http.py", set()),
        ("import nowhere_to_be_found", "service/_http.py", {"nowhere_to_be_found"}),
    ],
)
def test_what_is_not_declared_is_found(source, where, found):
    assert undeclared(source, where) == found


def test_every_declared_library_is_used():
    used = {one for source in sources().values() for name in imported(source) for one in distributions_of(name)}
    # uvicorn loads its parser and loop by itself, FastAPI its reader of forms; typer prints through rich.
    by_others = {"httptools", "uvloop", "python-multipart"}
    everything = declared().union(
        *(declared(extra) for extra in PROJECT["optional-dependencies"] if extra not in ("dev", "docs"))
    )
    assert everything - used - by_others - {"erasable"} == set()


def test_the_paper_comes_with_all_that_figures_need():
    lines = [Requirement(line) for line in PROJECT["optional-dependencies"]["paper"]]
    assert {extra for line in lines if line.name == "erasable" for extra in line.extras} == {"plots"}


@pytest.mark.parametrize("library", PRIVATE)
def test_private_parts_of_a_library_are_used_and_it_has_an_upper_bound(library):
    lines = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    bounds = [Requirement(line).specifier for line in lines if Requirement(line).name == library]
    assert bounds
    assert all(any(one.operator == "<" for one in bound) for bound in bounds)


def test_no_other_file_uses_private_parts():
    using = {where for where, source in sources().items() if PRIVATE_PARTS.search(source)}
    assert using == set.union(*PRIVATE.values())


@pytest.mark.parametrize(
    ("source", "private"),
    [
        ("from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol", True),
        ("from numba.core import cgutils", True),
        ("dispatcher._cache._cache_file", True),
        ("import uvicorn\nuvicorn.Server(config)", False),
        ("from numba import njit, types\nfrom numba.extending import intrinsic", False),
    ],
)
def test_private_parts_are_recognised(source, private):
    assert bool(PRIVATE_PARTS.search(source)) is private
