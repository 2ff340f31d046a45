"""Label and field selectors in all their spellings."""

from __future__ import annotations

import pytest

from bayplan.apiserver.protocol.selectors import (
    BadSelector,
    FieldRequirement,
    is_label_key,
    is_label_value,
    matches_label_selector,
    parse_field_selector,
    parse_label_selector,
)

LABELS = {"app": "web", "tier": "front", "n": "5"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("app in (web, db)", True),
        ("app notin (web)", False),
        ("missing notin (web)", True),
        ("app", True),
        ("!app", False),
        ("!missing", True),
        ("n>4", True),
        ("n<5", False),
        ("tier=front,app in (db)", False),
        (" tier = front , app ", True),
        ("app=", False),
        ("x.io/y=z", False),
    ],
)
def test_a_label_selector_matches(text: str, expected: bool) -> None:
    predicate = parse_label_selector(text)

    assert predicate is not None
    assert predicate(LABELS) is expected


@pytest.mark.parametrize("text", ["", "  ", ","])
def test_an_empty_label_selector_matches_everything_or_is_refused(text: str) -> None:
    try:
        assert parse_label_selector(text) is None
    except BadSelector:
        assert text == ","


@pytest.mark.parametrize("text", ["a in (b", "=x", "a=b c", "a=b=c", "!!a", "a=b!", "-a=b", "a=-b"])
def test_a_bad_label_selector_says_so(text: str) -> None:
    with pytest.raises(BadSelector):
        parse_label_selector(text)


def test_field_selectors_are_split_into_clauses() -> None:
    found = parse_field_selector("spec.nodeName=,status.phase!=Running,a==x\\,y")

    assert found == [
        FieldRequirement("spec.nodeName", True, ""),
        FieldRequirement("status.phase", False, "Running"),
        FieldRequirement("a", True, "x,y"),
    ]


def test_a_bad_field_selector_says_so() -> None:
    with pytest.raises(BadSelector, match="can't understand 'nonsense'"):
        parse_field_selector("nonsense")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "x", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "x", "operator": "Nonsense"}]}, False),
    ],
)
def test_a_selector_object_matches(selector: dict[str, object] | None, expected: bool) -> None:
    assert matches_label_selector(selector, LABELS) is expected


@pytest.mark.parametrize("key", ["a", "A_b.c-1", "example.com/a", "a-b.c/D", "x" * 63, f"{'x.' * 126}x/{'y' * 63}"])
def test_a_key_is_a_name_with_a_domain_before_it(key: str) -> None:
    assert is_label_key(key)


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a/b/c", "A.com/a", "a..b/c", "-a/b", "a.-b/c", "a b", "a\n", "x" * 64, f"{'x' * 254}/a"]
)
def test_other_text_is_no_key(key: str) -> None:
    assert not is_label_key(key)


def test_a_value_ends_where_its_text_ends() -> None:
    assert is_label_value("a")
    assert not is_label_value("a\n")
