"""Evaluation as the reference implementation does it: every step is charged, and errors are values.

Errors are values because operators look at both sides: `false && error` is false, and both sides of `error + x` are
evaluated and paid for. `bayplan.cel.compiler` makes faster programs for the common case, without costs and without
errors; whatever it meets that is not common ends up here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from bayplan.cel.cost import CHARGED_BY_RESULT, LIST_COST, MAP_COST, READ_COST, STRUCT_COST, CallCost, Meter
from bayplan.cel.declarations import Resolved
from bayplan.cel.errors import CostExceeded, EvaluationError
from bayplan.cel.lookup import qualify, qualify_if_present
from bayplan.cel.scopes import Frame, Scope
from bayplan.cel.types import Type
from bayplan.cel.values import Constructed, Optional, Value, equal, no_overload, reflected_name, show

__all__ = [
    "Alternative",
    "Attribute",
    "Called",
    "Constant",
    "ListMaker",
    "Logic",
    "Loop",
    "MapMaker",
    "Membership",
    "NotStrictlyFalse",
    "OptionalChoice",
    "Qualifier",
    "Stage",
    "StructMaker",
    "Varied",
    "equality",
    "inequality",
]


class Stage:
    """One step of a program: gives a value, or an `EvaluationError` in its place, and charges the meter."""

    __slots__ = ()

    @abstractmethod
    def run(self, scope: Scope, meter: Meter) -> Value: ...


class Constant(Stage):
    """A value known before; costs nothing."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def run(self, scope: Scope, meter: Meter) -> Value:
        return self.value


class Qualifier:
    """One step from a value to a part of it: a field, a key or an index, known before or worked out."""

    __slots__ = ("is_optional", "is_test", "key", "step")

    def __init__(
        self, key: Value, step: Stage | None = None, *, is_optional: bool = False, is_test: bool = False
    ) -> None:
        self.key = key
        self.step = step
        self.is_optional = is_optional
        self.is_test = is_test

    def resolve_key(self, scope: Scope, meter: Meter) -> Value:
        if self.step is None:
            return self.key
        return self.step.resolve(scope, meter) if isinstance(self.step, Attribute) else self.step.run(scope, meter)


class Attribute(Stage):
    """A variable, a value or a choice between two attributes, and the way from there to a part of it."""

    __slots__ = ("base", "is_test", "name", "qualifiers")

    def __init__(self, name: str = "", base: Stage | None = None) -> None:
        self.name = name
        self.base = base
        self.qualifiers: list[Qualifier] = []
        self.is_test = False

    def add(self, qualifier: Qualifier) -> None:
        self.qualifiers.append(qualifier)

    def run(self, scope: Scope, meter: Meter) -> Value:
        if not self.qualifiers and self.base is None:
            meter.charge(READ_COST)
            return scope.lookup(self.name)
        value = self.resolve(scope, meter)
        if self.is_test:
            return value.is_present if isinstance(value, Optional) else value
        meter.charge(READ_COST)
        return value

    def resolve(self, scope: Scope, meter: Meter) -> Value:
        """The value without the charge for reading it, which only qualifiers cost."""
        value = scope.lookup(self.name) if self.base is None else self.base.run(scope, meter)
        if not self.qualifiers or isinstance(value, EvaluationError):
            return value
        return self._follow(value, scope, meter)

    def _follow(self, value: Value, scope: Scope, meter: Meter) -> Value:
        is_optional = isinstance(value, Optional)
        if isinstance(value, Optional):
            if not value.is_present:
                return value
            value = value.content
        for qualifier in self.qualifiers:
            is_optional = is_optional or qualifier.is_optional
            is_charged = not is_optional or qualifier.is_test
            try:
                key = qualifier.resolve_key(scope, meter)
                if isinstance(key, EvaluationError):
                    raise key
                if is_charged and not qualifier.is_test:
                    value = qualify(value, key)
                    is_present = True
                else:
                    is_present, value = qualify_if_present(value, key)
            except CostExceeded:
                raise
            except EvaluationError as error:
                meter.charge(READ_COST if is_charged else 0)
                return error
            meter.charge(READ_COST if is_charged or is_present else 0)
            if qualifier.is_test and not is_optional:
                return is_present
            if not is_present:
                return Optional.NONE
        return Optional(value) if is_optional else value


