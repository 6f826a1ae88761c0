"""The models by name: those built in, and those that other packages register as entry points `erasable.models`.

Nothing is imported because a file names it: a name that nobody has registered is refused. A model may also be handed
over as an object, which needs no name here. What the code of a model that is not ours is, says `source_digest`.
"""

import inspect
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from typing import Protocol, cast

from erasable import fingerprint
from erasable.errors import WrongSetting
from erasable.models.als import ALS
from erasable.models.dmf import DMF
from erasable.models.ease import EASE
from erasable.models.model import Model
from erasable.models.nmf import NMF
from erasable.models.settings import Settings

GROUP = "erasable.models"
BUILT_IN: Mapping[str, type[Model]] = {"als": ALS, "ease": EASE, "nmf": NMF, "dmf": DMF}
_PARTS = ("name", "settings_class", "revision", "uses", "strategies")


class HasModel(Protocol):
    """A configuration: it holds the model that it is about."""

    @property
    def learner(self) -> Model:
        """The model with its settings."""


def make_model(config: HasModel) -> Model:
    """Return the model of a configuration."""
    return config.learner


def model_names() -> tuple[str, ...]:
    """Return the names of all models that are there, those built in first."""
    return (*BUILT_IN, *sorted(set(_registered()) - set(BUILT_IN)))


def find_model(name: str) -> type[Model]:
    """Return the model of a name; the package that registers it is imported if it is not built in."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    registered = _registered()
    if name not in registered:
        raise WrongSetting(
            f"there is no model {name!r}: choose one of {', '.join(model_names())}, install the package that registers "
            f"it (entry points {GROUP!r}), or hand its object over in Python"
        )
    return checked_model(_loaded(registered[name]), name)


def models() -> dict[str, type[Model]]:
    """Return all models that can be used by their names; a package that can't be loaded does no harm to the others."""
    found: dict[str, type[Model]] = {}
    for name in model_names():
        with suppress(WrongSetting):
            found[name] = find_model(name)
    return found


def models_with(ability: type) -> list[str]:
    """Return the names of the models that have an ability, which is a protocol of methods."""
    return sorted(name for name, model in models().items() if issubclass(model, ability))


def checked_model(found: object, name: str | None = None) -> type[Model]:
    """Return a class if it is that of a model, whole and with a name of its own; else say what it lacks."""
    lacking = [part for part in _PARTS if not hasattr(found, part)]
    if lacking or not isinstance(found, type) or not issubclass(found.settings_class, Settings):  # type: ignore[attr-defined]
        what = f"no {lacking[0]}" if lacking else "no class with settings of its own"
        raise WrongSetting(f"{found!r} is no model: it has {what} (docs/how-to/add-a-model.md)")
    model = cast("type[Model]", found)
    if name is not None and model.name != name:
        raise WrongSetting(f"the model {model.name!r} is registered as {name!r}: give both one name")
    return model


def is_ours(model: Model) -> bool:
    """Whether the code of a model is part of erasable; then its revision says when its bytes change."""
    return type(model).__module__.split(".")[0] == __name__.split(".")[0]


def source_digest(model: Model) -> str:
    """Return a digest of the source of a model that is not ours: of every `.py` file that comes with it.

    It is empty for a model of ours, and for one that has no source file, such as one written in a notebook.
    """
    files = {} if is_ours(model) else _source_files(type(model))
    digests = {name: fingerprint.of_bytes(path.read_bytes()) for name, path in files.items()}
    return fingerprint.of_value(digests) if digests else ""


def _registered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _loaded(point: EntryPoint) -> object:
    try:
        return point.load()
    except Exception as error:  # whatever another package does when it is imported
        raise WrongSetting(
            f"the model {point.name!r} can't be loaded ({type(error).__name__}: {error}): mend or remove the package "
            f"that registers it as {point.value}"
        ) from error


def _source_files(kind: type[Model]) -> dict[str, Path]:
    """Return the files that come with a class by their names: of its distribution, else of its top package or file."""
    if not _has_source(kind):
        return {}
    distribution = next((point.dist for point in _registered().values() if _is_of(point, kind)), None)
    installed = _files_of(distribution) if distribution else {}
    own = Path(inspect.getsourcefile(kind) or "").resolve()
    return installed if own in {path.resolve() for path in installed.values()} else _files_beside(kind)


def _has_source(kind: type[Model]) -> bool:
    try:
        return bool(inspect.getsource(kind)) and Path(inspect.getsourcefile(kind) or "").is_file()
    except (OSError, TypeError):
        return False


def _is_of(point: EntryPoint, kind: type[Model]) -> bool:
    return point.module.split(".")[0] == kind.__module__.split(".")[0]


def _files_of(distribution: Distribution) -> dict[str, Path]:
    """Return the source files that a distribution lists; one that is installed to be edited does not list its own."""
    listed = [file for file in distribution.files or () if file.suffix == ".py"]
    return {file.as_posix(): Path(str(file.locate())) for file in sorted(listed)}


def _files_beside(kind: type[Model]) -> dict[str, Path]:
    module = sys.modules[kind.__module__]
    file = Path(inspect.getsourcefile(kind) or "")
    package = getattr(sys.modules[module.__name__.split(".")[0]], "__path__", None)
    if not package:
        return {file.name: file}
    root = Path(next(iter(package)))
    return {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*.py"))}
