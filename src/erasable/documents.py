"""What all documents share: unambiguous JSON, format numbers, and seals over bytes."""

import json
from typing import Any, NoReturn

from pydantic import BaseModel

_SHOWN = 40


def read_json(content: bytes) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Read JSON; raise ValueError for anything that two readers may understand differently.

    That is a duplicate name, NaN or infinity, a lone surrogate, a byte order mark, or nesting too deep to read.
    """
    try:
        found = json.loads(content.decode(), object_pairs_hook=_named_once, parse_constant=_refuse_constant)
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def format_in(fields: Any, unnamed: int | None = None) -> int | None:  # noqa: ANN401 - whatever JSON holds
    """Return the format number of a document, None if it is not a valid one.

    >>> format_in({"format": 3}), format_in({}, unnamed=1), format_in({"format": True})
    (3, 1, None)
    """
    found = fields.get("format", unnamed) if isinstance(fields, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def newer(found: int, newest: int) -> str:
    """Return the end of a sentence that says that a document has a later format.

    >>> newer(9, 3)[:68]
    'has the format 9 and this version of erasable reads up to 3: a later'
    """
    return (
        f"has the format {shortened(found)} and this version of erasable reads up to {newest}: "
        "a later version wrote it, so install that one or a later one"
    )


def shortened(value: object) -> str:
    """Return the repr of a value, shortened.

    >>> shortened(5), shortened("x" * 60)
    ('5', "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…")
    """
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def says_more(document: BaseModel) -> bool:
    """Whether a document, or part of it, has fields that this version does not know, from a later version."""
    parts = (part for value in vars(document).values() for part in (value if isinstance(value, tuple) else (value,)))
    return bool(document.model_extra) or any(says_more(part) for part in parts if isinstance(part, BaseModel))


def sealed_bytes(content: bytes, name: str, seal: str) -> bytes | None:
    """Return the bytes that a seal in a document covers: all of them, with nothing between the quotes of its field.

    None if the field does not occur exactly once. Quotes inside a text are escaped, so no text can look like a field.

    >>> sealed_bytes(b'{"a":1,"seal":"ff"}', "seal", "ff")
    b'{"a":1,"seal":""}'
    """
    field = _field(name, seal)
    return content.replace(field, _field(name, "")) if content.count(field) == 1 else None


def with_seal(content: bytes, name: str, seal: str) -> bytes:
    """Return a document with its seal between the quotes of the field that is empty for it."""
    if content.count(_field(name, "")) != 1:
        raise ValueError(f"a document needs one empty field {name}")
    return content.replace(_field(name, ""), _field(name, seal))


def _field(name: str, value: str) -> bytes:
    return f'"{name}":"{value}"'.encode()


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name stands twice")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
