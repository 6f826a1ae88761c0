"""Whether a class declares what a model must have."""

from collections.abc import Callable, Collection
from inspect import signature
from typing import Any

from erasable.errors import WrongSetting
from erasable.models.settings import Settings

_HOW_TO = "(docs/how-to/add-a-model.md)"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_texts(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(one, str) for one in value)


_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (lambda value: isinstance(value, str) and bool(value), "a text such as 'bpr'"),
    "settings_class": (
        lambda value: isinstance(value, type) and issubclass(value, Settings),
        "a class that derives from erasable.models.Settings",
    ),
    "revision": (_is_whole, "a whole number such as 1"),
    "uses": (_are_texts, "a tuple of blas, numba and other packages as pip names them"),
    "strategies": (lambda value: _are_texts(value) and bool(value), "a tuple of strategies, the default first"),
}


def check_declared(kind: type) -> None:
    """Refuse a class that lacks an attribute or a method of a model, or has one of the wrong type."""
    for part, (fits, expected) in _EXPECTED.items():
        if not hasattr(kind, part):
            raise _no_model(kind, f"it has no {part}: give the class {expected}")
        value = getattr(kind, part)
        if not fits(value):
            raise _no_model(kind, f"its {part} is {value!r}: give the class {expected}")
    missing = sorted(getattr(kind, "__abstractmethods__", ()))
    if missing:
        raise _no_model(kind, f"it has no method {missing[0]}: write {_and(missing)}")
    _check_settings(kind, kind.settings_class)  # type: ignore[attr-defined]
    _check_arguments(kind, kind.settings_class)  # type: ignore[attr-defined]


def _check_settings(kind: type, settings: type[Settings]) -> None:
    fields = settings.model_fields
    for name, field in fields.items():
        if field.is_required():
            raise _no_model(kind, f"its setting {name!r} has no default: give it one in {settings.__name__}")
    searched = getattr(settings, "searched", {})
    wrong = sorted(set(searched) - set(fields))
    if wrong:
        raise _no_model(kind, f"searched of {settings.__name__} names {wrong[0]!r}: give names of its settings")
    for_rows = getattr(settings, "only_for_rows", None)
    unknown = sorted(set(for_rows) - set(fields)) if isinstance(for_rows, frozenset | set) else [f"{for_rows!r}"]
    if unknown:
        raise _no_model(
            kind, f"only_for_rows of {settings.__name__} names {unknown[0]}: give a frozenset of names of settings"
        )


def _check_arguments(kind: type, settings: type[Settings]) -> None:
    """Refuse a model whose `__init__` takes more than its settings: it could not be made again from a workspace."""
    named = (one.name for one in signature(kind).parameters.values() if one.kind is not one.VAR_KEYWORD)
    further = [name for name in named if name not in settings.model_fields]
    if further:
        raise _no_model(
            kind, f"its __init__ takes {further[0]!r}, which is not a setting: put it into {settings.__name__}"
        )


def _no_model(kind: type, what: str) -> WrongSetting:
    return WrongSetting(f"{kind.__module__}.{kind.__qualname__} is not a model: {what} {_HOW_TO}")


def _and(names: Collection[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
