"""The base of all settings classes, and the sentence under each setting, which is read when somebody asks for it."""

import ast
import inspect
from itertools import pairwise
from textwrap import dedent

from pydantic import BaseModel, ConfigDict


class CheckedSettings(BaseModel):
    """Settings that check themselves and can't be changed; each field has a default and a sentence under it."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


def sentences_of(settings: type[BaseModel]) -> dict[str, str]:
    """Return the sentence under each setting, from the source of the class; "" where there is none.

    Pydantic would do it when the class is made, which takes a tenth of the time of a short command.
    """
    found = {name: field.description or "" for name, field in settings.model_fields.items()}
    for kind in reversed(settings.__mro__):
        if issubclass(kind, CheckedSettings) and kind is not CheckedSettings:
            found |= {name: text for name, text in _under_fields(kind).items() if name in found}
    return found


def _under_fields(kind: type[BaseModel]) -> dict[str, str]:
    try:
        (definition,) = ast.parse(dedent(inspect.getsource(kind))).body
    except (OSError, TypeError, SyntaxError):  # made by code that is in no file
        return {}
    texts = {}
    for field, after in pairwise(definition.body if isinstance(definition, ast.ClassDef) else ()):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match after:
                case ast.Expr(ast.Constant(str() as text)):
                    texts[field.target.id] = inspect.cleandoc(text)
    return texts
