"""From checked parts to steps that can be run: constants folded, names and selections joined to attributes.

What is folded is part of what an expression costs: a list of constants is free, one with a variable in it is not. A
conversion of a constant is worked out here, and a bad one (`int("x")`) means that there is no program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bayplan.cel import interpreter
from bayplan.cel.cost import Meter, call_cost
from bayplan.cel.declarations import Function, Resolved
from bayplan.cel.errors import CompileError, EvaluationError
from bayplan.cel.interpreter import (
    Alternative,
    Attribute,
    Called,
    Constant,
    ListMaker,
    Logic,
    Loop,
    MapMaker,
    Membership,
    NotStrictlyFalse,
    OptionalChoice,
    Qualifier,
    Stage,
    StructMaker,
    Varied,
    equality,
    inequality,
)
from bayplan.cel.library.regular_expressions import compiled
from bayplan.cel.scopes import Variables
from bayplan.cel.syntax import (
    Call,
    Expression,
    Fold,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
)
from bayplan.cel.types import TypeKind
from bayplan.cel.values import Value, no_overload, reflected_name

__all__ = ["plan"]

_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"})
_SEARCHES = frozenset({"matches", "find", "findAll"})
_MANY_ARGUMENTS = frozenset({"string_format"})
"""Overloads that take their arguments as a list, and so stop at the first error among them."""
_NOTHING = Variables({})


def plan(expression: Expression, functions: Mapping[str, Function]) -> Stage:
    """The steps of a checked expression. Raises `CompileError` for constants that have no value."""
    try:
        return _Planner(functions).step(expression)
    except EvaluationError as error:
        raise CompileError(f"program instantiation failed: {error}") from None


class _Planner:
    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions

    def step(self, part: Expression) -> Stage:
        match part:
            case Literal():
                return Constant(part.value)
            case Ident():
                return self._ident(part)
            case Select():
                return self._select(part)
            case Call():
                return self._call(part)
            case ListLiteral():
                return self._list(part)
            case MapLiteral():
                return self._map(part)
            case StructLiteral():
                fields = [(name, self.step(value), at in part.optional) for at, (name, value) in enumerate(part.fields)]
                return StructMaker(part.type, fields)
            case Fold():
                return self._loop(part)
        raise AssertionError(f"an unchecked part {part!r}")

    def _ident(self, part: Ident) -> Stage:
        if part.constant is not None:
            return Constant(part.constant)
        if part.type.kind is TypeKind.TYPE:
            raise EvaluationError(f"reference to undefined type: {part.name}")
        return Attribute(part.name)

    def _select(self, part: Select) -> Stage:
        if part.variable is not None:
            return self.step(part.variable)
        attribute = self._attribute(part.operand)
        attribute.add(Qualifier(part.name, is_test=part.is_test))
        attribute.is_test = part.is_test
        return attribute

    def _attribute(self, part: Expression) -> Attribute:
        step = self.step(part)
        return step if isinstance(step, Attribute) else Attribute(base=step)

    def _call(self, part: Call) -> Stage:
        match part.function:
            case "_[_]" | "_[?_]" | "_?._":
                return self._index(part)
            case "_?_:_":
                return Alternative(*map(self.step, part.arguments))
            case "_&&_":
                return Logic([self.step(term) for term in part.arguments], deciding=False)
            case "_||_":
                return Logic([self.step(term) for term in part.arguments], deciding=True)
            case "@not_strictly_false":
                return NotStrictlyFalse(self.step(part.arguments[0]))
        steps = [self.step(operand) for operand in part.operands]
        overload_id = part.overloads[0] if len(part.overloads) == 1 else None
        match part.function, overload_id:
            case "_==_", _:
                return Called(equality, steps, call_cost("_==_", "equals"))
            case "_!=_", _:
                return Called(inequality, steps, call_cost("_!=_", "not_equals"))
            case "or", (None | "optional_or_optional"):
                return OptionalChoice(*steps, is_unwrapped=False)
            case "orValue", (None | "optional_orValue_value"):
                return OptionalChoice(*steps, is_unwrapped=True)
            case "@in", "in_list":
                return self._membership(steps)
        return self._function_call(part.function, overload_id, steps)

    def _function_call(self, name: str, overload_id: str | None, steps: list[Stage]) -> Stage:
        function = self._functions[name]
        cost = call_cost(name, overload_id)
        call = function.resolve(overload_id)
        if name in _CONVERSIONS and len(steps) == 1 and isinstance(steps[0], Constant):
            return Constant(call([steps[0].value]))
        pattern = steps[1] if name in _SEARCHES and len(steps) > 1 else None
        is_search = isinstance(pattern, Constant) and isinstance(pattern.value, str)
        if isinstance(pattern, Constant) and isinstance(pattern.value, str):
            compiled(pattern.value)
            call = _unnamed(call)
        is_dispatched = function.singleton is None and len(function.overloads) > 1 and overload_id is None
        if len(steps) > 2 or is_search or is_dispatched or overload_id in _MANY_ARGUMENTS:
            return Varied(call, steps, cost)
        return Called(call, steps, cost)

    def _membership(self, steps: list[Stage]) -> Stage:
        members = steps[1]
        if isinstance(members, Constant) and isinstance(members.value, list):
            if not members.value:
                return Constant(False)
            if all(isinstance(member, bool | int | float | str) for member in members.value):
                return Membership(steps[0], members.value)
        return Called(self._functions["@in"].resolve("in_list"), steps, call_cost("@in", "in_list"))

    def _index(self, part: Call) -> Stage:
        attribute = self._attribute(part.arguments[0])
        key = self.step(part.arguments[1])
        is_optional = part.function != "_[_]"
        if isinstance(key, Constant):
            if not isinstance(key.value, bool | int | float | str):
                raise EvaluationError(f"invalid qualifier type: {reflected_name(key.value)}")
            attribute.add(Qualifier(key.value, is_optional=is_optional))
        else:
            attribute.add(Qualifier(None, key, is_optional=is_optional))
        return attribute

    def _list(self, part: ListLiteral) -> Stage:
        steps = [self.step(element) for element in part.elements]
        made = ListMaker(steps, part.optional)
        return _folded(made) if all(isinstance(step, Constant) for step in steps) else made

    def _map(self, part: MapLiteral) -> Stage:
        steps = [(self.step(entry.key), self.step(entry.value), entry.is_optional) for entry in part.entries]
        made = MapMaker(steps)
        is_constant = all(isinstance(key, Constant) and isinstance(value, Constant) for key, value, _ in steps)
        return _folded(made) if is_constant else made

    def _loop(self, part: Fold) -> Stage:
        initial = self.step(part.initial)
        over = self.step(part.range)
        condition, step, result = map(self.step, (part.condition, part.step, part.result))
        names = (part.variable, part.second_variable)
        return Loop(names, part.accumulator, (over, initial, condition, step, result))


def _unnamed(search: Resolved) -> Resolved:
    """A search whose pattern is known does not say what it was called with when that is no text."""

    def call(arguments: Sequence[Value]) -> Value:
        if not isinstance(arguments[0], str) or not all(argument.__class__ is int for argument in arguments[2:]):
            raise no_overload()
        return search(arguments)

    return call


def _folded(made: interpreter.Stage) -> Stage:
    value: Value = made.run(_NOTHING, Meter(None))
    return Constant(value)
