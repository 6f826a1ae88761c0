"""The shape of the package: layers, and what must not stand in it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "erasable"
LAYERS = [
    *("errors", "interrupts", "threads", "without_pandas", "seeding", "fingerprint", "documents", "extensions"),
    *("data", "grouping", "models", "training", "unlearning", "testing"),
    *("evaluation", "store", "requests", "proof", "operations", "experiments", "service", "cli", "__main__"),
]
SOURCES = sorted(PACKAGE.rglob("*.py"))
FORBIDDEN_IMPORTS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "random"}
LOADED_LATE = {"gensim", "matplotlib"}  # slow to import, and an optional extra
# The command takes Ctrl-C before it loads anything else; there is no other exception.
LOADED_BY_THE_ENTRY_POINT = {
    "__init__.py": {"importlib"},
    "__main__.py": {"erasable.interrupts", "erasable.cli.main", "erasable.without_pandas"},
}
LOADED_WITH_AN_EXTRA = {"requests/opening.py": {"erasable.requests.postgres"}}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def unit_of(module: str) -> str:
    return module.removeprefix("erasable.").split(".")[0] if module.startswith("erasable.") else ""


def own_imports(tree: ast.AST) -> Iterator[str]:
    """Yield the modules of the package that are imported anywhere in a file, each by its full name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("erasable"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("erasable"):
            for alias in node.names:
                candidate = PACKAGE.parent / f"{node.module}.{alias.name}".replace(".", "/")
                is_module = candidate.with_suffix(".py").exists() or candidate.is_dir()
                yield f"{node.module}.{alias.name}" if is_module else str(node.module)


def unit_graph() -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for path in SOURCES:
        unit = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if unit != "__init__":
            found = {unit_of(module) for module in own_imports(tree_of(path))}
            graph.setdefault(unit, set()).update(found - {unit, ""})
    return graph


def imports_inside_functions(tree: ast.AST) -> Iterator[str]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    yield node.module or ""


def called_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def test_every_unit_is_a_known_layer():
    assert set(unit_graph()) <= set(LAYERS)


@pytest.mark.parametrize("unit", sorted(unit_graph()))
def test_imports_go_down_only(unit):
    allowed = set(LAYERS[: LAYERS.index(unit)])
    assert unit_graph()[unit] <= allowed


def test_modules_do_not_import_each_other_in_a_circle():
    graph: dict[str, set[str]] = {}
    for path in SOURCES:
        name = ".".join(("erasable", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        graph[name] = set(own_imports(tree_of(path))) - {name}
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, f"circle: {' -> '.join((*above, name))}"
        if name not in done:
            for target in sorted(graph.get(name, ())):
                visit(target, (*above, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
class TestEveryFile:
    def test_says_what_it_holds(self, path):
        assert ast.get_docstring(tree_of(path))

    def test_imports_nothing_late(self, path):
        name = path.relative_to(PACKAGE).as_posix()
        allowed = LOADED_BY_THE_ENTRY_POINT.get(name, set()) | LOADED_WITH_AN_EXTRA.get(name, set())
        late = set(imports_inside_functions(tree_of(path))) - allowed
        assert {module.split(".")[0] for module in late} <= LOADED_LATE

    def test_has_no_pickle_and_no_global_randomness(self, path):
        tree = tree_of(path)
        imported = {alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
        imported |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        assert not imported & FORBIDDEN_IMPORTS
        text = path.read_text(encoding="utf-8")
        assert "allow_pickle=True" not in text
        globally_random = [name for name in called_names(tree) if name.startswith(("np.random.", "numpy.random."))]
        assert all(name.split(".")[-1] in ("Generator", "Philox", "SeedSequence") for name in globally_random)

    def test_speaks_to_a_database_only_in_the_queue(self, path):
        # The scan reads whatever SQLite files it finds.
        if path.is_relative_to(PACKAGE / "requests") or path.is_relative_to(PACKAGE / "proof" / "residue"):
            return
        nodes = [*ast.walk(tree_of(path))]
        imported = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        imported |= {(node.module or "").split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not imported & {"sqlite3", "psycopg"}

    def test_never_uses_pythons_own_hash(self, path):
        assert "hash" not in set(called_names(tree_of(path)))

    def test_prints_only_in_the_command(self, path):
        in_command = path.relative_to(PACKAGE).parts[0] == "cli"
        assert in_command or "print" not in set(called_names(tree_of(path)))

    def test_compiles_only_through_the_one_decorator(self, path):
        in_decorator = path == PACKAGE / "seeding" / "compiled.py"
        assert in_decorator or "njit" not in path.read_text(encoding="utf-8")

    def test_names_no_machine(self, path):
        text = path.read_text(encoding="utf-8")
        assert "/home/" not in text
        assert "/root/" not in text
