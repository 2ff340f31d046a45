"""From text to parts: a precedence climbing parser with a bounded depth.

It follows the published grammar of CEL with optional syntax (`a.?b`, `a[?b]`, `[?a]`, `{?a: b}`). Operators become
calls, macros are expanded as soon as their arguments are known. Every problem is reported with its place; the wording
after "Syntax error:" follows the reference implementation for what is missing or left over, not for every case.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.cel.errors import Issue
from bayplan.cel.macros import Macro, MacroProblem
from bayplan.cel.syntax import (
    Call,
    Expression,
    Ident,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Select,
    StructLiteral,
)
from bayplan.cel.tokens import LiteralProblem, Token, TokenKind, tokenize, unescape
from bayplan.cel.values import Uint, Value

__all__ = ["DEEPEST", "LONGEST", "parse"]

DEEPEST = 250
"""The deepest nesting that is parsed."""
LONGEST = 100_000
"""The most characters that are parsed."""

_RESERVED = frozenset(
    {"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop"}
    | {"namespace", "null", "package", "return", "true", "var", "void", "while"}
)
_OR, _AND, _RELATION, _SUM, _PRODUCT = range(5)
_STRENGTH = {"||": _OR, "&&": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT} | dict.fromkeys(
    ("<", "<=", ">=", ">", "==", "!=", "in"), _RELATION
)
_LITERALS = {"true": True, "false": False, "null": None}
_OPERAND = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_INT_RANGE = range(-(2**63), 2**63)


def parse(text: str, macros: Mapping[tuple[str, int, bool], Macro], issues: list[Issue]) -> Expression | None:
    """The expression of the text, or nothing where the issues say why."""
    if len(text) > LONGEST:
        message = f"expression code point size exceeds limit: size: {len(text)}, limit {LONGEST}"
        issues.append(Issue(None, message))
        return None
    tokens = list(tokenize(text, issues))
    if issues:
        return None
    try:
        return _Parser(tokens, macros, issues).whole()
    except _Stop as stop:
        issues.append(stop.issue)
        return None


class _Stop(Exception):
    def __init__(self, offset: int | None, message: str) -> None:
        self.issue = Issue(offset, message)


class _Parser:
    def __init__(self, tokens: list[Token], macros: Mapping[tuple[str, int, bool], Macro], issues: list[Issue]) -> None:
        self._tokens = tokens
        self._position = 0
        self._macros = macros
        self._issues = issues
        self._depth = 0

    def whole(self) -> Expression | None:
        expression = self._expression()
        if self._token.kind is not TokenKind.END:
            self._unexpected("<EOF>", left_over=True)
        return None if self._issues else expression

    @property
    def _token(self) -> Token:
        return self._tokens[self._position]

    def _next(self) -> Token:
        token = self._tokens[self._position]
        self._position += 1
        return token

    def _is(self, text: str) -> bool:
        token = self._token
        return token.text == text and token.kind in (TokenKind.SIGN, TokenKind.NAME)

    def _take(self, text: str) -> Token | None:
        return self._next() if self._is(text) else None

    def _expect(self, text: str) -> Token:
        return self._take(text) or self._unexpected(f"'{text}'")

    def _unexpected(self, expected: str, *, left_over: bool = False) -> Token:
        token = self._token
        problem = "extraneous" if left_over and self._tokens[self._position + 1 :] else "mismatched"
        raise _Stop(token.offset, f"Syntax error: {problem} input '{token.text}' expecting {expected}")

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise _Stop(None, f"expression recursion limit exceeded: {DEEPEST}")

    def _expression(self) -> Expression:
        """A condition with its two outcomes, or what may stand in for one."""
        self._enter()
        condition = self._operation(0)
        question = self._take("?")
        if question is not None:
            first = self._operation(0)
            self._expect(":")
            condition = Call(question.offset, "_?_:_", [condition, first, self._expression()])
        self._depth -= 1
        return condition

    def _operation(self, weakest: int) -> Expression:
        """Operands joined by operators that bind at least as strongly as the weakest one allowed."""
        left = self._unary()
        levels = 0
        while (strength := self._strength()) >= weakest:
            if strength <= _AND:
                left = self._terms(left, strength)
                continue
            self._enter()
            levels += 1
            token = self._next()
            function = "@in" if token.text == "in" else f"_{token.text}_"
            left = Call(token.offset, function, [left, self._operation(strength + 1)])
        self._depth -= levels
        return left

    def _strength(self) -> int:
        token = self._token
        return _STRENGTH.get(token.text, -1) if token.kind in (TokenKind.SIGN, TokenKind.NAME) else -1

    def _terms(self, first: Expression, strength: int) -> Expression:
        """All terms of one chain of `&&` or `||`."""
        sign = self._token.text
        terms, offsets = [first], []
        while (token := self._take(sign)) is not None:
            offsets.append(token.offset)
            terms.append(self._operation(strength + 1))
        return _balanced(f"_{sign}_", terms, offsets)

    def _unary(self) -> Expression:
        token = self._token
        if token.kind is TokenKind.SIGN and token.text in ("!", "-"):
            if token.text == "-" and self._tokens[self._position + 1].kind in (TokenKind.INT, TokenKind.FLOAT):
                return self._member()
            count = 0
            while self._take(token.text) is not None:
                count += 1
            operand = self._member()
            if count % 2 == 0:
                return operand
            return Call(token.offset, "!_" if token.text == "!" else "-_", [operand])
        return self._member()

    def _member(self) -> Expression:
        part = self._primary()
        levels = 0
        while self._token.kind is TokenKind.SIGN and self._token.text in (".", "["):
            self._enter()
            levels += 1
            token = self._next()
            part = self._index(part, token) if token.text == "[" else self._selected(part, token)
        self._depth -= levels
        return part

    def _index(self, part: Expression, token: Token) -> Expression:
        function = "_[?_]" if self._take("?") else "_[_]"
        index = self._expression()
        self._expect("]")
        return Call(token.offset, function, [part, index])

    def _selected(self, part: Expression, dot: Token) -> Expression:
        is_optional = self._take("?") is not None
        name = self._token
        if name.kind is TokenKind.QUOTED_NAME:
            raise _Stop(name.offset, "unsupported syntax: '`'")
        if name.kind is not TokenKind.NAME or name.text in ("true", "false", "null", "in"):
            self._unexpected("IDENTIFIER")
        self._next()
        if is_optional:
            return Call(dot.offset, "_?._", [part, Literal(name.offset, name.text)])
        opening = self._take("(")
        if opening is not None:
            return self._call(opening, name.text, self._arguments(), part)
        return Select(dot.offset, part, name.text)

    def _arguments(self) -> list[Expression]:
        arguments: list[Expression] = []
        while not self._is(")"):
            arguments.append(self._expression())
            if self._take(",") is None:
                break
            if self._is(")"):
                self._unexpected(_OPERAND)
        self._expect(")")
        return arguments

    def _call(
        self, opening: Token, function: str, arguments: list[Expression], target: Expression | None
    ) -> Expression:
        macro = self._macros.get((function, len(arguments), target is not None))
        if macro is not None:
            try:
                expanded = macro(opening.offset, target, arguments)
            except MacroProblem as problem:
                self._issues.append(Issue(problem.offset, str(problem)))
                return Literal(problem.offset, None)
            if expanded is not None:
                return expanded
        return Call(opening.offset, function, arguments, target)

    def _primary(self) -> Expression:
        token = self._token
        match token.kind, token.text:
            case ((TokenKind.INT | TokenKind.UINT | TokenKind.FLOAT | TokenKind.STRING | TokenKind.BYTES), _):
                return self._literal(self._next(), "")
            case TokenKind.NAME, _:
                return self._named(self._next(), "")
            case TokenKind.SIGN, "(":
                self._next()
                inside = self._expression()
                self._expect(")")
                return inside
            case TokenKind.SIGN, "[":
                return self._list(self._next())
            case TokenKind.SIGN, "{":
                return self._map(self._next())
            case TokenKind.SIGN, ".":
                self._next()
                if self._token.kind is not TokenKind.NAME:
                    self._unexpected("IDENTIFIER")
                return self._named(self._next(), ".")
            case TokenKind.SIGN, "-":
                self._next()
                if self._token.kind not in (TokenKind.INT, TokenKind.FLOAT):
                    self._unexpected("{NUM_FLOAT, NUM_INT}")
                return self._literal(self._next(), "-", token.offset)
        return self._missing_operand()

    def _missing_operand(self) -> Expression:
        self._unexpected(_OPERAND)
        raise AssertionError("unexpected input always stops the parser")

    def _literal(self, token: Token, sign: str, offset: int | None = None) -> Expression:
        place = token.offset if offset is None else offset
        try:
            return Literal(place, _value(token, sign))
        except LiteralProblem as problem:
            self._issues.append(Issue(place, str(problem)))
            return Literal(place, None)

    def _named(self, token: Token, dot: str) -> Expression:
        if token.text in _LITERALS and not dot:
            return Literal(token.offset, _LITERALS[token.text])
        if dot and (token.text in _LITERALS or token.text == "in"):
            self._position -= 1
            self._unexpected("IDENTIFIER")
        opening = self._take("(")
        if token.text in _RESERVED:
            if token.text == "in":
                self._position -= 1 if opening is None else 2
                self._missing_operand()
            self._issues.append(Issue(token.offset - len(dot), f"reserved identifier: {token.text}"))
        if opening is not None:
            return self._call(opening, dot + token.text, self._arguments(), None)
        struct = self._struct(token, dot)
        return struct or Ident(token.offset, dot + token.text)

    def _struct(self, token: Token, dot: str) -> Expression | None:
        """`a.b.C{…}`; the names before the brace are looked at without being taken."""
        names, position = [token.text], self._position
        while self._tokens[position].text == "." and self._tokens[position + 1].kind is TokenKind.NAME:
            names.append(self._tokens[position + 1].text)
            position += 2
        if self._tokens[position].text != "{" or self._tokens[position].kind is not TokenKind.SIGN:
            return None
        self._position = position
        brace = self._next()
        fields: list[tuple[str, Expression]] = []
        optional = set()
        while not self._is("}"):
            if self._take("?") is not None:
                optional.add(len(fields))
            if self._token.kind is not TokenKind.NAME:
                self._unexpected("'}'")
            name = self._next().text
            self._expect(":")
            fields.append((name, self._expression()))
            if self._take(",") is None:
                break
        self._expect("}")
        return StructLiteral(brace.offset, dot + ".".join(names), fields, frozenset(optional))

    def _list(self, bracket: Token) -> Expression:
        elements: list[Expression] = []
        optional = set()
        if self._take(",") is None:
            while not self._is("]"):
                if self._take("?") is not None:
                    optional.add(len(elements))
                elements.append(self._expression())
                if self._take(",") is None:
                    break
        self._expect("]")
        return ListLiteral(bracket.offset, elements, frozenset(optional))

    def _map(self, brace: Token) -> Expression:
        entries: list[MapEntry] = []
        if self._take(",") is None:
            while not self._is("}"):
                is_optional = self._take("?") is not None
                key = self._expression()
                self._expect(":")
                entries.append(MapEntry(key, self._expression(), is_optional))
                if self._take(",") is None:
                    break
        self._expect("}")
        return MapLiteral(brace.offset, entries)


def _balanced(function: str, terms: list[Expression], offsets: list[int]) -> Expression:
    """A tree as flat as possible, so that a long chain of terms is not a deep one."""
    if len(terms) == 1:
        return terms[0]
    middle = len(offsets) // 2
    left = _balanced(function, terms[: middle + 1], offsets[:middle])
    right = _balanced(function, terms[middle + 1 :], offsets[middle + 1 :])
    return Call(offsets[middle], function, [left, right])


def _value(token: Token, sign: str) -> Value:
    text = token.text
    match token.kind:
        case TokenKind.INT:
            number = int(sign + text, 16 if text.startswith("0x") else 10)
            if number not in _INT_RANGE:
                raise LiteralProblem("invalid int literal")
            return number
        case TokenKind.UINT:
            number = int(text[:-1], 16 if text.startswith("0x") else 10)
            if number >= 2**64:
                raise LiteralProblem("invalid uint literal")
            return Uint(number)
        case TokenKind.FLOAT:
            double = float(sign + text)
            if double in (float("inf"), float("-inf")):
                raise LiteralProblem("invalid double literal")
            return double
        case TokenKind.BYTES:
            return unescape(text[1:], as_bytes=True)
    return unescape(text, as_bytes=False)
