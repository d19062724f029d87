"""The string form of filters: ``type = 'event' AND (importance >= 4 OR NOT tags IN ('draft'))``.

::

    condition   = either { "OR" either }
    either      = single { "AND" single }
    single      = "NOT" single | "(" condition ")" | comparison
    comparison  = name ( "=" | "!=" | "<>" | ">" | ">=" | "<" | "<=" ) value
                | name [ "NOT" ] "IN" "(" [ value { "," value } ] ")"
                | name [ "NOT" ] ( "CONTAINS" | "ICONTAINS" ) value
                | name [ "NOT" ] "EXISTS"
    value       = quoted text | JSON number | "true" | "false" | "null"

Keywords may be small or capital. Texts stand in ``'…'`` or ``"…"``, where the quote is doubled to
stand for itself and a backslash is an ordinary character. A name is written plain, or quoted when
it holds blanks, operators or a keyword.
"""

import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from memory_tool.errors import InvalidFilter
from memory_tool.filter_fields import any_of, written
from memory_tool.filter_values import shown
from memory_tool.query import AllOf, Filter, NotThis, Operator, Scalar

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<quoted>'(?:[^']|'')*+'|"(?:[^"]|"")*+")"""
    r"""|(?P<symbol><=|>=|!=|<>|[=<>(),])"""
    r"""|(?P<word>[^\s'"=<>!(),]+)"""
    r"""|(?P<end>\Z))"""
)
_NUMBER: Final = re.compile(
    r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<power>[eE][+-]?[0-9]+)?"
)
_DIGITS_MAX: Final = 400
"""More digits than the largest float has."""

_SYMBOLS: Final[Mapping[str, Operator]] = {
    "=": "eq",
    "!=": "ne",
    "<>": "ne",
    ">": "gt",
    ">=": "gte",
    "<": "lt",
    "<=": "lte",
}
_KEYWORDS: Final = frozenset({"and", "or", "not", "in", "contains", "icontains", "exists"})
_CONSTANTS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}


class _TokenKind(enum.Enum):
    QUOTED = "quoted"
    SYMBOL = "symbol"
    WORD = "word"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    """A piece of the text. ``text`` of a quoted one is what stands between the quotes."""

    kind: _TokenKind
    text: str
    start: int

    @property
    def keyword(self) -> str:
        """The keyword that it is, in small letters; empty when it is none."""
        word = self.text.lower() if self.kind is _TokenKind.WORD else ""
        return word if word in _KEYWORDS else ""

    def is_symbol(self, text: str) -> bool:
        """Whether it is this symbol, unquoted."""
        return self.kind is _TokenKind.SYMBOL and self.text == text


def read_text(text: str, *, depth_max: int) -> Filter:
    """The filter that ``text`` writes, names not looked up yet; an empty one is refused.

    Raises:
        InvalidFilter: The text breaks the grammar, or parentheses and NOTs nest deeper than
            ``depth_max``.
    """
    return _Reader(_tokens(text), depth_max).whole()


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while not tokens or tokens[-1].kind is not _TokenKind.END:
        match = _TOKEN.match(text, position)
        if match is None:
            rest = text[position:].lstrip()
            place = len(text) - len(rest) + 1
            message = f"a quote without its end, or a stray sign, at character {place}: "
            raise InvalidFilter(message + shown(rest))
        kind = _TokenKind(match.lastgroup)
        piece = match[kind.value]
        if kind is _TokenKind.QUOTED:
            piece = piece[1:-1].replace(piece[0] * 2, piece[0])
        tokens.append(_Token(kind=kind, text=piece, start=match.start(kind.value)))
        position = match.end()
    return tokens


def _refuse(found: _Token, *, expected: str) -> NoReturn:
    what = "the end" if found.kind is _TokenKind.END else shown(found.text)
    message = f"expected {expected} at character {found.start + 1}, not {what}"
    raise InvalidFilter(message)


class _Reader:
    """Recursive descent over the tokens, one method for each rule of the grammar."""

    def __init__(self, tokens: list[_Token], depth_max: int) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0
        self._depth_max = depth_max

    def whole(self) -> Filter:
        condition = self._condition()
        if self._peek().kind is not _TokenKind.END:
            _refuse(self._peek(), expected="AND, OR or the end")
        return condition

    def _condition(self) -> Filter:
        return any_of(self._separated("or", self._either))

    def _either(self) -> Filter:
        parts = self._separated("and", self._single)
        return parts[0] if len(parts) == 1 else AllOf(parts=parts)

    def _separated(self, keyword: str, rule: Callable[[], Filter]) -> tuple[Filter, ...]:
        parts = [rule()]
        while self._peek().keyword == keyword:
            self._take()
            parts.append(rule())
        return tuple(parts)

    def _single(self) -> Filter:
        token = self._peek()
        negated = token.keyword == "not"
        if not negated and not token.is_symbol("("):
            return self._comparison()
        self._take()
        self._depth += 1
        if self._depth > self._depth_max:
            message = f"the filter nests deeper than {self._depth_max}"
            raise InvalidFilter(message)
        if negated:
            inner: Filter = NotThis(part=self._single())
        else:
            inner = self._condition()
            self._take_symbol(")")
        self._depth -= 1
        return inner

    def _comparison(self) -> Filter:
        name = self._name()
        token = self._take()
        if token.kind is _TokenKind.SYMBOL and token.text in _SYMBOLS:
            return written(name, _SYMBOLS[token.text], value=self._value())
        negated = token.keyword == "not"
        if negated:
            token = self._take()
        if token.keyword == "in":
            return written(name, "nin" if negated else "in", value=self._values())
        if token.keyword == "exists":
            return written(name, "exists", value=not negated)
        if token.keyword in ("contains", "icontains"):
            part = written(name, token.keyword, value=self._value())
            return NotThis(part=part) if negated else part
        _refuse(token, expected=f"an operator after {shown(name)}")

    def _name(self) -> str:
        token = self._take()
        if token.kind not in (_TokenKind.QUOTED, _TokenKind.WORD) or token.keyword:
            _refuse(token, expected="a name")
        return token.text

    def _values(self) -> list[Scalar]:
        self._take_symbol("(")
        values: list[Scalar] = []
        if self._peek().is_symbol(")"):
            self._take()
            return values
        values.append(self._value())
        while self._peek().is_symbol(","):
            self._take()
            values.append(self._value())
        self._take_symbol(")")
        return values

    def _value(self) -> Scalar:
        token = self._take()
        if token.kind is _TokenKind.QUOTED:
            return token.text
        if token.kind is _TokenKind.WORD and token.text.lower() in _CONSTANTS:
            return _CONSTANTS[token.text.lower()]
        number = _NUMBER.fullmatch(token.text) if token.kind is _TokenKind.WORD else None
        if number is None or len(token.text) > _DIGITS_MAX:
            _refuse(token, expected="a value (texts stand in quotes)")
        if number["fraction"] or number["power"]:
            return float(token.text)
        return int(token.text)

    def _take_symbol(self, symbol: str) -> None:
        token = self._take()
        if not token.is_symbol(symbol):
            _refuse(token, expected=symbol)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next += 1
        return token
