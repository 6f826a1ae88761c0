"""The shape of the package: layers, and what must not stand in it."""

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "erasable"
LAYERS = [
    *("front_door", "errors", "wording", "checked_settings", "progress", "interrupts", "threads", "without_pandas"),
    "seeding",
    "fingerprint",
    *("documents", "extensions"),
    *("data", "grouping", "models", "chain", "testing", "evaluation", "scan", "workspace", "requests", "proof"),
    *("operations", "recommender", "plots", "paper", "service", "cli", "__main__"),
]
SOURCES = sorted(PACKAGE.rglob("*.py"))
FORBIDDEN_IMPORTS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "random"}
# The process of torch models seeds what somebody's model may draw from; it draws nothing there itself.
SEEDS_FOR_OTHERS = {"models/_torch_server.py": {"random.seed", "np.random.seed"}}
# Slow to import, and most commands need none of them. Numba takes 0.25 s and SciPy 0.2 s: to learn takes both, to
# recommend to one user neither. The bars of rich are for terminals.
LOADED_LATE = {"gensim", "matplotlib", "jinja2", "ray", "numba", "llvmlite", "scipy", "optuna", "rich"}
# The command takes Ctrl-C before it loads anything else; there is no other exception.
LOADED_BY_THE_ENTRY_POINT = {
    "__init__.py": {"importlib"},
    "__main__.py": {"gc", "erasable.interrupts", "erasable.cli.main", "erasable.without_pandas"},
}
LOADING_BY_NAME = {
    *("__init__.py", "cli/main.py", "extensions.py", "front_door.py", "grouping/registry.py", "models/__init__.py"),
    *("models/_torch_server.py", "models/registry.py", "operations/_one_model.py"),
}
LOADED_WITH_AN_EXTRA = {
    "requests/opening.py": {"erasable.requests.postgres"},
    "models/_sasrec.py": {"erasable.models._sasrec_network"},
    "models/_two_tower.py": {"erasable.models._two_tower_network"},
}
LOADED_WITH_NUMBA = {
    "models/_threads.py": {"erasable.seeding"}
}  # 0.25 s less for NMF in a process that compiles nothing


def _read(path: Path) -> tuple[ast.Module, str]:
    text = path.read_text(encoding="utf-8")
    return ast.parse(text), text


FILES = {path.relative_to(PACKAGE).as_posix(): _read(path) for path in SOURCES}
"""The tree and the text of each file, by its name."""


def tree_of(path: Path) -> ast.Module:
    return FILES[path.relative_to(PACKAGE).as_posix()][0]


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


def imported_by(tree: ast.AST) -> set[str]:
    """Return the packages that a file imports anywhere."""
    nodes = [*ast.walk(tree)]
    found = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return found | {(node.module or "").split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}


def called_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def test_every_unit_is_a_known_layer():
    assert set(unit_graph()) <= set(LAYERS)


def test_imports_go_down_only():
    upward = {unit: found - {*LAYERS[: LAYERS.index(unit)]} for unit, found in unit_graph().items()}
    assert {unit: found for unit, found in upward.items() if found} == {}


def test_the_scan_stands_by_itself():
    assert unit_graph()["scan"] == {"errors"}


def past_the_front_door(name: str, tree: ast.AST) -> list[str]:
    """Return the private modules of other units that a file imports: what others may use has no `_` before its name."""
    own = name.split("/")[0].removesuffix(".py")
    return [
        module
        for module in own_imports(tree)
        if unit_of(module) != own and any(part.startswith("_") for part in module.split(".")[2:])
    ]


def test_every_unit_is_used_through_its_front_door():
    assert files_that(lambda name, tree, text: past_the_front_door(name, tree)) == []
    hidden = {name for name in FILES if name.startswith(("scan/", "paper/")) and not name.split("/")[1].startswith("_")}
    assert hidden == set()


def test_whoever_goes_past_a_front_door_is_found():
    past = ast.parse("from erasable.scan._folder import scan_folder")
    assert past_the_front_door("operations/scan.py", past) == ["erasable.scan._folder"]
    assert past_the_front_door("scan/__init__.py", past) == []


def test_no_public_file_is_used_in_its_own_unit_only():
    used = {module for path in SOURCES for module in own_imports(tree_of(path)) if unit_of(module) != unit_in(path)}
    public = {module_of(path) for path in SOURCES if is_public(path)}
    assert sorted(public - used) == []


