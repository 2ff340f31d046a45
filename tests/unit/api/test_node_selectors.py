"""Node selectors: terms are alternatives, requirements add up, what does not parse matches nothing."""

from __future__ import annotations

import pytest

from bayplan.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.api.node_selectors import RequiredNodes, compile_node_selector, compile_term, parse_int64
from bayplan.testing import node_term

LABELS = {"zone": "a", "gen": "3", "odd": "x3"}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (node_term({"zone": "a"}), True),
        (node_term(is_in={"zone": ["b", "a"]}), True),
        (node_term(is_in={"zone": ["b"]}), False),
        (node_term(not_in={"zone": ["b"]}), True),
        (node_term(not_in={"rack": ["b"]}), True),
        (node_term(exists=["zone"]), True),
        (node_term(absent=["zone"]), False),
        (node_term(absent=["rack"]), True),
        (node_term(greater={"gen": 2}), True),
        (node_term(greater={"gen": 3}), False),
        (node_term(less={"gen": 4}), True),
        (node_term(less={"odd": 4}), False),
        (node_term(greater={"rack": 0}), False),
        (node_term(name="n1"), True),
        (node_term(name="n2"), False),
        (node_term({"zone": "a"}, name="n2"), False),
        (node_term(), False),
    ],
)
def test_a_term_matches_when_all_of_it_does(term: NodeSelectorTerm, expected: bool) -> None:
    assert compile_term(term).matches(LABELS, "n1") is expected


@pytest.mark.parametrize(
    "requirement",
    [
        NodeSelectorRequirement(key="zone", operator="In"),
        NodeSelectorRequirement(key="zone", operator="Exists", values=["a"]),
        NodeSelectorRequirement(key="gen", operator="Gt", values=["1", "2"]),
        NodeSelectorRequirement(key="gen", operator="Gt", values=["many"]),
        NodeSelectorRequirement(key="zone", operator="Near", values=["a"]),
    ],
)
def test_a_term_that_does_not_parse_matches_nothing(requirement: NodeSelectorRequirement) -> None:
    term = compile_term(NodeSelectorTerm(match_expressions=[requirement]))

    assert not term.is_valid
    assert not term.matches({"zone": "a", "gen": "9"}, "n1")


@pytest.mark.parametrize(
    "requirement",
    [
        NodeSelectorRequirement(key="metadata.name", operator="In", values=["n1", "n2"]),
        NodeSelectorRequirement(key="metadata.name", operator="Exists"),
        NodeSelectorRequirement(key="metadata.uid", operator="In", values=["n1"]),
    ],
)
def test_fields_compare_one_name_only(requirement: NodeSelectorRequirement) -> None:
    assert not compile_term(NodeSelectorTerm(match_fields=[requirement])).is_valid


def test_a_term_tells_which_nodes_it_pins() -> None:
    assert compile_term(node_term(name="n1")).node_names() == {"n1"}
    assert compile_term(node_term({"zone": "a"})).node_names() is None


def test_terms_are_alternatives_and_no_terms_match_nothing() -> None:
    either = compile_node_selector(NodeSelector(node_selector_terms=[node_term({"zone": "b"}), node_term(name="n1")]))

    assert RequiredNodes((), either).matches(LABELS, "n1")
    assert not RequiredNodes((), either).matches(LABELS, "n2")
    assert not RequiredNodes((), ()).matches(LABELS, "n1")


def test_the_node_selector_map_adds_to_the_terms() -> None:
    terms = compile_node_selector(NodeSelector(node_selector_terms=[node_term({"zone": "a"})]))

    assert RequiredNodes((("gen", "3"),), terms).matches(LABELS, "n1")
    assert not RequiredNodes((("gen", "4"),), terms).matches(LABELS, "n1")
    assert RequiredNodes((), None).is_anything
    assert not RequiredNodes((("gen", "3"),), None).is_anything


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("", None),
        ("-", None),
        ("1.0", None),
        ("1_000", None),
        (" 1", None),
        ("٣", None),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("0" * 5000 + "7", 7),
        ("9" * 5000, None),
        ("-" + "9" * 5000, None),
        ("-0", 0),
    ],
)
def test_integers_are_read_as_go_reads_them(text: str, expected: int | None) -> None:
    assert parse_int64(text) == expected
