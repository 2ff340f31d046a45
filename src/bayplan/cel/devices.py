"""Expressions that select devices, as resource claims and device classes have them.

The variable `device` has the driver, whether it may be allocated several times, and attributes and capacities by
domain. A domain that a device has nothing in is an empty map, so that only a name that is read from it is missing. This
is the environment of Kubernetes 1.36; `bayplan.cel.environment` is independent of devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from bayplan.api.quantity import binary_quantity
from bayplan.cel.declarations import Library, Overload, function
from bayplan.cel.environment import Environment, Evaluation, Program
from bayplan.cel.errors import EvaluationError
from bayplan.cel.library import KUBERNETES
from bayplan.cel.library.quantity import QUANTITY, Quantity, parse_quantity
from bayplan.cel.library.semver import parse_semver
from bayplan.cel.sizes import Sizes
from bayplan.cel.syntax import paths_read
from bayplan.cel.tokens import TokenKind, tokenize
from bayplan.cel.types import ANY, BOOL, DYN, STRING, Type, map_of, object_type
from bayplan.cel.values import DefaultMap, Map, Value, is_equal, show, type_name

__all__ = [
    "MAX_COST",
    "MAX_LENGTH",
    "CompiledSelector",
    "DeviceVariable",
    "compile_selector",
    "device_environment",
    "device_variable",
]

MAX_COST = 1_000_000
"""What evaluating a selector may cost; the API server refuses those that are estimated to cost more."""
MAX_LENGTH = 10 * 1024
"""The longest expression that the API server accepts."""

_DEVICE = object_type("kubernetes.DRADevice")
_LONGEST_DOMAIN, _LONGEST_ID, _LONGEST_DRIVER, _LONGEST_VALUE = 63, 32, 63, 64
_MOST_ATTRIBUTES, _MOST_VALUES = 32, 48
_REMEMBERED = 4096

AttributeValue = Mapping[str, object]
"""An attribute as the API has it: `{"string": "a100"}`, `{"int": 4}`, `{"bool": true}`, `{"version": "1.2.0"}`."""


class DeviceVariable:
    """A device as selectors see it."""

    __slots__ = ("_key", "error", "value")

    def __init__(self, value: Map, error: EvaluationError | None) -> None:
        self.value = value
        self.error = error
        """Why no selector can be evaluated for the device, if that is so."""
        self._key: str | None = None

    @property
    def key(self) -> str:
        """The same for devices that no selector can tell apart."""
        if self._key is None:
            self._key = str(self.error) if self.error is not None else _content(self.value)
        return self._key


def _content(value: Value) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(sorted(f"{key!r}:{_content(entry)}" for key, entry in value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_content, value)) + "]"
    if isinstance(value, Quantity):
        return f"quantity {value.unscaled} {value.exponent} {value.is_wide}"
    return f"{type_name(value)} {value!s}"


def device_variable(
    *,
    driver: str,
    attributes: Mapping[str, AttributeValue] | None = None,
    capacity: Mapping[str, object] | None = None,
    allow_multiple_allocations: bool | None = None,
    list_attributes: bool = False,
) -> DeviceVariable:
    """The variable of a device. Names without a domain are in the driver's.

    Capacities are quantities, or objects with a `value` that is one. An attribute that cannot be read makes every
    selector fail for the device, rather than match something else.
    """
    error: EvaluationError | None = None
    by_domain = DefaultMap()
    for name, attribute in (attributes or {}).items():
        try:
            _put(by_domain, driver, name, _attribute(attribute, lists=list_attributes))
        except EvaluationError as problem:
            error = error or EvaluationError(f"attribute {name}: {problem}")
    capacities = DefaultMap()
    for name, amount in (capacity or {}).items():
        text = amount.get("value") if isinstance(amount, Mapping) else amount
        try:
            _put(capacities, driver, name, parse_quantity(str(text)))
        except EvaluationError as problem:
            error = error or EvaluationError(f"capacity {name}: {problem}")
    value: Map = {
        "driver": _clean(driver),
        "allowMultipleAllocations": bool(allow_multiple_allocations),
        "attributes": by_domain,
        "capacity": capacities,
    }
    return DeviceVariable(value, error)


def _put(by_domain: Map, driver: str, name: str, value: Value) -> None:
    domain, slash, identifier = name.partition("/")
    if not slash:
        domain, identifier = driver, name
    inner = by_domain.setdefault(_clean(domain), {})
    assert isinstance(inner, dict), "domains are maps"
    inner[_clean(identifier)] = value


def _attribute(attribute: AttributeValue, *, lists: bool) -> Value:
    for field, read in _FIELDS.items():
        values = attribute.get(f"{field}s") if lists else None
        if isinstance(values, list):
            return [read(value) for value in values]
    for field, read in _FIELDS.items():
        value = attribute.get(field)
        if value is not None:
            return read(value)
    raise EvaluationError("unsupported attribute value")


def _int(value: object) -> Value:
    if value.__class__ is not int:
        raise EvaluationError("unsupported attribute value")
    return value


def _bool(value: object) -> Value:
    if value.__class__ is not bool:
        raise EvaluationError("unsupported attribute value")
    return value


def _clean(text: str) -> str:
    """Text without halves of characters, which nothing could be compared with."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _string(value: object) -> Value:
    if not isinstance(value, str):
        raise EvaluationError("unsupported attribute value")
    return _clean(value)


