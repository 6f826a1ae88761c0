"""Words of our own that were given up for the field's: none of them comes back in a name, a message or a page."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "erasable"
GIVEN_UP = {
    "papers": "documents",
    "home": "storage",
    "shop": "service",
    "crew": "threads",
    "filed": "request",
    "wish": "request",
    "errand": "request",
    "knowledge": "dataset",
    "withheld": "suppressed",
    "withhold": "suppress",
    "ledger": "queue",
    "rid": "request_id",
}
"""What was given up, and what is said instead (GLOSSARY.md)."""
# What released versions wrote keeps its name, as in the answer of /readyz; the demo makes up a shop.
KEPT = {"ledger", "_SHOP"}


def names_in(tree: ast.AST) -> Iterator[str]:
    """Yield every name that a file gives to something or uses."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield from (name, *([other] if other else []))
            case _:
                pass


def given_up_in(name: str) -> set[str]:
    """Return the parts of a name that were given up.

    >>> given_up_in("_learned_home"), given_up_in("FiledPeople"), given_up_in("homepage")
    ({'home'}, {'filed'}, set())
    """
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)} & {*GIVEN_UP}


def test_no_name_has_a_word_that_was_given_up():
    found = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in (path.stem, *names_in(ast.parse(path.read_text(encoding="utf-8"))))
        if name not in KEPT and given_up_in(name)
    }
    assert sorted(found) == []


@pytest.mark.parametrize(
    "source", ["home = 1", "def file_papers(): ...", "class Shop: ...", "f(knowledge=2)", "x.withheld"]
)
def test_a_word_that_comes_back_is_found(source):
    assert any(map(given_up_in, names_in(ast.parse(source))))


def test_names_of_the_field_are_not_found():
    assert not any(map(given_up_in, ("homepage", "documents", "workshop", "paper", "storage")))