def test_no_class_name_stands_twice():
    found = Counter(node.name for tree, _ in FILES.values() for node in tree.body if isinstance(node, ast.ClassDef))
    assert len(found) > 400
    assert [name for name, times in found.items() if times > 1] == []


def unit_in(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_of(path: Path) -> str:
    return ".".join(("erasable", *path.relative_to(PACKAGE).with_suffix("").parts))


def is_public(path: Path) -> bool:
    inside = len(path.relative_to(PACKAGE).parts) > 1 and unit_in(path) != "cli"
    return inside and not path.name.startswith("_")


def test_only_its_own_command_imports_the_paper():
    importing = {path for path in SOURCES if any(unit_of(name) == "paper" for name in own_imports(tree_of(path)))}
    outside = {
        path.relative_to(PACKAGE).as_posix() for path in importing if "paper" not in path.relative_to(PACKAGE).parts
    }
    assert outside == {"cli/reproduce.py"}


def test_modules_are_loaded_by_name_only_where_that_is_said():
    calling = {
        path for path in SOURCES if {"import_module", "_VECTORS.load", "point.load"} & {*called_names(tree_of(path))}
    }
    assert {path.relative_to(PACKAGE).as_posix() for path in calling} == LOADING_BY_NAME


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


def files_that(breach: Callable[[str, ast.Module, str], object]) -> list[str]:
    """Return the files of which a breach is found, given the name, the tree and the text of each."""
    return [name for name, (tree, text) in FILES.items() if breach(name, tree, text)]


class TestEveryFile:
    def test_says_what_it_holds(self):
        assert files_that(lambda name, tree, text: not ast.get_docstring(tree)) == []

    def test_imports_nothing_late(self):
        def late(name: str, tree: ast.Module, text: str) -> set[str]:
            exceptions = (LOADED_BY_THE_ENTRY_POINT, LOADED_WITH_AN_EXTRA, LOADED_WITH_NUMBA)
            allowed = set().union(*(one.get(name, set()) for one in exceptions))
            return {module.split(".")[0] for module in {*imports_inside_functions(tree)} - allowed} - LOADED_LATE

        assert files_that(late) == []

    def test_has_no_pickle_and_no_global_randomness(self):
        def unsafe(name: str, tree: ast.Module, text: str) -> bool:
            seeds = SEEDS_FOR_OTHERS.get(name, set())
            random = [one for one in called_names(tree) if one.startswith(("random.", "np.random.", "numpy.random."))]
            own = [one for one in random if one not in seeds]
            passed_in = all(one.split(".")[-1] in ("Generator", "Philox", "SeedSequence") for one in own)
            forbidden = FORBIDDEN_IMPORTS - ({"random"} if seeds else set())
            return bool(imported_by(tree) & forbidden) or "allow_pickle=True" in text or not passed_in

        assert files_that(unsafe) == []

    def test_speaks_to_a_database_only_in_the_queue(self):
        def speaks(name: str, tree: ast.Module, text: str) -> bool:
            # The scan reads whatever SQLite files it finds.
            allowed = name.startswith(("requests/", "scan/"))
            return not allowed and bool(imported_by(tree) & {"sqlite3", "psycopg"})

        assert files_that(speaks) == []

    def test_never_uses_pythons_own_hash(self):
        assert files_that(lambda name, tree, text: "hash" in {*called_names(tree)}) == []

    def test_prints_only_in_the_command(self):
        assert (
            files_that(lambda name, tree, text: not name.startswith("cli/") and "print" in {*called_names(tree)}) == []
        )

    def test_compiles_only_through_the_one_decorator(self):
        # The scan's loops train nothing, so they must not be among the kernels that a state's environment names.
        assert files_that(lambda name, tree, text: "njit" in text) == ["scan/_search.py", "seeding/compiled.py"]

    def test_names_no_machine(self):
        assert files_that(lambda name, tree, text: "/home/" in text or "/root/" in text) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import a.b", {"a"}),
        ("from sqlite3 import connect", {"sqlite3"}),
        ("def late():\n    import pickle", {"pickle"}),
        ("x = 1", set()),
    ],
)
def test_what_a_file_imports_is_found(source, found):
    assert imported_by(ast.parse(source)) == found


def test_every_file_is_looked_at():
    assert len(FILES) == len(SOURCES) > 100
    assert files_that(lambda name, tree, text: text.startswith('"""')) == [*FILES]
