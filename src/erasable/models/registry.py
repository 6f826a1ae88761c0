"""The models by name: those built in, and those that other packages register as entry points `erasable.models`."""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Protocol
from weakref import WeakKeyDictionary

from pydantic import ConfigDict

from erasable import fingerprint
from erasable.errors import UnknownModel, WrongSetting
from erasable.extensions import install_command, loaded, no_such_name, registered
from erasable.models._batches import HELPERS_REVISION
from erasable.models._declared import check_declared
from erasable.models.base import Model
from erasable.models.machine import load_both_blas
from erasable.models.settings import Settings


class AnySettings(Settings):
    """Settings of any name, as they were written."""

    model_config = ConfigDict(extra="allow")


class AbsentModel(Model):
    """Stands for a model whose code is not installed; it refuses to compute anything."""

    settings_class: ClassVar[type[Settings]] = AnySettings
    uses: ClassVar[tuple[str, ...]] = ()
    reason: ClassVar[str]
    """Why it is missing, and what to do."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - of many types
        self.settings = AnySettings(**settings)

    def refuse(self, *_: Any, **__: Any) -> NoReturn:  # noqa: ANN401 - whatever a method is given
        """Refuse: the model is not installed."""
        raise UnknownModel(self.reason)

    start = train = represent = score = refuse


def absent_model(name: str, revision: int, trains_rows: bool, reason: str) -> type[Model]:
    """Return a stand-in class with the name and the revision that a workspace records."""
    facts = {"name": name, "revision": revision, "trains_rows": trains_rows, "reason": reason}
    return type("AbsentModel", (AbsentModel,), {**facts, "__doc__": AbsentModel.__doc__, "__module__": __name__})


GROUP = "erasable.models"


class BuiltIn(Mapping[str, type[Model]]):
    """The built-in models by name; a model's file is imported when the model is first asked for."""

    def __init__(self, places: Mapping[str, tuple[str, str]]) -> None:
        self._places = places
        """For each name of a model, its file in this package and its class there."""
        self.by_class = {kind: name for name, (_, kind) in places.items()}
        """The name of a model by that of its class."""

    def __getitem__(self, name: str) -> type[Model]:
        file, kind = self._places[name]
        found: type[Model] = getattr(import_module(f"erasable.models.{file}"), kind)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places


BUILT_IN = BuiltIn(
    {
        "als": ("_als", "ALS"),
        "ease": ("_ease", "EASE"),
        "nmf": ("_nmf", "NMF"),
        "dmf": ("_dmf", "DMF"),
        "item-knn": ("_item_knn", "ItemKNN"),
        "popular": ("_popular", "Popular"),
        "sasrec": ("_sasrec", "SASRec"),
        "two-tower": ("_two_tower", "TwoTower"),
    }
)
_DIGESTS: WeakKeyDictionary[type, str] = WeakKeyDictionary()


class HasModel(Protocol):
    """A configuration that holds a model."""

    @property
    def learner(self) -> Model:
        """The model with its settings."""


def make_model(config: HasModel) -> Model:
    """Return the model of a configuration; refuse one that is not installed."""
    if isinstance(config.learner, AbsentModel):
        config.learner.refuse()
    refuse_without_torch(config.learner)
    return config.learner


def refuse_without_torch(model: Model) -> None:
    """Refuse a torch model where torch is not installed."""
    if "torch" in model.uses and find_spec("torch") is None:
        raise UnknownModel(f"the model {model.name} needs PyTorch: {install_command('torch')}")


def model_names() -> tuple[str, ...]:
    """Return the names of all models, the built-in ones first; nothing is imported.

    Returns
    -------
    tuple of str
        The names of the built-in models and of those that installed packages register.

    Examples
    --------
    >>> model_names()[:6]
    ('als', 'ease', 'nmf', 'dmf', 'item-knn', 'popular')
    """
    return (*BUILT_IN, *sorted(set(registered(GROUP)) - set(BUILT_IN)))