class Alternative(Attribute):
    """`condition ? first : second`; costs what its parts cost, of names only the way to a part of them."""

    __slots__ = ("condition", "first", "second")

    def __init__(self, condition: Stage, first: Stage, second: Stage) -> None:
        super().__init__()
        self.condition = condition
        self.first = first if isinstance(first, Attribute) else Attribute(base=first)
        self.second = second if isinstance(second, Attribute) else Attribute(base=second)

    def add(self, qualifier: Qualifier) -> None:
        self.first.add(qualifier)
        self.second.add(qualifier)

    def run(self, scope: Scope, meter: Meter) -> Value:
        value = self.resolve(scope, meter)
        if self.is_test:
            meter.cost -= READ_COST
            if isinstance(value, Optional):
                return value.is_present
        return value

    def resolve(self, scope: Scope, meter: Meter) -> Value:
        condition = self.condition.run(scope, meter)
        if condition is True:
            return self.first.resolve(scope, meter)
        if condition is False:
            return self.second.resolve(scope, meter)
        return condition if isinstance(condition, EvaluationError) else no_overload()


class Logic(Stage):
    """`&&` or `||`: the deciding side wins over an error on the other one; costs nothing of its own."""

    __slots__ = ("deciding", "terms")

    def __init__(self, terms: Sequence[Stage], *, deciding: bool) -> None:
        self.terms = tuple(terms)
        self.deciding = deciding

    def run(self, scope: Scope, meter: Meter) -> Value:
        error: EvaluationError | None = None
        for term in self.terms:
            value = term.run(scope, meter)
            if value is self.deciding:
                return value
            if error is None and value.__class__ is not bool:
                error = value if isinstance(value, EvaluationError) else no_overload()
        return (not self.deciding) if error is None else error


class Called(Stage):
    """A call with at most two arguments: all are evaluated, even if one is an error.

    It is charged before it works, so that an expensive call never starts, unless the charge follows from its result.
    """

    __slots__ = ("arguments", "call", "cost", "is_charged_by_result")

    def __init__(self, call: Resolved, arguments: Sequence[Stage], cost: CallCost) -> None:
        self.call = call
        self.arguments = tuple(arguments)
        self.cost = cost
        self.is_charged_by_result = cost in CHARGED_BY_RESULT

    def run(self, scope: Scope, meter: Meter) -> Value:
        values = [argument.run(scope, meter) for argument in self.arguments]
        for value in values:
            if isinstance(value, EvaluationError):
                meter.charge(self.cost(values, value))
                return value
        return self.finish(values, meter)

    def finish(self, values: list[Value], meter: Meter) -> Value:
        if not self.is_charged_by_result:
            meter.charge(self.cost(values, None))
        try:
            result = self.call(values)
        except CostExceeded:
            raise
        except EvaluationError as problem:
            result = problem
        if self.is_charged_by_result:
            meter.charge(self.cost(values, result))
        return result


class Varied(Called):
    """A call with more arguments, or whose function is chosen by the values: stops at the first error, uncharged."""

    __slots__ = ()

    def run(self, scope: Scope, meter: Meter) -> Value:
        values: list[Value] = []
        for position, argument in enumerate(self.arguments):
            value = argument.run(scope, meter)
            values.append(value)
            if isinstance(value, EvaluationError):
                if position == len(self.arguments) - 1:
                    meter.charge(self.cost(values, value))
                return value
        return self.finish(values, meter)


def equality(values: Sequence[Value]) -> Value:
    """The `==` of two values."""
    return equal(*values)


def inequality(values: Sequence[Value]) -> Value:
    """The `!=` of two values; those that cannot be compared differ."""
    try:
        return not equal(*values)
    except EvaluationError:
        return True


class NotStrictlyFalse(Stage):
    """Whether a loop goes on: a boolean as it is, and true for errors."""

    __slots__ = ("argument",)

    def __init__(self, argument: Stage) -> None:
        self.argument = argument

    def run(self, scope: Scope, meter: Meter) -> Value:
        value = self.argument.run(scope, meter)
        meter.charge(1)
        return value if value.__class__ is bool else True


class OptionalChoice(Stage):
    """`a.or(b)` and `a.orValue(b)`: the second one is evaluated only where the first is absent; free of charge."""

    __slots__ = ("first", "is_unwrapped", "second")

    def __init__(self, first: Stage, second: Stage, *, is_unwrapped: bool) -> None:
        self.first = first
        self.second = second
        self.is_unwrapped = is_unwrapped

    def run(self, scope: Scope, meter: Meter) -> Value:
        value = self.first.run(scope, meter)
        if not isinstance(value, Optional):
            return value
        if value.is_present:
            return value.content if self.is_unwrapped else value
        return self.second.run(scope, meter)


class Membership(Stage):
    """`x in [1, 2, 3]` with constants: a look into a set, free of charge."""

    __slots__ = ("argument", "members")

    def __init__(self, argument: Stage, members: Sequence[Value]) -> None:
        self.argument = argument
        self.members = frozenset((member.__class__ is bool, member) for member in members)

    def run(self, scope: Scope, meter: Meter) -> Value:
        value = self.argument.run(scope, meter)
        if isinstance(value, EvaluationError):
            return value
        return isinstance(value, bool | int | float | str) and (value.__class__ is bool, value) in self.members


