"""Label selectors: nothing, everything, and what lies between."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.meta import LabelSelector, LabelSelectorRequirement
from bayplan.api.selectors import EVERYTHING, NOTHING, SelectorError, compile_selector, from_labels
from bayplan.testing import selector
from bayplan.testing.oracle.matching import matches_labels


def test_an_absent_selector_means_nothing_and_an_empty_one_everything() -> None:
    assert compile_selector(None) == NOTHING
    assert compile_selector(LabelSelector()) == EVERYTHING
    assert not NOTHING.matches({})
    assert EVERYTHING.matches({})
    assert EVERYTHING.is_everything
    assert not NOTHING.is_everything


@pytest.mark.parametrize(
    ("given_selector", "labels", "expected"),
    [
        (selector({"app": "web"}), {"app": "web", "tier": "x"}, True),
        (selector({"app": "web"}), {"app": "db"}, False),
        (selector({"app": "web"}), {}, False),
        (selector(is_in={"app": ["web", "db"]}), {"app": "db"}, True),
        (selector(not_in={"app": ["web"]}), {"app": "web"}, False),
        (selector(not_in={"app": ["web"]}), {}, True),
        (selector(exists=["app"]), {"app": ""}, True),
        (selector(exists=["app"]), {}, False),
        (selector(absent=["app"]), {}, True),
        (selector(absent=["app"]), {"app": "web"}, False),
        (selector({"app": "web"}, absent=["tier"]), {"app": "web", "tier": "x"}, False),
    ],
)
def test_every_requirement_must_hold(given_selector: LabelSelector, labels: dict[str, str], expected: bool) -> None:
    assert compile_selector(given_selector).matches(labels) is expected


@pytest.mark.parametrize(
    ("operator", "values"), [("In", []), ("NotIn", None), ("Exists", ["x"]), ("DoesNotExist", ["x"]), ("Near", ["x"])]
)
def test_a_selector_that_an_api_server_refuses_is_refused(operator: str, values: list[str] | None) -> None:
    requirement = LabelSelectorRequirement(key="app", operator=operator, values=values)
    with pytest.raises(SelectorError, match=operator):
        compile_selector(LabelSelector(match_expressions=[requirement]))


def test_equal_selectors_are_equal_however_they_are_written() -> None:
    one = compile_selector(selector({"app": "web", "tier": "x"}))
    other = compile_selector(selector(is_in={"tier": ["x"], "app": ["web"]}))

    assert one == other
    assert hash(one) == hash(other)
    assert one == from_labels({"tier": "x", "app": "web"})


def test_more_equalities_narrow_a_selector_but_nothing_stays_nothing() -> None:
    narrowed = compile_selector(selector({"app": "web"})).and_equal([("tier", "x")])

    assert narrowed == from_labels({"app": "web", "tier": "x"})
    assert NOTHING.and_equal([("tier", "x")]) == NOTHING


def test_an_index_learns_which_labels_must_be_there() -> None:
    compiled = compile_selector(selector({"app": "web"}, is_in={"tier": ["x", "y"]}, exists=["zone"]))

    assert dict(compiled.equalities()) == {"app": frozenset({"web"}), "tier": frozenset({"x", "y"})}


_keys, _values = st.sampled_from(["a", "b"]), st.sampled_from(["1", "2", ""])


@given(
    equal=st.dictionaries(_keys, _values, max_size=2),
    is_in=st.dictionaries(_keys, st.lists(_values, min_size=1, max_size=2), max_size=2),
    not_in=st.dictionaries(_keys, st.lists(_values, min_size=1, max_size=2), max_size=2),
    exists=st.lists(_keys, max_size=1),
    absent=st.lists(_keys, max_size=1),
    labels=st.dictionaries(_keys, _values, max_size=2),
)
def test_a_compiled_selector_agrees_with_the_oracle(
    equal: dict[str, str],
    is_in: dict[str, list[str]],
    not_in: dict[str, list[str]],
    exists: list[str],
    absent: list[str],
    labels: dict[str, str],
) -> None:
    stated = selector(equal, is_in=is_in, not_in=not_in, exists=exists, absent=absent)

    assert compile_selector(stated).matches(labels) == matches_labels(stated, labels)
