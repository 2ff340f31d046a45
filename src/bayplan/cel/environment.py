"""Environments and programs: which names an expression may use, and an expression that is ready to be evaluated.

An environment is made of declarations: variables with types, object types with fields, libraries. Compiling a text
parses, checks and plans it, and estimates its cost. A program is evaluated in one of two ways: `evaluate` counts the
exact cost and never raises; `value` is fast and raises `EvaluationError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from bayplan.cel.checker import Scope, check
from bayplan.cel.compiler import Unsupported, compile_to_python
from bayplan.cel.cost import Meter
from bayplan.cel.declarations import Constructor, Library, merge
from bayplan.cel.errors import CompileError, CostExceeded, EvaluationError, Issue, describe_issues
from bayplan.cel.estimate import estimate_cost
from bayplan.cel.interpreter import Stage
from bayplan.cel.library.standard import STANDARD
from bayplan.cel.parser import DEEPEST, parse
from bayplan.cel.planner import plan
from bayplan.cel.scopes import Variables
from bayplan.cel.sizes import Sizes
from bayplan.cel.syntax import Expression
from bayplan.cel.types import Type
from bayplan.cel.validation import validate
from bayplan.cel.values import Value

__all__ = ["Environment", "Evaluation", "Program"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What came out: a value or an error, and what it cost."""

    value: Value
    error: EvaluationError | None
    cost: int


class Environment:
    """What expressions are compiled against."""

    def __init__(
        self,
        variables: Mapping[str, Type],
        libraries: Iterable[Library] = (),
        *,
        fields: Mapping[str, Mapping[str, Type]] | None = None,
        constructor: Callable[[str], Constructor | None] = lambda name: None,
        sizes: Sizes | None = None,
        cost_limit: int | None = None,
        is_trusted: bool = False,
    ) -> None:
        """Declare an environment.

        `fields` has the fields of the object types by name, `constructor` finds the types whose values can be written
        as `Name{field: value}`, `sizes` the largest sizes of what variables lead to (for
        the estimate), `cost_limit` the cost at which evaluations are stopped. Whoever runs the program writes trusted
        expressions: they are evaluated fast even if their cost cannot be estimated.
        """
        bundle = (STANDARD, *libraries)
        self.variables = dict(variables)
        self.functions = merge(function for library in bundle for function in library.functions)
        self.macros = {key: macro for library in bundle for key, macro in library.macros.items()}
        named_types = {name: named for library in bundle for name, named in library.types.items()}
        self.cost_limit = cost_limit
        self.is_trusted = is_trusted
        self._scope = Scope(self.variables, self.functions, named_types, fields or {}, constructor)
        self._sizes = sizes or Sizes({})

    def fields(self, variable: str) -> Mapping[str, Type]:
        """The fields of a variable that is an object."""
        return self._scope.fields.get(self.variables[variable].name, {})

    def compile(self, text: str, *, accept: Callable[[Type], str | None] | None = None) -> Program:
        """The program of a text. Raises `CompileError` with every problem found.

        `accept` looks at the type of the whole expression and says what is wrong with it, if something is.
        """
        try:
            return self._compile(text.encode(errors="replace").decode(), accept)
        except RecursionError:
            issue = Issue(None, f"expression recursion limit exceeded: {DEEPEST}")
            raise CompileError("compilation failed: " + describe_issues(text, [issue]), [issue]) from None

    def _compile(self, text: str, accept: Callable[[Type], str | None] | None) -> Program:
        expression = self.check(text)
        refusal = None if accept is None else accept(expression.type)
        if refusal is not None:
            raise CompileError(refusal)
        step = plan(expression, self.functions)
        max_cost = estimate_cost(expression, self._sizes)
        fast = None
        if self.is_trusted or self.cost_limit is None or max_cost <= self.cost_limit:
            try:
                fast = compile_to_python(expression, self.variables, self.functions)
            except Unsupported:
                fast = None
        return Program(text, tuple(self.variables), expression, Engines(step, fast), max_cost, self.cost_limit)

    def check(self, text: str) -> Expression:
        """The parts of a text with their types."""
        issues: list[Issue] = []
        expression = parse(text, self.macros, issues)
        if expression is not None:
            check(expression, self._scope, issues)
        if expression is not None and not issues:
            validate(expression, self.functions, issues)
        if expression is None or issues:
            raise CompileError("compilation failed: " + describe_issues(text, issues), issues)
        return expression


@dataclass(frozen=True, slots=True)
class Engines:
    """The two ways of evaluating an expression; the fast one is absent where it cannot be had."""

    exact: Stage
    fast: Callable[..., Value] | None


class Program:
    """An expression that is ready to be evaluated."""

    def __init__(
        self,
        text: str,
        variables: tuple[str, ...],
        expression: Expression,
        engines: Engines,
        max_cost: int,
        cost_limit: int | None,
    ) -> None:
        self.text = text
        self.variables = variables
        self.expression = expression
        self.max_cost = max_cost
        """The most that an evaluation may cost, with variables of the declared sizes."""
        self.cost_limit = cost_limit
        self._step = engines.exact
        self._fast = engines.fast

    @property
    def result_type(self) -> Type:
        return self.expression.type

    def evaluate(self, /, **values: Value) -> Evaluation:
        """The value or error, and the exact cost."""
        meter = Meter(self.cost_limit)
        try:
            value = self._step.run(Variables(values), meter)
        except CostExceeded as error:
            return Evaluation(None, error, meter.cost)
        except RecursionError:
            return Evaluation(None, EvaluationError("the expression is nested too deeply"), meter.cost)
        if isinstance(value, EvaluationError):
            return Evaluation(None, value, meter.cost)
        return Evaluation(value, None, meter.cost)

    def value(self, /, **values: Value) -> Value:
        """The value alone. Raises `EvaluationError`."""
        return self.call(*(values[name] for name in self.variables))

    def call(self, *values: Value) -> Value:
        """As `value`, with the variables in the order of their declaration."""
        if self._fast is not None:
            try:
                return self._fast(*values)
            except (EvaluationError, RecursionError):
                pass
        evaluation = self.evaluate(**dict(zip(self.variables, values, strict=True)))
        if evaluation.error is not None:
            raise evaluation.error
        return evaluation.value
