"""Ids as the library takes and gives them: text or whole numbers, one or many; inside they are text."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any, NamedTuple, SupportsIndex

import pyarrow as pa

from erasable.errors import WrongUse
from erasable.operations.home import Session

Id = str | SupportsIndex
"""An id of a user or an item, as it stands in the table: text, or a whole number of any kind."""


class NumberedIds(NamedTuple):
    """Whose ids came as whole numbers: users', items'; those of the others are text."""

    users: bool = False
    items: bool = False

    @staticmethod
    def of(session: Session) -> "NumberedIds":
        """Return what a recommender remembers of it."""
        preferences = session.papers().preferences
        return NumberedIds(preferences.users_are_numbers, preferences.items_are_numbers)


ALL_TEXT = NumberedIds()


def text_of(given: Any) -> str:  # noqa: ANN401 - whatever a caller takes for an id
    """Return an id as text: text as it is, a whole number of any kind in decimal, anything else refused.

    >>> text_of("007"), text_of(7)
    ('007', '7')
    """
    value = given.as_py() if hasattr(given, "as_py") else given
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    raise WrongUse(
        f"{value!r} is no id: give text or a whole number, as in the table (a {type(value).__name__} was given)"
    )


def texts_of(given: Any) -> list[str]:  # noqa: ANN401 - whatever a caller takes for ids
    """Return one id, or each of many, as text.

    >>> texts_of(42), texts_of([42, "7"])
    (['42'], ['42', '7'])
    """
    if hasattr(given, "columns") or hasattr(given, "column_names"):
        raise WrongUse("a table holds more than ids: give the column of it that has them, such as table['user']")
    if getattr(given, "ndim", 1) == 0:  # NumPy's own numbers and texts, and arrays of one
        return [text_of(given.item())]
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return [text_of(given)]
    return [text_of(one) for one in given]


def shown_ids(texts: Sequence[str], as_numbers: bool) -> pa.Array:
    """Return ids as they came in; where one of them is no whole number, all as text.

    >>> shown_ids(["42", "7"], as_numbers=True).to_pylist(), shown_ids(["42", "x"], as_numbers=True).to_pylist()
    ([42, 7], ['42', 'x'])
    """
    column = pa.array(texts, pa.string())
    for kind in (pa.int64(), pa.uint64()) if as_numbers else ():
        with suppress(pa.ArrowInvalid):
            numbers = column.cast(kind)
            if numbers.cast(pa.string()).equals(column):  # 007 is not 7
                return numbers
    return column