def _version(value: object) -> Value:
    try:
        return parse_semver(str(_string(value)))
    except EvaluationError as problem:
        raise EvaluationError(f"parse semantic version: {problem}") from None


_FIELDS = {"int": _int, "bool": _bool, "string": _string, "version": _version}


class CompiledSelector:
    """A compiled selector."""

    __slots__ = ("_environment", "_program")

    def __init__(self, program: Program, environment: Environment) -> None:
        self._program = program
        self._environment = environment

    @property
    def expression(self) -> str:
        return self._program.text

    @property
    def max_cost(self) -> int:
        """The estimate of the most that an evaluation can cost."""
        return self._program.max_cost

    def matches(self, device: DeviceVariable) -> bool:
        """Whether the device is selected. Raises `EvaluationError`."""
        if device.error is not None:
            raise device.error
        value = self._program.call(device.value)
        if value is True or value is False:
            return value
        raise _not_boolean(value)

    def evaluate(self, device: DeviceVariable) -> Evaluation:
        """As `matches`, with the exact cost and without raising."""
        if device.error is not None:
            return Evaluation(None, device.error, 0)
        evaluation = self._program.evaluate(device=device.value)
        if evaluation.error is None and evaluation.value.__class__ is not bool:
            return Evaluation(None, _not_boolean(evaluation.value), evaluation.cost)
        return evaluation

    def terms(self) -> list[CompiledSelector]:
        """The terms that `&&` joins, as selectors of their own, to tell which one refuses a device."""
        texts = _conjuncts(self.expression)
        if len(texts) < 2:
            return [self]
        return [CompiledSelector(self._environment.compile(text), self._environment) for text in texts]

    def false_term(self, device: DeviceVariable) -> CompiledSelector:
        """The first term that is false of a device that is not selected; the whole where no single one is."""
        for term in self.terms():
            evaluation = term.evaluate(device)
            if evaluation.error is None and evaluation.value is False:
                return self if term is self else term.false_term(device)
        return self

    def readings(self, device: DeviceVariable) -> dict[str, str]:
        """What the expression reads of the device, as it would be written, and the value that the device has there."""
        found: dict[str, str] = {}
        for path in sorted(paths_read(self._program.expression, "device")):
            value: Value = device.value
            for key in path:
                value = value.get(key, _ABSENT) if isinstance(value, dict) else _ABSENT
            if path and not isinstance(value, dict):
                found["device" + "".join(map(_step, path))] = _shown(value)
        return found


_ABSENT = "absent"


def _step(key: str) -> str:
    return f".{key}" if key.isidentifier() else f'["{key}"]'


def _shown(value: Value) -> str:
    if isinstance(value, Quantity) and (whole := value.whole()) is not None:
        return binary_quantity(whole)
    return f'"{value}"' if isinstance(value, str) and value is not _ABSENT else show(value)


def _conjuncts(text: str) -> list[str]:
    """The texts between the `&&` of an expression that stand in no parentheses; none where it is no conjunction."""
    text = _without_outer_parentheses(text.strip())
    depth, start = 0, 0
    found: list[str] = []
    for token in tokenize(text, []):
        if token.kind is TokenKind.SIGN:
            depth += (token.text in "([{") - (token.text in ")]}")
            if not depth and token.text in ("||", "?"):
                return []
            if not depth and token.text == "&&":
                found.append(text[start : token.offset].strip())
                start = token.offset + 2
    return [*found, text[start:].strip()] if found else []


