"""Literals that can be seen to be wrong."""

from __future__ import annotations

import pytest
from tests.unit.cel.evaluation import ENVIRONMENT

from bayplan.cel import CompileError


@pytest.mark.parametrize(
    ("text", "offset", "expected"),
    [
        ("[1, 'a']", 4, "expected type 'int' but found 'string'"),
        ("[1, dyn(1)]", 7, "expected type 'int' but found 'dyn'"),
        ("{'a': 1, 2: 3}", 9, "expected type 'string' but found 'int'"),
        ("{'a': 1, 'b': 'c'}", 14, "expected type 'int' but found 'string'"),
        ("[?optional.of(1), 'a']", 18, "expected type 'int' but found 'string'"),
        ("duration('x')", 9, "invalid duration argument"),
        ("timestamp('x')", 10, "invalid timestamp argument"),
        ("'a'.matches('[')", 12, "invalid matches argument"),
        ("matches('[', 'a')", 8, "invalid matches argument"),
        ("'%d'.format([[1, 'a']])", 13, "decimal clause can only be used on integers, was given list"),
    ],
)
def test_wrong_literals_are_reported_at_their_place(text: str, offset: int, expected: str) -> None:
    with pytest.raises(CompileError) as raised:
        ENVIRONMENT.compile(text)
    (issue,) = raised.value.issues

    assert issue.offset == offset
    assert issue.message.endswith(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'%s %d'.format(['a', 1])", "string"),
        ("[dyn(1), dyn('a')]", "list(dyn)"),
        ("{'a': dyn(1), 'b': dyn('c')}", "map(string, dyn)"),
        ("[[], [1]]", "list(list(int))"),
    ],
)
def test_types_may_differ_in_formats_and_where_they_are_dynamic(text: str, expected: str) -> None:
    assert str(ENVIRONMENT.compile(text).result_type) == expected
