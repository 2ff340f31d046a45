"""The table of types, and the strict decoders built from it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.apiserver.kinds.builtin import builtin_kinds
from bayplan.apiserver.kinds.conform import WrongType, conform
from bayplan.apiserver.kinds.type_table import FieldType, StrictDecoders, builtin_types
from bayplan.apiserver.protocol.encoding import decode, encode

DECODERS = StrictDecoders()


def test_every_type_that_is_named_is_declared() -> None:
    table = builtin_types()
    without_fields = [name for name in table.names() if not table[name].fields]

    assert without_fields == ["apiextensions.v1.CustomResourceSubresourceStatus"]


def test_merge_rules_come_with_the_fields() -> None:
    containers = builtin_types()["core.v1.PodSpec"].fields["containers"]

    assert (containers.type.list_type, containers.type.list_keys) == ("map", ("name",))
    assert (containers.patch_strategies, containers.patch_key) == (frozenset({"merge"}), "name")
    assert containers.required


@pytest.mark.parametrize("kind", builtin_kinds(), ids=lambda kind: kind.resource)
def test_every_kind_has_a_type_and_a_decoder(kind: Any) -> None:
    assert kind.type.kind == "struct"
    smallest = {"metadata": {"name": "a"}}
    conform(smallest, kind.type)
    has_zeros = len(smallest) > 1
    assert DECODERS.accepts(encode(smallest), kind.type) != has_zeros
    assert not DECODERS.accepts(b'{"metadata": {"nonsense": "a"}}', kind.type)
    assert not DECODERS.accepts(b'{"metadata": 5}', kind.type)


POD = builtin_types()["core.v1.Pod"]
SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**65), 2**65), st.text(max_size=4), st.sampled_from(["1", "500m", "0.5"])
)


def values(declared: FieldType, depth: int) -> st.SearchStrategy[Any]:
    """Mostly right, sometimes wrong."""
    if depth <= 0:
        return SCALARS
    if declared.kind == "struct":
        names = sorted(declared.fields)[:40]
        known = st.sampled_from(names) if names else st.just("x")
        return st.lists(known, max_size=3, unique=True).flatmap(
            lambda chosen: st.fixed_dictionaries(
                {
                    name: values(declared.fields[name].type, depth - 1) if name in declared.fields else SCALARS
                    for name in chosen
                }
            )
        )
    if declared.kind == "list" and declared.element is not None:
        return st.lists(values(declared.element, depth - 1), max_size=2)
    if declared.kind == "map" and declared.element is not None:
        return st.dictionaries(st.text(max_size=3), values(declared.element, depth - 1), max_size=2)
    return SCALARS


@settings(max_examples=300, deadline=None)
@given(values(POD, 5))
def test_what_the_fast_way_accepts_the_slow_way_leaves_alone(document: Any) -> None:
    """The strict decoders are an optimisation: they accept only what the slow walk would not change or refuse."""
    body = encode(document)
    if not isinstance(document, dict) or not DECODERS.accepts(body, POD):
        return
    walked = decode(body)
    try:
        findings = conform(walked, POD)
    except WrongType as problem:
        raise AssertionError(f"the fast way accepted what the slow way refuses: {problem}") from problem

    assert findings.unknown == []
    assert walked == document


def test_descriptions_name_types_and_fields_that_exist() -> None:
    """`describe` raises for any other; each says something about a type or a field that people look up."""
    table = builtin_types()

    assert table["core.v1.PodSpec"].fields["tolerations"].description == "Taints that do not keep this pod away."
    assert table["apps.v1.Deployment"].fields["metadata"].description
    with pytest.raises(KeyError):
        table.describe("core.v1.PodSpec.nonsense  Nothing.")
