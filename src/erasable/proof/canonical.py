"""Canonical JSON by RFC 8785, for what others must be able to check without this library."""

from typing import Any

import rfc8785

_LARGEST = 2**53 - 1


def canonical(value: Any) -> bytes:  # noqa: ANN401 - anything that JSON can say
    """Return the one way to write a value; integers too large for JSON's numbers become text.

    >>> canonical({"b": 1.0, "a": [2**63, "é"]}).decode()
    '{"a":["9223372036854775808","é"],"b":1}'
    """
    return rfc8785.dumps(_within_bounds(value))


def _within_bounds(value: Any) -> Any:  # noqa: ANN401 - anything that JSON can say
    if isinstance(value, dict):
        return {name: _within_bounds(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_within_bounds(part) for part in value]
    return str(value) if isinstance(value, int) and abs(value) > _LARGEST else value
