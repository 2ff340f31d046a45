"""Semantic versions."""

from __future__ import annotations

import pytest
from tests.unit.cel.evaluation import error, value

from bayplan.cel.errors import EvaluationError
from bayplan.cel.library.semver import parse_semver

IN_ORDER = ["1.0.0-1", "1.0.0-2", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta", "1.0.0", "1.0.1", "1.10.0", "2.0.0"]


def test_versions_have_an_order() -> None:
    parsed = [parse_semver(text) for text in IN_ORDER]

    for position, version in enumerate(parsed):
        assert all(version.compare_to(later) == -1 for later in parsed[position + 1 :])
        assert version.compare_to(version) == 0


def test_versions_are_spelled_as_they_were_read() -> None:
    assert str(parse_semver("1.2.3-rc.1+linux.amd64")) == "1.2.3-rc.1+linux.amd64"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("01.0.0", 'Major number must not contain leading zeroes "01"'),
        ("1.x.0", 'Invalid character(s) found in minor number "x"'),
        ("1.0.0-", "Prerelease is empty"),
        ("1.0.0-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.0.0-ä", 'Invalid character(s) found in prerelease "ä"'),
        ("1.0.0+", "Build meta data is empty"),
        (".0.0", 'strconv.ParseUint: parsing "": invalid syntax'),
    ],
)
def test_what_is_no_version_is_refused(text: str, expected: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        parse_semver(text)
    assert str(raised.value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0').isGreaterThan(semver('1.0.0-rc'))", True),
        ("semver('1.0.0+a') == semver('1.0.0+b')", True),
        ("semver('1.2.3').major() * 100 + semver('1.2.3').minor() * 10 + semver('1.2.3').patch()", 123),
        ("semver('v01.2', true) == semver('1.2.0') && isSemver('v1', true) && !isSemver('v1')", True),
        ("semver('1.0.0').compareTo(semver('2.0.0'))", -1),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert value(text) == expected


def test_short_versions_have_no_prerelease() -> None:
    assert error("semver('1.0-rc', true)") == "short version cannot contain PreRelease/Build meta data"
