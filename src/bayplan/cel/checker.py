"""Type checking: every part of an expression gets a type, every call the overloads that its arguments allow.

Several overloads remain where arguments are dynamic; the values decide then. Problems are collected, not raised, so
that one look shows all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bayplan.cel import types
from bayplan.cel.declarations import Constructor, Function
from bayplan.cel.errors import Issue
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
    descendants,
    qualified_name,
)
from bayplan.cel.types import BOOL, DYN, ERROR, INT, Bindings, Type, TypeKind, display, list_of, map_of, optional_of
from bayplan.cel.values import TypeValue, Uint

__all__ = ["Scope", "check"]

_LITERAL_TYPES: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}


class Scope:
    """The names that may be used: variables with their types, types, functions and the fields of objects."""

    def __init__(
        self,
        variables: Mapping[str, Type],
        functions: Mapping[str, Function],
        named_types: Mapping[str, Type],
        fields: Mapping[str, Mapping[str, Type]],
        constructor: Callable[[str], Constructor | None],
    ) -> None:
        self.variables = variables
        self.functions = functions
        self.named_types = named_types
        self.fields = fields
        self.constructor = constructor


def check(expression: Expression, scope: Scope, issues: list[Issue]) -> None:
    """Set the types and overloads of all parts; what is wrong is added to the issues."""
    checker = _Checker(scope, issues)
    checker.visit(expression)
    for part in descendants(expression):
        part.type = checker.bindings.substitute(part.type, free_is_dyn=True)


class _Checker:
    def __init__(self, scope: Scope, issues: list[Issue]) -> None:
        self._scope = scope
        self._issues = issues
        self._locals: list[dict[str, Type]] = []
        self._free = 0
        self.bindings = Bindings()

    def visit(self, part: Expression) -> Type:
        """The type of the part, which it also keeps."""
        match part:
            case Literal():
                part.type = _LITERAL_TYPES[part.value.__class__]
            case Ident():
                part.type = self._ident(part)
            case Select():
                part.type = self._select(part)
            case Call():
                part.type = self._call(part)
            case ListLiteral():
                part.type = self._list(part)
            case MapLiteral():
                part.type = self._map(part)
            case StructLiteral():
                part.type = self._struct(part)
            case Fold():
                part.type = self._fold(part)
        return part.type

    def _report(self, part: Expression, message: str) -> None:
        self._issues.append(Issue(part.offset, message))

    def _mismatch(self, part: Expression, expected: Type, found: Type) -> None:
        self._report(part, f"expected type '{display(expected)}' but found '{display(found)}'")

    def _undeclared(self, part: Expression, name: str) -> Type:
        self._report(part, f"undeclared reference to '{name}' (in container '')")
        return ERROR

    def _free_type(self) -> Type:
        self._free += 1
        return types.parameter(f"_var{self._free - 1}")

    def _known(self, substituted: Type) -> Type:
        return self.bindings.substitute(substituted, free_is_dyn=False)

    def _lookup(self, name: str) -> tuple[Type | None, TypeValue | None]:
        """The type of a variable, or of the type that the name stands for."""
        if name.startswith("."):
            name = name[1:]
        for names in reversed(self._locals):
            if name in names:
                return names[name], None
        if name in self._scope.variables:
            return self._scope.variables[name], None
        named = self._scope.named_types.get(name)
        return (None, None) if named is None else (types.type_of(named), TypeValue(named))

    def _ident(self, part: Ident) -> Type:
        found, constant = self._lookup(part.name)
        if found is None:
            return self._undeclared(part, part.name)
        part.constant = constant
        part.name = part.name.removeprefix(".")
        return found

    def _select(self, part: Select) -> Type:
        name = None if part.is_test else qualified_name(part)
        if name is not None:
            found, constant = self._lookup(name)
            if found is not None:
                part.variable = Ident(part.offset, name.removeprefix("."), constant, type=found)
                return found
        selected = self._field(part, part.operand, part.name, is_optional=False)
        return BOOL if part.is_test else self._known(selected)

    def _field(self, part: Expression, operand: Expression, name: str, *, is_optional: bool) -> Type:
        of = self._known(self.visit(operand))
        is_wrapped = of.is_optional
        if is_wrapped:
            of = of.parameters[0]
        result = DYN
        if of.kind is TypeKind.MAP:
            result = of.parameters[1]
        elif of.kind is TypeKind.STRUCT:
            result = self._declared_field(part, of, name)
        elif of.kind is TypeKind.PARAMETER:
            self.bindings.assign([DYN], [of])
        elif not (of.is_dyn or of.kind is TypeKind.ERROR):
            self._report(part, f"type '{display(of)}' does not support field selection")
        return optional_of(result) if is_wrapped or is_optional else result

    def _declared_field(self, part: Expression, of: Type, name: str) -> Type:
        fields = self._scope.fields.get(of.name)
        constructor = self._scope.constructor(of.name) if fields is None else None
        if constructor is not None:
            fields = constructor.fields
            if fields is None:
                return DYN
        if fields is None:
            self._report(part, f"unexpected failed resolution of '{of.name}'")
            return ERROR
        if name not in fields:
            self._report(part, f"undefined field '{name}'")
            return ERROR
        return fields[name]

    def _call(self, part: Call) -> Type:
        if part.function == "_?._":
            return self._optional_field(part)
        for argument in part.arguments:
            self.visit(argument)
        if part.target is None:
            part.function = (
                part.function.removeprefix(".") if part.function[1:] in self._scope.functions else part.function
            )
            declared = self._scope.functions.get(part.function)
            return self._undeclared(part, part.function) if declared is None else self._resolve(part, declared)
        prefix = qualified_name(part.target)
        if prefix is not None:
            declared = self._scope.functions.get(f"{prefix.removeprefix('.')}.{part.function}")
            if declared is not None:
                part.target, part.function = None, declared.name
                return self._resolve(part, declared)
        self.visit(part.target)
        declared = self._scope.functions.get(part.function)
        return self._undeclared(part, part.function) if declared is None else self._resolve(part, declared)

    def _optional_field(self, part: Call) -> Type:
        operand, field = part.arguments
        assert isinstance(field, Literal), "the parser makes the name of an optional field a literal"
        self.visit(field)
        part.overloads = ("select_optional_field",)
        return self._known(self._field(part, operand, str(field.value), is_optional=True))

    def _resolve(self, part: Call, declared: Function) -> Type:
        if declared.name in ("_&&_", "_||_"):
            return self._resolve_logic(part, declared)
        arguments = [operand.type for operand in part.operands]
        found: list[str] = []
        result: Type | None = None
        for candidate in declared.overloads:
            if candidate.is_member is (part.target is None):
                continue
            fresh = self._instantiate([candidate.result, *candidate.parameters])
            if not self.bindings.assign(arguments, fresh[1:]):
                continue
            found.append(candidate.id)
            answer = self._known(fresh[0])
            if result is None:
                result = answer
            elif not result.is_dyn and answer != result:
                result = DYN
        part.overloads = tuple(found)
        if result is None:
            self._no_overload(part, declared.name, arguments)
            return ERROR
        return result

    def _resolve_logic(self, part: Call, declared: Function) -> Type:
        part.overloads = (declared.overloads[0].id,)
        wrong = False
        for argument in part.arguments:
            if not self.bindings.assign([argument.type], [BOOL]):
                self._mismatch(argument, BOOL, argument.type)
                wrong = True
        return ERROR if wrong else BOOL

    def _instantiate(self, signature: list[Type]) -> list[Type]:
        """The signature with type parameters of its own."""
        fresh: dict[str, Type] = {}

        def renamed(within: Type) -> Type:
            if within.kind is TypeKind.PARAMETER:
                if within.name not in fresh:
                    fresh[within.name] = self._free_type()
                return fresh[within.name]
            if not within.parameters:
                return within
            return Type(within.kind, within.name, tuple(renamed(inner) for inner in within.parameters))

        return [renamed(each) for each in signature]

    def _no_overload(self, part: Call, name: str, arguments: list[Type]) -> None:
        shown = [display(self.bindings.substitute(argument, free_is_dyn=True)) for argument in arguments]
        target = "" if part.target is None else f"{shown.pop(0)}."
        self._report(part, f"found no matching overload for '{name}' applied to '{target}({', '.join(shown)})'")

    def _list(self, part: ListLiteral) -> Type:
        common: Type | None = None
        for position, element in enumerate(part.elements):
            found = self.visit(element)
            if position in part.optional:
                found = self._unwrapped(element, found)
            common = self._joined(common, found)
        return list_of(self._free_type() if common is None else common)

    def _map(self, part: MapLiteral) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in part.entries:
            key = self._joined(key, self.visit(entry.key))
            found = self.visit(entry.value)
            if entry.is_optional:
                found = self._unwrapped(entry.value, found)
            value = self._joined(value, found)
        if key is None or value is None:
            key, value = self._free_type(), self._free_type()
        return map_of(key, value)

    def _unwrapped(self, part: Expression, found: Type) -> Type:
        if found.is_optional:
            return found.parameters[0]
        if not found.is_dyn:
            self._mismatch(part, optional_of(found), found)
        return found

    def _joined(self, before: Type | None, found: Type) -> Type:
        """The type that all elements so far agree on; `bayplan.cel.validation` says where they may differ."""
        if before is None:
            return found
        return types.most_general(before, found) if self.bindings.assign([before], [found]) else DYN

    def _struct(self, part: StructLiteral) -> Type:
        part.name = part.name.removeprefix(".")
        constructor = self._scope.constructor(part.name)
        for position, (name, value) in enumerate(part.fields):
            found = self.visit(value)
            if position in part.optional:
                found = self._unwrapped(value, found)
            expected = DYN if constructor is None or constructor.fields is None else constructor.fields.get(name)
            if expected is None:
                self._report(value, f"undefined field '{name}'")
            elif not self.bindings.assign([expected], [found]):
                said = f"expected type of field '{name}' is '{display(expected)}'"
                self._report(value, f"{said} but provided type is '{display(found)}'")
        return self._undeclared(part, part.name) if constructor is None else constructor.type

    def _fold(self, part: Fold) -> Type:
        of = self._known(self.visit(part.range))
        accumulated = self.visit(part.initial)
        of = self._known(of)
        first, second = self._iterated(part, of)
        self._locals.append({part.accumulator: accumulated})
        loop = {part.variable: first}
        if part.second_variable is not None:
            loop[part.second_variable] = second
        self._locals.append(loop)
        self._assert_type(part.condition, BOOL)
        self._assert_type(part.step, accumulated)
        self._locals.pop()
        result = self.visit(part.result)
        self._locals.pop()
        return self._known(result)

    def _iterated(self, part: Fold, of: Type) -> tuple[Type, Type]:
        """The types of the variables of a loop: element, or key (index) and value."""
        if of.kind is TypeKind.LIST:
            element = of.parameters[0]
            return (INT, element) if part.second_variable is not None else (element, element)
        if of.kind is TypeKind.MAP:
            return of.parameters[0], of.parameters[1]
        if of.kind in (TypeKind.DYN, TypeKind.ERROR, TypeKind.PARAMETER):
            self.bindings.assign([DYN], [of])
            return DYN, DYN
        shown = display(of)
        message = f"expression of type '{shown}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self._report(part.range, message)
        return ERROR, ERROR

    def _assert_type(self, part: Expression, expected: Type) -> None:
        found = self.visit(part)
        if not self.bindings.assign([expected], [found]):
            self._mismatch(part, expected, found)
