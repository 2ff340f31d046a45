"""Rules in CEL that a definition has for its custom resources: `x-kubernetes-validations`.

`compile_rules` makes a tree of places out of a structural schema, each with its compiled rules, and says what does not
compile; `SchemaPlace.check` evaluates them for an object, within the cost that the API server allows. A rule that reads
`oldSelf` holds for changes only. Values that an update leaves as they were may stay, even if they break a rule that
came later.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, JsonValue
from bayplan.apiserver.protocol.errors import Cause
from bayplan.cel import CompileError, CostExceeded, Environment, Program
from bayplan.cel.library import KUBERNETES
from bayplan.cel.syntax import paths_read
from bayplan.cel.times import parse_duration, parse_timestamp
from bayplan.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    object_type,
    optional_of,
)
from bayplan.cel.values import Optional, Value

__all__ = ["SchemaPlace", "compile_rules"]

RULES = "x-kubernetes-validations"
_MOST_FOR_A_RULE = 1_000_000
_MOST_FOR_AN_OBJECT = 10_000_000
_SCALARS = {"boolean": BOOL, "integer": INT, "number": DOUBLE}
_STRINGS = {"byte": BYTES, "date": TIMESTAMP, "date-time": TIMESTAMP, "duration": DURATION}
_ENVELOPE: Json = {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}}
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return"),
    )
)
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_ACCESSIBLE = re.compile(r"^[A-Za-z_./-][A-Za-z0-9_./-]*\Z")


@dataclass(frozen=True, slots=True)
class ValidationRule:
    """One compiled rule of a place."""

    declared: Json
    program: Program
    message: Program | None
    is_transition: bool

    @property
    def text(self) -> str:
        return str(self.declared.get("message") or self.declared.get("rule") or "").strip()


class CostBudget:
    """What the rules of one object may still cost."""

    def __init__(self) -> None:
        self._left = _MOST_FOR_AN_OBJECT

    def spend(self, cost: int) -> bool:
        """Whether the cost was within the budget."""
        self._left -= cost
        return self._left >= 0


@dataclass(slots=True)
class SchemaPlace:
    """A part of the schema: its rules, and the parts below that have any."""

    schema: Json
    rules: list[ValidationRule] = field(default_factory=list)
    properties: dict[str, SchemaPlace] = field(default_factory=dict)
    values: SchemaPlace | None = None
    items: SchemaPlace | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.rules or self.properties or self.values or self.items)

    def check(
        self, value: JsonValue, old: JsonValue = None, path: str = "", budget: CostBudget | None = None
    ) -> list[Cause]:
        """Every rule that the value breaks."""
        budget = budget or CostBudget()
        if value is None:
            return []
        causes = self._check_here(value, old, path, budget)
        for key, place, inner, before in self._below(value, old):
            causes += place.check(inner, before, f"{path}{key}".lstrip("."), budget)
        return causes

    def _below(self, value: JsonValue, old: JsonValue) -> Iterator[tuple[str, SchemaPlace, JsonValue, JsonValue]]:
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for name, inner in value.items():
                if name in self.properties:
                    yield f".{name}", self.properties[name], inner, before.get(name)
                elif self.values is not None and name not in (self.schema.get("properties") or {}):
                    yield f"[{name}]", self.values, inner, before.get(name)
        elif isinstance(value, list) and self.items is not None:
            keys = self.schema.get("x-kubernetes-list-map-keys") or ()
            known = {_identity(item, keys): item for item in old} if isinstance(old, list) and keys else {}
            for index, item in enumerate(value):
                yield f"[{index}]", self.items, item, known.get(_identity(item, keys)) if keys else None

    def _check_here(self, value: JsonValue, old: JsonValue, path: str, budget: CostBudget) -> list[Cause]:
        if not self.rules:
            return []
        new, before = to_value(value, self.schema), None if old is None else to_value(old, self.schema)
        causes: list[Cause] = []
        for rule in self.rules:
            if rule.is_transition and old is None and not rule.declared.get("optionalOldSelf"):
                continue
            if value == old and not rule.is_transition:
                continue
            variables: dict[str, Value] = {"self": new, "oldSelf": before}
            if rule.declared.get("optionalOldSelf"):
                variables["oldSelf"] = Optional.NONE if old is None else Optional(before, is_present=True)
            cause = self._judge(rule, variables, value, path, budget)
            if cause is not None:
                causes.append(cause)
        return causes

    def _judge(
        self, rule: ValidationRule, variables: dict[str, Value], value: JsonValue, path: str, budget: CostBudget
    ) -> Cause | None:
        where = path or "<nil>"
        kind = str(self.schema.get("type") or "")
        outcome = rule.program.evaluate(**variables)
        if not budget.spend(outcome.cost):
            detail = "validation failed due to running out of cost budget, no further validation rules will be run"
            return errors.invalid_value(where, kind, detail)
        if isinstance(outcome.error, CostExceeded):
            detail = "no further validation rules will be run due to call cost exceeds limit for rule"
            return errors.invalid_value(where, kind, f"'{outcome.error}': {detail}: {rule.text}")
        if outcome.error is not None:
            return errors.invalid_value(where, kind, f"{outcome.error} evaluating rule: {rule.text}")
        if outcome.value is True:
            return None
        return _broken(rule, variables, value, f"{path}{rule.declared.get('fieldPath') or ''}".lstrip(".") or "<nil>")


def _broken(rule: ValidationRule, variables: dict[str, Value], value: JsonValue, path: str) -> Cause:
    detail = _message(rule, variables)
    match rule.declared.get("reason"):
        case "FieldValueForbidden":
            return errors.forbidden_field(path, detail)
        case "FieldValueRequired":
            return errors.required(path, detail)
        case "FieldValueDuplicate":
            return Cause(path, f"Duplicate value: {detail}", "FieldValueDuplicate")
    if isinstance(value, (dict, list)):
        return Cause(path, f"Invalid value: {detail}")
    return errors.invalid_value(path, value, detail)


def _message(rule: ValidationRule, variables: dict[str, Value]) -> str:
    """What the rule's expression for the message says; its message, or the rule, where that says nothing."""
    if rule.message is not None:
        made = rule.message.evaluate(**variables).value
        if isinstance(made, str) and made.strip() and "\n" not in made:
            return made.strip()
    return rule.text if rule.declared.get("message") else f"failed rule: {rule.text}"


