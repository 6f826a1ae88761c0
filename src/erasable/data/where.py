"""A filter of item attributes in words, as an Arrow expression: columns, comparisons, and, or, not, in.

    condition  = alternative {"or" alternative}
    alternative = part {"and" part}
    part       = "not" part | "(" condition ")" | column comparison
    comparison = ("==" | "!=" | "<" | "<=" | ">" | ">=") value | ["not"] "in" "(" value {"," value} ")"

A column is a name, in backticks if it is not made of letters, digits and _. A value is a number, true, false, or a text
in single or double quotes, in which the quote is doubled. An item for which a column says nothing fits no comparison
of it.
"""

import re
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from erasable.errors import WrongUse
from erasable.wording import listed

Expression: TypeAlias = Any  # Arrow's own
_LONGEST = 10_000
_DEEPEST = 100
_SHOWN = 60
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?!\w)|(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")"""
    r"|(?P<quoted>`[^`]+`)|(?P<name>[^\W\d]\w*)|(?P<sign>==|!=|<=|>=|<|>|=|\(|\)|,))"
)
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_WORDS = ("and", "or", "not", "in", "true", "false")
_EXAMPLE = "write it like \"category == 'books' and price < 20\""


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


def matching(table: pa.Table, where: str) -> pa.Table:
    """Return the rows of a table for which a filter holds.

    >>> table = pa.table({"item_id": ["a", "b", "c"], "price": [5, 30, None], "kind": ["book", "book", "cd"]})
    >>> matching(table, "kind in ('book', 'dvd') and not price > 20")["item_id"].to_pylist()
    ['a']
    """
    try:
        return table.filter(_Parser(where, table.schema).whole())
    except pa.ArrowException as error:
        raise WrongUse(f"where: these values can't be compared ({error}): {_EXAMPLE}") from None


def _tokens(where: str) -> list[_Token]:
    if len(where) > _LONGEST:
        raise WrongUse(f"where: longer than {_LONGEST:,} letters: give a shorter filter, or a list of items")
    found, place = list[_Token](), 0
    while where[place:].strip():
        token = _TOKEN.match(where, place)
        if token is None or token.lastgroup is None:
            rest = where[place:].strip()
            raise WrongUse(f"where: {rest[:20]!r} can't be read: {_EXAMPLE}")
        text = token[token.lastgroup]
        is_word = token.lastgroup == "name" and text.lower() in _WORDS
        found.append(_Token("word" if is_word else token.lastgroup, text.lower() if is_word else text, place))
        place = token.end()
    return [*found, _Token("end", "", len(where))]


class _Parser:
    """Reads a filter once, from left to right."""

    def __init__(self, where: str, schema: pa.Schema) -> None:
        self._tokens = _tokens(where)
        self._next = 0
        self._depth = 0
        self._schema = schema

    def whole(self) -> Expression:
        """Return the filter as an expression."""
        found = self._condition()
        if self._token.kind != "end":
            raise self._unexpected("and, or, or the end")
        return found

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> bool:
        """Go on if the next token is a word or a sign of these."""
        taken = self._token.kind in ("word", "sign") and self._token.text in texts
        self._next += taken
        return taken

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._unexpected(text)

    def _unexpected(self, expected: str) -> WrongUse:
        there = _shown(self._token.text) if self._token.kind != "end" else "the end"
        return WrongUse(f"where: {there} stands where {expected} is expected: {_EXAMPLE}")

    def _condition(self) -> Expression:
        found = self._alternative()
        while self._take("or"):
            found = found | self._alternative()
        return found

    def _alternative(self) -> Expression:
        found = self._part()
        while self._take("and"):
            found = found & self._part()
        return found

    def _part(self) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise WrongUse(f"where: nested more than {_DEEPEST} deep: give a simpler filter, or a list of items")
        if self._take("not"):
            found = ~self._part()
        elif self._take("("):
            found = self._condition()
            self._expect(")")
        else:
            found = self._comparison()
        self._depth -= 1
        return found

    def _comparison(self) -> Expression:
        column = self._column()
        negated = self._take("not")
        if self._take("in"):
            found = self._is_in(column)
            return ~found if negated else found
        if negated:
            raise self._unexpected("in")
        sign = self._token.text
        if not self._take(*_COMPARISONS):
            raise self._unexpected(f"one of {' '.join(_COMPARISONS)}, in, or not in")
        field, value = pc.field(column.name), self._value(column)
        comparisons = (field == value, field != value, field < value, field <= value, field > value, field >= value)
        return comparisons[_COMPARISONS.index(sign)]

    def _is_in(self, column: pa.Field) -> Expression:
        self._expect("(")
        values = [self._value(column)]
        while self._take(","):
            values.append(self._value(column))
        self._expect(")")
        # A whole number is compared with a fraction as a fraction, here too.
        has_fraction = any(pa.types.is_floating(value.type) for value in values)
        kind = pa.float64() if has_fraction else column.type
        field = pc.field(column.name)
        found = field.cast(kind, safe=False).isin(pa.array([value.as_py() for value in values], kind))
        # An item of which nothing is known is in no list, and outside of none.
        return pc.if_else(field.is_null(), pa.scalar(None, pa.bool_()), found)

    def _column(self) -> pa.Field:
        token = self._token
        if token.kind not in ("name", "quoted"):
            raise self._unexpected("a column")
        self._next += 1
        name = token.text.strip("`")
        if name not in self._schema.names:
            raise WrongUse(f"where: there is no column {_shown(name)}: the items have {listed(self._schema.names)}")
        return self._schema.field(name)

    def _value(self, column: pa.Field) -> Any:  # noqa: ANN401 - Arrow's own
        token = self._token
        if token.kind == "text":
            value: object = token.text[1:-1].replace(token.text[0] * 2, token.text[0])
        elif token.kind == "number":
            value = float(token.text) if re.search("[.eE]", token.text) else int(token.text)
        elif token.kind == "word" and token.text in ("true", "false"):
            value = token.text == "true"
        else:
            raise self._unexpected("a number, true, false, or a text in quotes")
        self._next += 1
        return _as_kind(value, column)


def _as_kind(value: object, column: pa.Field) -> Any:  # noqa: ANN401 - Arrow's own
    """Return a value that can be compared with a column; refuse one of another kind."""
    kind, is_number = column.type, isinstance(value, int | float) and not isinstance(value, bool)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        fits, expected = is_number, "numbers"
    elif pa.types.is_boolean(kind):
        fits, expected = isinstance(value, bool), "true and false"
    elif pa.types.is_temporal(kind):
        fits, expected = isinstance(value, str), "times: write one as '2026-01-31' or '2026-01-31T12:00:00'"
    else:
        fits, expected = isinstance(value, str), "texts: write one in quotes"
    try:
        if fits:
            # A whole number is compared with a fraction as a fraction: 3 < 3.5.
            given = pa.scalar(value)
            return given if is_number else _as_time(given, kind) if pa.types.is_temporal(kind) else given.cast(kind)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        pass
    raise WrongUse(f"where: the column {column.name} holds {expected}; {_shown(value)} is none")


def _as_time(text: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    """Return a time; one with a zone becomes one of UTC, as the times of items do."""
    try:
        return text.cast(kind)
    except pa.ArrowInvalid:
        return text.cast(pa.timestamp("us", "UTC")).cast(kind)


def _shown(value: object) -> str:
    """Return a value as it is written in code, shortened if it is long."""
    written = repr(value)
    return written if len(written) <= _SHOWN else f"{written[:_SHOWN]}…"
