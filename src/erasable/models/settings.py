"""Settings that check themselves, and what to say about wrong ones."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, ClassVar, Generic, TypeVar, cast

from pydantic import ValidationError

from erasable.checked_settings import CheckedSettings
from erasable.errors import WrongSetting

_POSSIBLE = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_parsing", "float_type", "finite_number"), "a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    "string_type": "text",
    "literal_error": "{expected}",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
}
"""What can be given instead, by the type of pydantic's error."""
_AMERICAN = {"regularization": "regularisation", "random_state": "seed"}
_ELSEWHERE = {
    **dict.fromkeys(("iterations", "n_iter", "n_epochs", "num_epochs"), "epochs"),
    **dict.fromkeys(("n_factors", "num_factors", "embedding_dim"), "factors"),
    "lr": "learning_rate",
    "batch_size": "batch",
    "shrink": "shrinkage",
    "K": "neighbours",
}
"""What other libraries call our settings."""


class Settings(CheckedSettings):
    """Settings that check themselves: derive from it; each field has a default and a sentence under it.

    Examples
    --------
    >>> from pydantic import Field
    >>> class MySettings(Settings):
    ...     factors: int = Field(32, ge=1)
    ...     "How many numbers stand for an item."
    >>> MySettings(factors=8)
    MySettings(factors=8)
    """

    only_for_rows: ClassVar[frozenset[str]] = frozenset()
    """Settings that only solving rows uses, so that they reach no stage."""
    earlier: ClassVar[Mapping[str, Any]] = {}
    """What to assume of a setting in workspaces that are older than it, where its default would be wrong."""
    searched: ClassVar[Mapping[str, tuple[float, float] | list[Any]]] = {}
    """What `tune` searches: a range (low, high), on a logarithmic scale, or a list of choices, for each setting."""


_S = TypeVar("_S", bound=Settings)


class Configured(Generic[_S]):
    """Something with a name and its own settings, given as keywords."""

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
    """Return settings under our names; American keywords of the field are accepted, but not both names of one."""
    for name, ours in _AMERICAN.items():
        if name in settings and ours in settings:
            raise given_twice(ours, f"as `{ours}` and as `{name}`")
    return {_AMERICAN.get(name, name): value for name, value in settings.items()}


def given_twice(name: str, how: str) -> WrongSetting:
    """Return the error for a setting that is given twice."""
    return WrongSetting(f"`{name}` is given twice, {how}: leave one out")


def checked(kind: type[_S], given: Mapping[str, Any], owner: str) -> _S:
    """Build settings; refuse an unknown name or a wrong value."""
    for name in given:
        if name not in kind.model_fields:
            raise no_such_setting(name, owner, kind.model_fields)
    try:
        return kind(**given)
    except ValidationError as error:
        raise wrong_setting(error) from None


def nearest(name: str, there: Iterable[str]) -> str:
    """Return the name that was probably meant: what other libraries call so, or one spelled alike; "" if there is none.

    >>> nearest("iterations", ["epochs", "min_interactions"]), nearest("epoch", ["epochs"]), nearest("x", ["epochs"])
    ('epochs', 'epochs', '')
    """
    names = list(there)
    ours = _ELSEWHERE.get(name, "")
    return ours if ours in names else "".join(get_close_matches(name, names, n=1))


def no_such_setting(name: str, owner: str, there: Mapping[str, Any]) -> WrongSetting:
    """Return the error for an unknown setting, with the nearest name."""
    near = nearest(name, there)
    listed = ", ".join(f"`{one}`" for one in sorted(there))
    remedy = f"did you mean `{near}`?" if near else f"there are {listed}" if there else "it has none"
    return WrongSetting(
        f"there is no setting `{name}` in {owner}: {remedy}", f"{owner} has no option `{name}`: {remedy}"
    )


def wrong_setting(error: ValidationError, suffix: str = "") -> WrongSetting:
    """Return the error for a wrong value: which setting, and what can be given."""
    first, *others = error.errors()
    named = f" `{first['loc'][0]}{suffix}`" if first["loc"] else ""
    if first["type"] not in _POSSIBLE:
        return WrongSetting(f"wrong setting{named}: {first['msg'].removeprefix('Value error, ')}")
    same = [one for one in others if first["loc"][:1] and one["loc"][:1] == first["loc"][:1]]  # of several kinds
    possible = (_possible(one["type"], one["msg"], one.get("ctx", {})) for one in (first, *same))
    return WrongSetting(f"wrong setting{named}: give {' or '.join(possible)}")


def _possible(kind: str, message: str, facts: Mapping[str, Any]) -> str:
    """Describe what can be given instead of a wrong value."""
    words = _POSSIBLE.get(kind, message.removeprefix("Input should be "))
    return words.format(**{name: _number(value) for name, value in facts.items()})


def _number(value: object) -> str:
    return f"{value:,g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