def _without_outer_parentheses(text: str) -> str:
    while text.startswith("("):
        depth = 0
        for token in tokenize(text, []):
            if token.kind is TokenKind.SIGN:
                depth += (token.text in "([{") - (token.text in ")]}")
                if not depth:
                    break
        if token.offset != len(text) - 1:
            break
        text = text[1:-1].strip()
    return text


def _not_boolean(value: Value) -> EvaluationError:
    name = type_name(value)
    reason = _NO_BOOLEAN.get(name, f"type conversion error from {name} to 'bool'")
    return EvaluationError(f"CEL result of type {name} could not be converted to bool: {reason}")


_NO_BOOLEAN = {
    "string": "unsupported native conversion from string to 'bool'",
    "int": "unsupported type conversion from 'int' to bool",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
}


def compile_selector(
    expression: str, *, consumable_capacity: bool = True, list_attributes: bool = False, is_new: bool = False
) -> CompiledSelector:
    """The selector of an expression, remembered by its text. Raises `CompileError`.

    `consumable_capacity` gives devices the field `allowMultipleAllocations`, `list_attributes` lets attributes be
    lists, with the function `includes`; both are features of Kubernetes. An expression that is stored already may use
    both names, whatever the features; one that is new may not.
    """
    return _compile(expression, consumable_capacity, list_attributes, is_new)


@lru_cache(maxsize=_REMEMBERED)
def _compile(expression: str, consumable_capacity: bool, list_attributes: bool, is_new: bool) -> CompiledSelector:
    accepted = (BOOL, ANY, DYN) if list_attributes else (BOOL, ANY)

    def accept(result: Type) -> str | None:
        return None if result in accepted else f"must evaluate to bool or the unknown type, not {result}"

    environment = device_environment(
        consumable_capacity=consumable_capacity, list_attributes=list_attributes, is_new=is_new
    )
    return CompiledSelector(environment.compile(expression, accept=accept), environment)


@lru_cache(maxsize=8)
def device_environment(
    *, consumable_capacity: bool = True, list_attributes: bool = False, is_new: bool = False
) -> Environment:
    """The environment of selectors; the settings are those of `compile_selector`."""
    attribute = DYN if list_attributes else ANY
    fields: dict[str, Type] = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, attribute)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    if consumable_capacity or not is_new:
        fields["allowMultipleAllocations"] = BOOL
    libraries = (*KUBERNETES, _INCLUDES) if list_attributes or not is_new else KUBERNETES
    return Environment(
        {"device": _DEVICE},
        libraries,
        fields={_DEVICE.name: fields},
        sizes=_sizes(list_attributes),
        cost_limit=MAX_COST,
    )


def _sizes(list_attributes: bool) -> Sizes:
    value = max(_LONGEST_VALUE, _MOST_VALUES) if list_attributes else _LONGEST_VALUE
    largest = {("device", "driver"): _LONGEST_DRIVER, ("device", "allowMultipleAllocations"): 1, ("device",): 0}
    for field in ("attributes", "capacity"):
        base = ("device", field)
        largest |= {base: _MOST_ATTRIBUTES, (*base, "@keys"): _LONGEST_DOMAIN, (*base, "@values"): _MOST_ATTRIBUTES}
        largest |= {(*base, "@values", "@keys"): _LONGEST_ID}
    largest |= {("device", "attributes", "@values", "@values"): value, ("device", "attributes", "@values", "*"): value}
    largest |= {("device", "capacity", "@values", "@values"): 0}
    return Sizes(largest, {_INCLUDES_ID: _MOST_VALUES})


def _includes(target: Value, sought: Value) -> Value:
    """Whether a list has a value, or a single value is it."""
    if not isinstance(target, list):
        return is_equal(target, sought)
    for position, element in enumerate(target):
        if position >= _MOST_VALUES:
            raise EvaluationError(f"'includes' function cannot be applied to lists longer than {_MOST_VALUES} values")
        if is_equal(element, sought):
            return True
    return False


_INCLUDES_ID = "dra_includes_dyn_dyn"
_INCLUDES = Library(
    "devices", (function("includes", Overload(_INCLUDES_ID, (DYN, DYN), BOOL, _includes, is_member=True)),)
)
