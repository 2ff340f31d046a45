"""Named formats."""

from __future__ import annotations

import pytest
from tests.unit.cel.evaluation import cost, error, value

from bayplan.cel.values import Optional


@pytest.mark.parametrize(
    ("name", "valid", "invalid", "expected"),
    [
        (
            "dns1123Label",
            "a-1",
            "A",
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'",
        ),
        ("dns1123Label", "a", "a.b", "must not contain dots"),
        ("dns1123Label", "a" * 63, "a" * 64, "must be no more than 63 characters"),
        ("dns1123Subdomain", "a.b", "a..b", "a lowercase RFC 1123 subdomain must consist of"),
        ("dns1035Label", "a1", "1a", "a DNS-1035 label must consist of"),
        ("dns1123LabelPrefix", "abc-", "-", "a lowercase RFC 1123 label"),
        ("qualifiedName", "example.com/Name", "a/b/c", "a valid label key must consist of"),
        ("qualifiedName", "Name", "/b", "prefix part must be non-empty"),
        ("labelValue", "", "-a", "a valid label must be an empty string or consist of"),
        ("labelValue", "a", "a" * 64, "must be no more than 63 bytes"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123", "does not match the UUID format"),
        ("byte", "YWI=", "!!", "invalid base64"),
        ("date", "2020-02-29", "2021-02-29", "invalid date"),
        ("datetime", "2020-01-01T10:11:12.5Z", "2020-01-01T24:00:00Z", "invalid datetime"),
    ],
)
def test_texts_are_checked(name: str, valid: str, invalid: str, expected: str) -> None:
    problems = value(f"format.{name}().validate(a).value()", a=invalid)

    assert value(f"format.{name}().validate(a)", a=valid) is Optional.NONE
    assert isinstance(problems, list)
    assert str(problems[0]).startswith(expected)


def test_formats_are_found_by_name_and_compared_by_it() -> None:
    assert value("format.named('uuid').value() == format.uuid()") is True
    assert value("format.named('nope').hasValue()") is False
    assert error("dyn(format.uuid()) == dyn(1)") == "no such overload"


def test_checks_cost_as_much_as_their_longest_pattern() -> None:
    assert cost("format.dns1123Label().validate('abc')") == 9