class ListMaker(Stage):
    __slots__ = ("elements", "optional")

    def __init__(self, elements: Sequence[Stage], optional: frozenset[int]) -> None:
        self.elements = tuple(elements)
        self.optional = optional

    def run(self, scope: Scope, meter: Meter) -> Value:
        values: list[Value] = []
        result: Value = values
        for position, element in enumerate(self.elements):
            value = element.run(scope, meter)
            if position in self.optional and not isinstance(value, EvaluationError):
                if not isinstance(value, Optional):
                    shown = _shown(value)
                    value = EvaluationError(f"cannot initialize optional list element from non-optional value {shown}")
                elif not value.is_present:
                    continue
                else:
                    value = value.content
            if isinstance(value, EvaluationError):
                result = value
                break
            values.append(value)
        meter.charge(LIST_COST)
        return result


class MapMaker(Stage):
    __slots__ = ("entries",)

    def __init__(self, entries: Sequence[tuple[Stage, Stage, bool]]) -> None:
        self.entries = tuple(entries)

    def run(self, scope: Scope, meter: Meter) -> Value:
        result = self._make(scope, meter)
        meter.charge(MAP_COST)
        return result

    def _make(self, scope: Scope, meter: Meter) -> Value:
        made: dict[Value, Value] = {}
        for key_step, value_step, is_optional in self.entries:
            key = key_step.run(scope, meter)
            if isinstance(key, EvaluationError):
                return key
            value = value_step.run(scope, meter)
            if isinstance(value, EvaluationError):
                return value
            if is_optional:
                if not isinstance(value, Optional):
                    message = f"cannot initialize optional entry '{show(key)}' from non-optional value {_shown(value)}"
                    return EvaluationError(message)
                if not value.is_present:
                    made.pop(key, None)
                    continue
                value = value.content
            if not isinstance(key, bool | int | float | str | None):
                return EvaluationError(f"unsupported key type: {reflected_name(key)}")
            made[key] = value
        return made


class StructMaker(Stage):
    """`Name{field: value}`."""

    __slots__ = ("fields", "type")

    def __init__(self, made: Type, fields: Sequence[tuple[str, Stage, bool]]) -> None:
        self.type = made
        self.fields = tuple(fields)

    def run(self, scope: Scope, meter: Meter) -> Value:
        result = self._make(scope, meter)
        meter.charge(STRUCT_COST)
        return result

    def _make(self, scope: Scope, meter: Meter) -> Value:
        made: dict[str, Value] = {}
        for name, step, is_optional in self.fields:
            value = step.run(scope, meter)
            if isinstance(value, EvaluationError):
                return value
            if is_optional:
                if not isinstance(value, Optional):
                    message = f"cannot initialize optional entry '{name}' from non-optional value {_shown(value)}"
                    return EvaluationError(message)
                if not value.is_present:
                    continue
                value = value.content
            made[name] = value
        return Constructed(self.type, made)


class Loop(Stage):
    """A fold over a list or map. It costs what its parts cost, each time they run."""

    __slots__ = ("accumulator", "condition", "initial", "names", "range", "result", "step")

    def __init__(
        self, names: tuple[str, str | None], accumulator: str, parts: tuple[Stage, Stage, Stage, Stage, Stage]
    ) -> None:
        self.names = names
        self.accumulator = accumulator
        self.range, self.initial, self.condition, self.step, self.result = parts

    def run(self, scope: Scope, meter: Meter) -> Value:
        over = self.range.run(scope, meter)
        if isinstance(over, EvaluationError):
            return over
        if not isinstance(over, list | dict):
            if self.names[1] is None:
                return EvaluationError(f"got '{reflected_name(over)}', expected iterable type")
            return EvaluationError(f"unsupported comprehension range type: {reflected_name(over)}")
        frame = Frame(scope, self.accumulator, self.names, lambda outer: self.initial.run(outer, meter))
        entries = list(over.items()) if isinstance(over, dict) else list(enumerate(over))
        for key, value in entries:
            if self.names[1] is not None:
                frame.first, frame.second = key, value
            else:
                frame.first = key if isinstance(over, dict) else value
            if self.condition.run(frame, meter) is False:
                break
            frame.advance(self.step.run(frame, meter))
        frame.is_done = True
        return frame.finish(self.result.run(frame, meter))


def _shown(value: Value) -> str:
    """A value by itself as Go prints it, where null is the number of its enumeration."""
    return "0" if value is None else show(value)
