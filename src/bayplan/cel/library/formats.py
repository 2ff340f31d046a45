"""Named formats of Kubernetes: `format.dns1123Label().validate(name)` is absent, or a list of what is wrong.

`uri` is not among them: what it accepts is defined by the URL parser of Go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

from bayplan.cel.declarations import Library, function, member, overload
from bayplan.cel.library.regular_expressions import compiled
from bayplan.cel.types import STRING, list_of, object_type, optional_of
from bayplan.cel.values import Optional, Special, Value, no_overload

__all__ = ["FORMATS", "Format"]

_FORMAT = object_type("kubernetes.NamedFormat")
_LABEL, _LABEL_1035 = "[a-z0-9]([-a-z0-9]*[a-z0-9])?", "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME, _VALUE = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_CHARACTERS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_LOWER = "must consist of lower case alphanumeric characters"
_ENDS = "must start and end with an alphanumeric character"


class Format(Special):
    """A format with its name."""

    __slots__ = ("check", "name", "pattern_size")
    type = _FORMAT
    reflected_name = "cel.Format"
    has_fixed_cost = True

    def __init__(self, name: str, check: Callable[[str], list[str]], pattern_size: int) -> None:
        """`pattern_size` is the length of the longest pattern that a check may use; it decides what the check costs."""
        self.name = name
        self.check = check
        self.pattern_size = pattern_size

    def equals(self, other: Value) -> bool:
        if not isinstance(other, Format):
            raise no_overload()
        return self.name == other.name

    def __str__(self) -> str:
        return self.name


def _mismatch(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def _too_long(text: str, most: int, unit: str = "characters") -> list[str]:
    return [f"must be no more than {most} {unit}"] if len(text.encode()) > most else []


def _is(pattern: str, text: str) -> bool:
    return compiled(f"^(?:{pattern})$").search(text) is not None


def _check_label(text: str) -> list[str]:
    problems = _too_long(text, 63)
    if not _is(_LABEL, text):
        if _is(_SUBDOMAIN, text):
            return [*problems, "must not contain dots"]
        rule = f"a lowercase RFC 1123 label {_LOWER} or '-', and {_ENDS}"
        problems.append(_mismatch(rule, _LABEL, "my-name", "123-abc"))
    return problems


def _check_subdomain(text: str) -> list[str]:
    problems = _too_long(text, 253)
    if not _is(_SUBDOMAIN, text):
        rule = f"a lowercase RFC 1123 subdomain {_LOWER}, '-' or '.', and {_ENDS}"
        problems.append(_mismatch(rule, _SUBDOMAIN, "example.com"))
    return problems


def _check_label_1035(text: str) -> list[str]:
    problems = _too_long(text, 63)
    if not _is(_LABEL_1035, text):
        ends = "start with an alphabetic character, and end with an alphanumeric character"
        rule = f"a DNS-1035 label {_LOWER} or '-', {ends}"
        problems.append(_mismatch(rule, _LABEL_1035, "my-name", "abc-123"))
    return problems


def _check_qualified_name(text: str) -> list[str]:
    examples = ("MyName", "my.name", "123-abc")
    parts = text.split("/")
    if len(parts) > 2:
        rule = _mismatch(f"a valid label key {_CHARACTERS}", _NAME, *examples)
        return [f"{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    problems: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in _check_subdomain(parts[0])]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {problem}" for problem in _too_long(name, 63, "bytes")]
    if not _is(_NAME, name):
        problems.append(f"name part {_mismatch(_CHARACTERS, _NAME, *examples)}")
    return problems


def _check_label_value(text: str) -> list[str]:
    problems = _too_long(text, 63, "bytes")
    if not _is(_VALUE, text):
        rule = f"a valid label must be an empty string or {_CHARACTERS.removeprefix('must ')}"
        problems.append(_mismatch(rule, _VALUE, "MyValue", "my_value", "12345"))
    return problems


def _as_prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """A name that is followed by more, so that it may end with a dash."""
    return lambda text: check(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def _one_problem(is_valid: Callable[[str], bool], problem: str) -> Callable[[str], list[str]]:
    return lambda text: [] if is_valid(text) else [problem]


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    try:
        date(year or 4, month, day)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    day, separator, time = text.lower().partition("t")
    match = _TIME.fullmatch(time.partition("t")[0]) if separator and _is_date(day) else None
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


_NAMED = {
    "dns1123Label": Format("DNS1123Label", _check_label, 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", _check_subdomain, 60),
    "dns1035Label": Format("DNS1035Label", _check_label_1035, 30),
    "qualifiedName": Format("QualifiedName", _check_qualified_name, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _as_prefix(_check_label), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _as_prefix(_check_subdomain), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _as_prefix(_check_label_1035), 30),
    "labelValue": Format("LabelValue", _check_label_value, 40),
    "uuid": Format(
        "uuid", _one_problem(lambda text: bool(_UUID.fullmatch(text)), "does not match the UUID format"), 72
    ),
    "byte": Format("byte", _one_problem(lambda text: bool(_BASE64.fullmatch(text)), "invalid base64"), 84),
    "date": Format("date", _one_problem(_is_date, "invalid date"), 72),
    "datetime": Format("datetime", _one_problem(_is_date_time, "invalid datetime"), 72),
}


def _validate(of: Format, text: str) -> Value:
    problems: list[Value] = list(of.check(text))
    return Optional(problems) if problems else Optional.NONE


def _find(name: str) -> Value:
    return Optional(_NAMED[name]) if name in _NAMED else Optional.NONE


def _constant(value: Value) -> Callable[[], Value]:
    return lambda: value


FORMATS = Library(
    "kubernetes.format",
    (
        function("validate", member("format-validate", (_FORMAT, STRING), optional_of(list_of(STRING)), _validate)),
        function("format.named", overload("format-named", (STRING,), optional_of(_FORMAT), _find)),
        *(
            function(f"format.{name}", overload(f"format.{name}", (), _FORMAT, _constant(each)))
            for name, each in _NAMED.items()
        ),
    ),
)