def find_model(name: str) -> type[Model]:
    """Return the model of a name; if it is not built in, import the package that registers it.

    Parameters
    ----------
    name : str
        Its name in commands and workspaces.

    Returns
    -------
    type of Model
        The class.

    Raises
    ------
    erasable.errors.WrongSetting
        If no installed package registers the name, or what it registers is not a complete model.

    Examples
    --------
    >>> find_model("als")(factors=8)
    ALS(factors=8)
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    points = registered(GROUP)
    if name not in points:
        said = no_such_name("model", name, model_names(), GROUP)
        raise WrongSetting(f"{said}, or hand its object over in Python", said)
    return checked_model(loaded(points[name], "model"), name)


def every_model() -> tuple[dict[str, type[Model]], list[str]]:
    """Import every registered package; return all models by name, and why others can't be used.

    Only help about all models needs this; everything else imports one model by its name.
    """
    found, faults = dict[str, type[Model]](), list[str]()
    for name in model_names():
        try:
            found[name] = find_model(name)
        except WrongSetting as error:
            faults.append(str(error))
    return found, faults


def models_with(ability: type) -> list[str]:
    """Return the names of the built-in models that have an ability (a protocol)."""
    return sorted(name for name, model in BUILT_IN.items() if issubclass(model, ability))


def checked_model(found: object, name: str | None = None) -> type[Model]:
    """Return a class if it is a complete model with its own name; otherwise refuse it and say what it lacks."""
    if not isinstance(found, type) or not issubclass(found, Model):
        raise WrongSetting(
            f"{found!r} is not a model: give a class that derives from erasable.models.Model "
            "(docs/how-to/add-a-model.md)"
        )
    model: type[Model] = found
    check_declared(model)
    if BUILT_IN.get(model.name, model) is not model:  # a workspace would be opened with the built-in one
        raise WrongSetting(f"{found!r} has the name {model.name!r} of a model that is built in: give it another")
    _check_uses(model.name, model.uses)
    if not _is_ours(model):
        load_both_blas()
    if name is not None and model.name != name:
        raise WrongSetting(f"the model {model.name!r} is registered as {name!r}: give both one name")
    _digest_of(model)
    return model


def made_with(kind: type[Model], settings: Mapping[str, Any]) -> Model:
    """Make a model from its settings; refuse a class that does not take them as keywords."""
    try:
        model = kind(**settings)
    except TypeError as error:
        raise _not_made(kind, str(error)) from error
    if not isinstance(getattr(model, "settings", None), kind.settings_class):
        raise _not_made(kind, "it then has no settings")
    return model


def _not_made(kind: type[Model], why: str) -> WrongSetting:
    return WrongSetting(
        f"the model {kind.name!r} can't be made from its settings ({why}): leave out its __init__, or take **settings "
        "there and hand them to super().__init__"
    )


def is_ours(model: Model) -> bool:
    """Whether a model is part of erasable; then its revision says when its bytes change."""
    return _is_ours(type(model))


def source_digest(model: Model) -> str:
    """Return a digest of every `.py` file that comes with a model that is not ours.

    The files of its base classes count too, unless they are ours. It is empty for our models, and for a model without
    a source file, such as one written in a notebook. It is computed once for each class, when the class is first
    checked: the imported code is what trains, even if its files change later.
    """
    return _digest_of(type(model))


def revisions_beneath(model: Model) -> dict[str, str]:
    """Return the revisions of our code that another package's model builds on: helpers, and built-in base classes."""
    if is_ours(model):
        return {}
    classes = {base.__name__ for base in type(model).__mro__ if _is_ours(base)}
    bases = [BUILT_IN[name] for kind, name in BUILT_IN.by_class.items() if kind in classes]
    return {"helpers": str(HELPERS_REVISION), **{f"{base.name} beneath": str(base.revision) for base in bases}}


def _is_ours(kind: type) -> bool:
    return kind.__module__.split(".")[0] == __name__.split(".")[0]


def _digest_of(kind: type) -> str:
    if kind not in _DIGESTS:
        _DIGESTS[kind] = "" if _is_ours(kind) or not _has_source(kind) else _digest_now(kind)
    return _DIGESTS[kind]