def compile_rules(schema: Json, path: str) -> tuple[SchemaPlace, list[Cause]]:
    """The rules of a whole resource, and what is wrong with them. `path` leads to the schema in the definition."""
    declared = schema | {"properties": _with_envelope(schema)}
    causes: list[Cause] = []
    return _place(declared, path, causes), causes


def _with_envelope(schema: Json) -> Json:
    text = {"type": "string"}
    return (schema.get("properties") or {}) | {"apiVersion": text, "kind": text, "metadata": _ENVELOPE}


def _place(schema: Json, path: str, causes: list[Cause]) -> SchemaPlace:
    place = SchemaPlace(schema)
    declared = schema.get(RULES)
    if isinstance(declared, list) and declared:
        fields: dict[str, dict[str, Type]] = {}
        whole = type_of(schema, "self", fields)
        for index, rule in enumerate(declared):
            compiled = _rule(rule, whole, fields, f"{path}.{RULES}[{index}]", causes)
            if compiled is not None:
                place.rules.append(compiled)
    for name, inner in (schema.get("properties") or {}).items():
        if isinstance(inner, dict) and not (below := _place(inner, f"{path}.properties[{name}]", causes)).is_empty:
            place.properties[name] = below
    for name, attribute in (("additionalProperties", "values"), ("items", "items")):
        inner = schema.get(name)
        if isinstance(inner, dict) and not (below := _place(inner, f"{path}.{name}", causes)).is_empty:
            setattr(place, attribute, below)
    return place


