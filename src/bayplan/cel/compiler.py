"""From checked parts to Python: one function per expression, without costs and without errors as values.

It is used where the estimate says that the cost cannot reach the limit. Anything out of the ordinary (an error, a loop
that runs longer than declared sizes allow) raises, and the exact evaluation of `bayplan.cel.interpreter` takes over; so
this never decides what an error is, only how fast a value is found.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

from bayplan.cel.declarations import Function
from bayplan.cel.errors import EvaluationError
from bayplan.cel.lookup import optional_part, qualify
from bayplan.cel.syntax import Call, Expression, Fold, Ident, ListLiteral, Literal, MapEntry, MapLiteral, Select
from bayplan.cel.types import Type, TypeKind
from bayplan.cel.values import Accumulator, AccumulatorMap, Optional, Uint, Value, compare, equal

__all__ = ["Unsupported", "compile_to_python"]

_COMPARISONS = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_SAME_KIND = frozenset({TypeKind.INT, TypeKind.UINT, TypeKind.STRING, TypeKind.BYTES, TypeKind.BOOL})
_LONGEST_LOOP = 100_000
_DEEPEST_BLOCK = 15


class Unsupported(Exception):
    """An expression that is evaluated exactly or not at all."""


class _Unusual(EvaluationError):
    """Something that the exact evaluation has to look at."""


def compile_to_python(
    expression: Expression, variables: Mapping[str, Type], functions: Mapping[str, Function]
) -> Callable[..., Value]:
    """A function of the variables in their order. It raises `EvaluationError` where the exact evaluation decides."""
    writer = _Writer(functions)
    parameters = {name: f"v_{position}" for position, name in enumerate(variables)}
    result = writer.write(expression, parameters)
    lines = [f"def evaluate({', '.join(parameters.values())}):", "    steps = 0", *writer.lines, f"    return {result}"]
    try:
        with warnings.catch_warnings():
            # `null[0]` is an error of the expression, for its author; Python would warn the process.
            warnings.simplefilter("ignore", SyntaxWarning)
            code = compile("\n".join(lines), "<expression>", "exec")
    except (SyntaxError, RecursionError, MemoryError) as problem:
        raise Unsupported(str(problem)) from None
    namespace: dict[str, object] = dict(writer.constants)
    exec(code, namespace)  # the code is made of checked parts; texts of users are literals in it
    evaluate: Callable[..., Value] = namespace["evaluate"]  # type: ignore[assignment]  # it defines just this function
    return evaluate


class _Writer:
    """Writes statements in the order of evaluation; each part becomes an expression over names written before."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._indent = 1
        self._count = 0
        self.lines: list[str] = []
        self.constants: dict[str, object] = {
            "equal": equal,
            "compare": compare,
            "qualify": qualify,
            "optional_part": optional_part,
            "unusual": _unusual,
            "Accumulator": Accumulator,
            "AccumulatorMap": AccumulatorMap,
            "Optional": Optional,
            "Uint": Uint,
        }

    def write(self, part: Expression, names: Mapping[str, str]) -> str:
        """The Python expression of a part; names are the Python names of its variables."""
        match part:
            case Literal():
                return self._constant(part.value)
            case Ident():
                return self._constant(part.constant) if part.constant is not None else self._name(part.name, names)
            case Select():
                return self._select(part, names)
            case Call():
                return self._call(part, names)
            case ListLiteral() if not part.optional:
                return self._keep("[" + ", ".join([self.write(each, names) for each in part.elements]) + "]")
            case MapLiteral() if all(_is_plain_entry(entry) for entry in part.entries):
                pairs = [(self.write(entry.key, names), self.write(entry.value, names)) for entry in part.entries]
                return self._keep("{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}")
            case Fold():
                return self._fold(part, names)
        raise Unsupported(type(part).__name__)

    def _line(self, text: str) -> None:
        self.lines.append("    " * self._indent + text)

    def _fresh(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def _keep(self, text: str) -> str:
        name = self._fresh()
        self._line(f"{name} = {text}")
        return name

    def _constant(self, value: object) -> str:
        if value is True or value is False or value is None:
            return repr(value)
        if value.__class__ is int or value.__class__ is str:
            return f"({value!r})"
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def _name(self, name: str, names: Mapping[str, str]) -> str:
        if name not in names:
            raise Unsupported(name)
        return names[name]

    def _select(self, part: Select, names: Mapping[str, str]) -> str:
        if part.variable is not None:
            return self.write(part.variable, names)
        operand = self.write(part.operand, names)
        if part.operand.type.is_optional:
            if part.is_test:
                raise Unsupported("has")
            return self._keep(f"optional_part({operand}, {part.name!r})")
        if part.is_test:
            return self._present(operand, part)
        return self._part_of(operand, repr(part.name), is_text=True)

    def _present(self, operand: str, part: Select) -> str:
        kept = self._keep(operand)
        self._line(f"if {kept}.__class__ is not dict: unusual()")
        return self._keep(f"{part.name!r} in {kept}")

    def _part_of(self, operand: str, key: str, *, is_text: bool) -> str:
        """A map of Python's own is looked into directly; other values and missing keys take the slow way."""
        if not is_text:
            return self._keep(f"qualify({operand}, {key})")
        kept = operand if operand.isidentifier() else self._keep(operand)
        found = self._fresh()
        self._line(f"try: {found} = {kept}[{key}]")
        self._line(f"except (KeyError, TypeError, IndexError): {found} = qualify({kept}, {key})")
        return found

    def _call(self, part: Call, names: Mapping[str, str]) -> str:
        match part.function:
            case "_&&_" | "_||_":
                return self._logic(part, names)
            case "_?_:_":
                return self._choice(part, names)
            case "_[_]":
                return self._index(part, names)
            case "_==_" | "_!=_":
                return self._equality(part, names)
            case "@not_strictly_false":
                return self._boolean(part.arguments[0], names)
            case "!_":
                return self._keep(f"not {self._boolean(part.arguments[0], names)}")
            case "_[?_]" | "_?._":
                written = [self.write(each, names) for each in part.arguments]
                return self._keep(f"optional_part({', '.join(written)})")
            case "or" | "orValue":
                return self._optional_choice(part, names)
        if part.function in _COMPARISONS:
            return self._comparison(part, names)
        return self._function(part, names)

    def _boolean(self, part: Expression, names: Mapping[str, str]) -> str:
        """A part that has to be a boolean; of dynamic ones that is looked at."""
        written = self.write(part, names)
        if part.type.kind is not TypeKind.BOOL:
            written = written if written.isidentifier() else self._keep(written)
            self._line(f"if {written}.__class__ is not bool: unusual()")
        return written

    def _nested(self) -> None:
        self._indent += 1
        if self._indent > _DEEPEST_BLOCK:
            raise Unsupported("nesting")

    def _logic(self, part: Call, names: Mapping[str, str]) -> str:
        result = self._fresh()
        self._line(f"{result} = {self._boolean(part.arguments[0], names)}")
        is_and = part.function == "_&&_"
        for argument in part.arguments[1:]:
            self._line(f"if {result}:" if is_and else f"if not {result}:")
            self._nested()
            self._line(f"{result} = {self._boolean(argument, names)}")
            self._indent -= 1
        return result

    def _choice(self, part: Call, names: Mapping[str, str]) -> str:
        condition, first, second = part.arguments
        result = self._fresh()
        self._line(f"if {self._boolean(condition, names)}:")
        self._nested()
        self._line(f"{result} = {self.write(first, names)}")
        self._indent -= 1
        self._line("else:")
        self._nested()
        self._line(f"{result} = {self.write(second, names)}")
        self._indent -= 1
        return result

    def _optional_choice(self, part: Call, names: Mapping[str, str]) -> str:
        """`a.or(b)` and `a.orValue(b)`; the second one is worked out only where the first is absent."""
        assert part.target is not None, "both are methods"
        first = self.write(part.target, names)
        result = self._keep(first)
        self._line(f"if {result}.__class__ is not Optional: unusual()")
        self._line(f"if {result}.is_present:")
        self._nested()
        self._line(f"{result} = {result}.content" if part.function == "orValue" else "pass")
        self._indent -= 1
        self._line("else:")
        self._nested()
        self._line(f"{result} = {self.write(part.arguments[0], names)}")
        self._indent -= 1
        return result

    def _index(self, part: Call, names: Mapping[str, str]) -> str:
        of, index = part.arguments
        operand = self.write(of, names)
        if of.type.is_optional:
            return self._keep(f"optional_part({operand}, {self.write(index, names)})")
        is_text = isinstance(index, Literal) and isinstance(index.value, str)
        return self._part_of(operand, self.write(index, names), is_text=is_text)

    def _equality(self, part: Call, names: Mapping[str, str]) -> str:
        left, right = part.arguments
        written = [self.write(each, names) for each in (left, right)]
        is_plain = left.type == right.type and left.type.kind in _SAME_KIND
        is_text = isinstance(right, Literal) and isinstance(right.value, str)
        if is_plain:
            text = f"{written[0]} == {written[1]}"
        elif is_text:
            kept = written[0] if written[0].isidentifier() else self._keep(written[0])
            text = f"({kept} == {written[1]} if {kept}.__class__ is str else equal({kept}, {written[1]}))"
        else:
            text = f"equal({written[0]}, {written[1]})"
        return self._keep(text if part.function == "_==_" else f"not {text}")

    def _comparison(self, part: Call, names: Mapping[str, str]) -> str:
        left, right = part.arguments
        sign = _COMPARISONS[part.function]
        written = [self.write(each, names) for each in (left, right)]
        if left.type == right.type and left.type.kind in _SAME_KIND:
            return self._keep(f"{written[0]} {sign} {written[1]}")
        if isinstance(right, Literal) and right.value.__class__ is int:
            kept = written[0] if written[0].isidentifier() else self._keep(written[0])
            plain = f"{kept} {sign} {written[1]}"
            return self._keep(f"({plain} if {kept}.__class__ is int else compare({kept}, {written[1]}) {sign} 0)")
        return self._keep(f"compare({written[0]}, {written[1]}) {sign} 0")

    def _function(self, part: Call, names: Mapping[str, str]) -> str:
        """A call of the one implementation there is, or of the function that finds it."""
        function = self._functions[part.function]
        if not part.overloads:
            raise Unsupported(part.function)
        overload_id = part.overloads[0] if len(part.overloads) == 1 else None
        folded = self._folded(part, function, overload_id)
        if folded is not None:
            return folded
        written = [self.write(operand, names) for operand in part.operands]
        joined = ", ".join(written)
        if overload_id is not None and function.singleton is None and _is_static(part, function, overload_id):
            implementation = self._constant(function.overload(overload_id).implementation)
            return self._keep(f"{implementation}({joined})")
        return self._keep(f"{self._constant(function.resolve(overload_id))}([{joined}])")

    def _folded(self, part: Call, function: Function, overload_id: str | None) -> str | None:
        """The value of a call with literals only, such as `quantity("1Gi")`."""
        arguments = part.operands
        if not arguments or not all(isinstance(argument, Literal) for argument in arguments):
            return None
        try:
            value = function.resolve(overload_id)([each.value for each in arguments if isinstance(each, Literal)])
        except EvaluationError:
            raise Unsupported("a constant without a value") from None
        return self._constant(value)

    def _fold(self, part: Fold, names: Mapping[str, str]) -> str:
        if part.is_binding:
            bound = self._keep(self.write(part.initial, names))
            if part.initial.type.kind in (TypeKind.LIST, TypeKind.MAP) or part.initial.type.is_dyn:
                self._line(f"if not {bound} and {bound}.__class__ in (list, dict): unusual()")
            return self.write(part.result, {**names, part.accumulator: bound})
        if isinstance(part.initial, ListLiteral):
            return self._keep(f"list({self._loop(part, names, 'Accumulator()')})")
        if isinstance(part.initial, MapLiteral):
            return self._keep(f"dict({self._loop(part, names, 'AccumulatorMap()')})")
        return self._loop(part, names, self.write(part.initial, names))

    def _loop(self, part: Fold, names: Mapping[str, str], initial: str) -> str:
        over = self._keep(self.write(part.range, names))
        accumulated = self._keep(initial)
        self._line(f"if not isinstance({over}, (list, dict)): unusual()")
        first = self._fresh()
        inner = {**names, part.accumulator: accumulated, part.variable: first}
        if part.second_variable is None:
            self._line(f"for {first} in {over}:")
        else:
            second = inner[part.second_variable] = self._fresh()
            pairs = f"({over}.items() if isinstance({over}, dict) else enumerate({over}))"
            self._line(f"for {first}, {second} in {pairs}:")
        self._nested()
        self._line("steps += 1")
        self._line(f"if steps > {_LONGEST_LOOP}: unusual()")
        self._line(f"if not {self.write(part.condition, inner)}: break")
        self._line(f"{accumulated} = {self.write(part.step, inner)}")
        self._indent -= 1
        return self.write(part.result, {**names, part.accumulator: accumulated})


def _is_plain_entry(entry: MapEntry) -> bool:
    return not entry.is_optional and entry.key.type.kind in _SAME_KIND and entry.key.type.kind is not TypeKind.BYTES


def _unusual() -> None:
    raise _Unusual


def _is_static(part: Call, function: Function, overload_id: str) -> bool:
    """Whether the arguments are known to have the types of the overload."""
    chosen = function.overload(overload_id)
    if chosen.implementation is None:
        raise Unsupported(function.name)
    return all(map(_is_known, chosen.parameters, (operand.type for operand in part.operands)))


def _is_known(expected: Type, found: Type) -> bool:
    if expected.is_dyn or expected.kind is TypeKind.PARAMETER:
        return True
    return (
        not found.is_dyn and found.kind is expected.kind and all(map(_is_known, expected.parameters, found.parameters))
    )