def _digest_now(kind: type) -> str:
    """Return the digest of the current source files of a class and its base classes."""
    ours, here = __name__.split(".")[0], {*sys.stdlib_module_names}
    tops = {base: base.__module__.split(".")[0] for base in kind.__mro__}
    files = {
        f"{top}:{name}": path
        for base, top in tops.items()
        if top != ours and top not in here
        for name, path in _source_files(base).items()
    }
    digests = {name: fingerprint.of_bytes(path.read_bytes()) for name, path in files.items()}
    return fingerprint.of_value(digests) if digests else ""


def function_digest(function: Callable[..., Any]) -> str:
    """Return a digest of the source files that come with another package's function or callable; empty without any."""
    source = function if inspect.isroutine(function) or isinstance(function, type) else type(function)
    digests = {name: fingerprint.of_bytes(path.read_bytes()) for name, path in _source_files(source).items()}
    return fingerprint.of_value(digests) if digests else ""


def _source_files(kind: Any) -> dict[str, Path]:  # noqa: ANN401 - a class or a function
    """Return the source files of a class by name: those of its distribution, else of its top package or file."""
    if not _has_source(kind):
        return {}
    distribution = next((point.dist for point in registered(GROUP).values() if _is_of(point, kind)), None)
    installed = _files_of(distribution) if distribution else {}
    own = Path(inspect.getsourcefile(kind) or "").resolve()
    return installed if own in {path.resolve() for path in installed.values()} else _files_beside(kind)


def _has_source(kind: Any) -> bool:  # noqa: ANN401 - a class or a function
    try:
        return bool(inspect.getsource(kind)) and Path(inspect.getsourcefile(kind) or "").is_file()
    except (OSError, TypeError):
        return False


def _is_of(point: EntryPoint, kind: Any) -> bool:  # noqa: ANN401 - a class or a function
    return point.module.split(".")[0] == kind.__module__.split(".")[0]


def _files_of(distribution: Distribution) -> dict[str, Path]:
    """Return the source files that a distribution lists; an editable install does not list its own."""
    listed = [file for file in distribution.files or () if file.suffix == ".py"]
    return {file.as_posix(): Path(str(file.locate())) for file in sorted(listed)}


def _files_beside(kind: Any) -> dict[str, Path]:  # noqa: ANN401 - a class or a function
    """Return the files of the package of a class; without one, its own file and what that imports beside it."""
    file = Path(inspect.getsourcefile(kind) or "")
    package = getattr(sys.modules[kind.__module__.split(".")[0]], "__path__", None) or ()
    root = next((Path(part) for part in package if file.is_relative_to(part)), None)
    return _files_in(root) if root else _with_imported(file)


def _files_in(root: Path) -> dict[str, Path]:
    return {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*.py"))}


def _with_imported(file: Path) -> dict[str, Path]:
    """Return a file and all modules and packages in its folder that it imports, directly or not."""
    found, waiting = dict[str, Path](), [file]
    while waiting:
        path = waiting.pop()
        if path.name not in found:
            found[path.name] = path
            for top in _imported_by(path):
                folder, single = file.with_name(top), file.with_name(f"{top}.py")
                waiting += [single] if single.is_file() else []
                found |= {f"{top}/{name}": one for name, one in _files_in(folder).items()}
    return dict(sorted(found.items()))


def _imported_by(path: Path) -> set[str]:
    """Return the top names of all modules that a file imports absolutely."""
    try:
        nodes = list(ast.walk(ast.parse(path.read_bytes())))
    except SyntaxError:
        return set()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.split(".")[0] for name in names if name}


def _check_uses(name: str, uses: tuple[str, ...]) -> None:
    """Refuse a model that uses a package whose version can't be recorded with its checkpoints."""
    for use in uses:
        try:
            known = use == "blas" or bool(version(use))
        except PackageNotFoundError:
            known = False
        if not known:
            raise WrongSetting(
                f"the model {name!r} uses {use!r}, which is not installed under that name: give a tuple of blas, "
                "numba and other packages as pip names them"
            )