def _rule(
    declared: JsonValue, whole: Type, fields: dict[str, dict[str, Type]], path: str, causes: list[Cause]
) -> ValidationRule | None:
    text = str(declared.get("rule") or "").strip() if isinstance(declared, dict) else ""
    if not isinstance(declared, dict) or not text:
        causes.append(errors.required(f"{path}.rule", "rule is not specified"))
        return None
    old = optional_of(whole) if declared.get("optionalOldSelf") else whole
    variables = {"self": whole, "oldSelf": old}
    environment = Environment(variables, KUBERNETES, fields=fields, cost_limit=_MOST_FOR_A_RULE)
    message = None
    try:
        program = environment.compile(text, accept=_wants(BOOL, "cel expression must evaluate to a bool"))
    except CompileError as problem:
        causes.append(errors.invalid_value(f"{path}.rule", text, str(problem)))
        return None
    if declared.get("messageExpression"):
        try:
            accept = _wants(STRING, "messageExpression must evaluate to a string")
            message = environment.compile(str(declared["messageExpression"]), accept=accept)
        except CompileError as problem:
            where = f"{path}.messageExpression"
            causes.append(errors.invalid_value(where, str(declared["messageExpression"]), str(problem)))
    is_transition = bool(paths_read(program.expression, "oldSelf"))
    return ValidationRule(declared, program, message, is_transition)


def _wants(wanted: Type, refusal: str) -> Callable[[Type], str | None]:
    return lambda found: None if found in (wanted, DYN) else refusal


def type_of(schema: Json, name: str, fields: dict[str, dict[str, Type]]) -> Type:
    """The type of a schema in expressions; `fields` gets the fields of every object type on the way."""
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string") or not kind:
        return DYN
    if kind == "string":
        return _STRINGS.get(str(schema.get("format")), STRING)
    if kind == "array":
        return list_of(type_of(schema.get("items") or {}, f"{name}.@idx", fields))
    if kind != "object":
        return _SCALARS.get(str(kind), DYN)
    if isinstance(schema.get("additionalProperties"), dict):
        return map_of(STRING, type_of(schema["additionalProperties"], f"{name}.@elem", fields))
    properties = (
        _with_envelope(schema) if schema.get("x-kubernetes-embedded-resource") else schema.get("properties") or {}
    )
    fields[name] = {
        escaped: type_of(inner, f"{name}.{escaped}", fields)
        for key, inner in properties.items()
        if (escaped := escape(key)) is not None and isinstance(inner, dict)
    }
    return object_type(name)


def escape(name: str) -> str | None:
    """The name of a field in expressions, or None if they cannot reach it."""
    if not _ACCESSIBLE.match(name):
        return None
    if name in _RESERVED:
        return f"__{name}__"
    for found, written in _ESCAPES:
        name = name.replace(found, written)
    return name


def to_value(value: JsonValue, schema: Json) -> Value:
    """A JSON value as expressions see it."""
    kind = schema.get("type")
    if isinstance(value, dict):
        additional, properties = schema.get("additionalProperties"), schema.get("properties") or {}
        if isinstance(additional, dict):
            return {name: to_value(inner, additional) for name, inner in value.items()}
        return {
            escaped: to_value(inner, properties.get(name) or {})
            for name, inner in value.items()
            if inner is not None and (escaped := escape(name)) is not None
        }
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [to_value(item, items) for item in value]
    if kind == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind == "integer" and isinstance(value, float):
        return int(value)
    if kind == "string" and isinstance(value, str):
        return _text(value, str(schema.get("format")))
    return value


def _text(value: str, form: str) -> Value:
    """The value of a text with a format; the schema has refused texts that are not of it."""
    if form == "byte":
        try:
            return base64.b64decode(value)
        except ValueError:
            return value
    if form == "duration":
        return parse_duration(value) or value
    if form in ("date", "date-time"):
        return parse_timestamp(value if "T" in value else f"{value}T00:00:00Z") or value
    return value


def _identity(item: JsonValue, keys: list[str]) -> tuple[JsonValue, ...]:
    return tuple(str(item.get(key)) for key in keys) if isinstance(item, dict) else (str(item),)
