"""Label and field selectors as they come in a query string, compiled to predicates.

A label selector is a list of requirements on a map of labels; a field selector compares a few declared fields.
Selectors inside objects (LabelSelector) are matched by `matches_label_selector`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bayplan.apiserver.protocol.encoding import Json

Labels = Mapping[str, str]
LabelPredicate = Callable[[Labels], bool]

_REQUIREMENT = re.compile(
    r"\s*(?:(?P<set_key>[^\s,=!<>()]+)\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\)"
    r"|(?P<key>[^\s,=!<>()]+)\s*(?P<operator>==|=|!=|<|>)\s*(?P<value>[^\s,=!<>()]*)"
    r"|!\s*(?P<absent>[^\s,=!<>()]+)"
    r"|(?P<present>[^\s,=!<>()]+))\s*"
)
_SUBDOMAIN = re.compile(r"^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\Z")
_LABEL_NAME = re.compile(r"^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_LABEL_VALUE = re.compile(r"^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")

_INTEGER = re.compile(r"^[+-]?[0-9]{1,19}\Z")
_ESCAPED = re.compile(r"\\([\\,=])")
_MOST_PREFIX, _MOST_KEY = 253, 317


class BadSelector(ValueError):
    """The text is no selector; the message says why."""


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One clause of a label selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        if self.operator == "in":
            return value is not None and value in self.values
        if self.operator == "notin":
            return value is None or value not in self.values
        if self.operator == "exists":
            return value is not None
        if self.operator == "absent":
            return value is None
        return _compares(value, self.operator, self.values[0])

    def predicate(self) -> LabelPredicate:
        """`matches`, or something faster for the plain case."""
        if self.operator != "in" or len(self.values) > 1:
            return self.matches
        key, value = self.key, self.values[0]
        return lambda labels: labels.get(key) == value


def _compares(value: str | None, operator: str, bound: str) -> bool:
    try:
        number, limit = int(value or ""), int(bound)
    except ValueError:
        return False
    return number > limit if operator == "gt" else number < limit


def parse_label_selector(text: str) -> LabelPredicate | None:
    """A predicate on labels, or None when everything matches."""
    requirements = parse_requirements(text)
    if not requirements:
        return None
    if len(requirements) == 1:
        return requirements[0].predicate()
    return lambda labels: all(requirement.matches(labels) for requirement in requirements)


def parse_requirements(text: str) -> list[LabelRequirement]:
    requirements: list[LabelRequirement] = []
    position = 0
    while position < len(text):
        match = _REQUIREMENT.match(text, position)
        if match is None or match.end() == position:
            if not text[position:].strip():
                break
            raise BadSelector(f"unable to parse requirement: found '{text[position:]}', expected: identifier")
        requirements.append(_requirement(match))
        position = match.end()
        if position < len(text):
            if text[position] != ",":
                raise BadSelector(f"unable to parse requirement: found '{text[position:]}', expected: ',' or 'end'")
            position += 1
            if not text[position:].strip():
                raise BadSelector("found '', expected: identifier after ','")
    return requirements


def _requirement(match: re.Match[str]) -> LabelRequirement:
    if match["set_key"]:
        values = tuple(sorted(value.strip() for value in match["values"].split(",")))
        return _checked(LabelRequirement(match["set_key"], match["set"], values))
    if match["absent"]:
        return _checked(LabelRequirement(match["absent"], "absent"))
    if match["present"]:
        return _checked(LabelRequirement(match["present"], "exists"))
    operator = {"=": "in", "==": "in", "!=": "notin", "<": "lt", ">": "gt"}[match["operator"]]
    return _checked(LabelRequirement(match["key"], operator, (match["value"],)))


def _checked(requirement: LabelRequirement) -> LabelRequirement:
    if not is_label_key(requirement.key):
        raise BadSelector(f'unable to parse requirement: <nil>: Invalid value: "{requirement.key}": not a label key')
    if requirement.operator in ("gt", "lt") and not _INTEGER.match(requirement.values[0]):
        problem = f"Invalid value: \"{requirement.values[0]}\": for 'Gt', 'Lt' operators, the value must be an integer"
        raise BadSelector(f"unable to parse requirement: values[0]: {problem}")
    for value in requirement.values:
        if not _LABEL_VALUE.match(value):
            raise BadSelector(f'unable to parse requirement: values[0][{requirement.key}]: Invalid value: "{value}"')
    return requirement


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One clause of a field selector."""

    field: str
    equal: bool
    value: str


def parse_field_selector(text: str) -> list[FieldRequirement]:
    """The clauses of a field selector; the caller knows which fields exist."""
    found = []
    for clause in _split_clauses(text):
        match = re.match(r"^([^=!]+?)(==|=|!=)(.*)$", clause, re.DOTALL)
        if match is None:
            raise BadSelector(f"invalid selector: '{text}'; can't understand '{clause}'")
        if found_escape := re.search(r"\\.?", _ESCAPED.sub("", match[3])):
            raise BadSelector(f"invalid field selector: invalid escape sequence: {found_escape[0]}")
        value = _ESCAPED.sub(r"\1", match[3])
        found.append(FieldRequirement(match[1], match[2] != "!=", value))
    return found


def _split_clauses(text: str) -> list[str]:
    return [clause for clause in re.split(r"(?<!\\),", text) if clause]


def matches_label_selector(selector: Json | None, labels: Labels) -> bool:
    """Whether a LabelSelector object selects the labels. No selector selects nothing, an empty one everything."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_expression_matches(expression, labels) for expression in selector.get("matchExpressions") or [])


_EXPRESSION_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}


def _expression_matches(expression: Json, labels: Labels) -> bool:
    operator = _EXPRESSION_OPERATORS.get(expression.get("operator", ""))
    if operator is None:
        return False
    return LabelRequirement(expression.get("key", ""), operator, tuple(expression.get("values") or ())).matches(labels)


def selector_text(selector: Json, *, is_plain: bool = False) -> str:
    """A LabelSelector object, or a plain map of labels, as it would be written in a query."""
    labels = selector if is_plain else selector.get("matchLabels") or {}
    clauses = [(key, f"{key}={value}") for key, value in labels.items()]
    for expression in () if is_plain else selector.get("matchExpressions") or ():
        key, operator = expression.get("key", ""), expression.get("operator", "")
        values = f"({','.join(sorted(expression.get('values') or ()))})"
        words = {"In": f"{key} in {values}", "NotIn": f"{key} notin {values}", "DoesNotExist": f"!{key}"}
        clauses.append((key, words.get(operator, key)))
    return ",".join(text for _, text in sorted(clauses, key=lambda clause: clause[0]))


def is_label_key(text: str) -> bool:
    """Whether a text is a qualified name: a name, and maybe a DNS subdomain and a slash before it."""
    return len(text) <= _MOST_KEY and _is_qualified_name(text)


@functools.lru_cache(maxsize=4096)
def _is_qualified_name(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    if slash and (len(prefix) > _MOST_PREFIX or _SUBDOMAIN.match(prefix) is None):
        return False
    return _LABEL_NAME.match(name) is not None


def is_label_value(text: str) -> bool:
    return _LABEL_VALUE.match(text) is not None
