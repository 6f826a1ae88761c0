"""What the settings of models and strategies have in common; each has its own class, beside its own code."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, ClassVar, Generic, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from erasable.errors import WrongSetting

_AMERICAN = {"regularization": "regularisation", "random_state": "seed"}


class Settings(BaseModel):
    """Settings that check themselves; a sentence stands under each."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, protected_namespaces=())

    only_for_rows: ClassVar[frozenset[str]] = frozenset()
    """Those that reach no stage, since only solving rows uses them."""
    earlier: ClassVar[Mapping[str, Any]] = {}
    """What settings that a model was given since are in workspaces that do not name them, if not their defaults."""


_S = TypeVar("_S", bound=Settings)


class Configured(Generic[_S]):
    """Something with a name and settings of its own, which are given as keywords."""

    name: ClassVar[str]
    settings_class: ClassVar[type[Settings]]

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as the settings class says
        own = in_our_words(settings)
        self.settings: _S = cast("_S", checked(self.settings_class, own, self.name))

    def __repr__(self) -> str:
        given = {name: getattr(self.settings, name) for name in self.settings_class.model_fields}
        shown = (f"{name}={value!r}" for name, value in given.items() if name in self.settings.model_fields_set)
        return f"{type(self).__name__}({', '.join(shown)})"


def in_our_words(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under our names; the field's American keywords are accepted too, but not both names of one."""
    for name, ours in _AMERICAN.items():
        if name in settings and ours in settings:
            raise given_twice(ours, f"as `{ours}` and as `{name}`")
    return {_AMERICAN.get(name, name): value for name, value in settings.items()}


def given_twice(name: str, how: str) -> WrongSetting:
    """Say that a setting is given twice: which of both is meant can't be known."""
    return WrongSetting(f"`{name}` is given twice, {how}: leave one out")


def checked(kind: type[_S], given: Mapping[str, Any], owner: str) -> _S:
    """Build settings; one that is not there or has a wrong value is refused."""
    for name in given:
        if name not in kind.model_fields:
            raise no_such_setting(name, owner, kind.model_fields)
    try:
        return kind(**given)
    except ValidationError as error:
        raise wrong_setting(error) from None


def no_such_setting(name: str, owner: str, there: Mapping[str, Any]) -> WrongSetting:
    """Say that something has no such setting, and which is the nearest."""
    near = get_close_matches(name, there, n=1)
    listed = ", ".join(f"`{one}`" for one in sorted(there))
    remedy = f"did you mean `{near[0]}`?" if near else f"there are {listed}" if there else "it has none"
    return WrongSetting(
        f"there is no setting `{name}` in {owner}: {remedy}", f"{owner} has no option `{name}`: {remedy}"
    )


def wrong_setting(error: ValidationError, suffix: str = "") -> WrongSetting:
    """Say which setting has a wrong value, and why."""
    first, *others = error.errors()
    named = f" `{first['loc'][0]}{suffix}`" if first["loc"] else ""
    same = [one["msg"] for one in others if first["loc"][:1] and one["loc"][:1] == first["loc"][:1]]
    instead = "".join(f", or {text.removeprefix('Input should be ')}" for text in same)  # of several kinds of values
    return WrongSetting(f"wrong setting{named}: {first['msg'].removeprefix('Value error, ')}{instead}")
