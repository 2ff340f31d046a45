"""Sets of fields: their algebra, and what they say about changes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bayplan.apiserver.kinds.type_table import builtin_types
from bayplan.apiserver.objects.field_sets import (
    FieldSet,
    compare,
    difference,
    fields_of,
    intersection,
    is_member,
    member_paths,
    union,
)

POD = builtin_types()["core.v1.Pod"]
NAMES = st.sampled_from(["f:a", "f:b", "f:c", 'k:{"name":"x"}'])


def nodes(depth: int) -> st.SearchStrategy[FieldSet]:
    if depth == 0:
        return st.just({})
    below = nodes(depth - 1)
    return st.dictionaries(NAMES, below, max_size=3).flatmap(
        lambda found: st.booleans().map(lambda marked: {**found, ".": {}} if marked and found else found)
    )


SETS = st.dictionaries(NAMES, nodes(2), max_size=3)


def members(fields: FieldSet) -> set[str]:
    return set(member_paths(fields))


@given(SETS, SETS)
def test_the_algebra_is_that_of_sets(left: FieldSet, right: FieldSet) -> None:
    assert members(union(left, right)) == members(left) | members(right)
    assert members(difference(left, right)) == members(left) - members(right)
    assert members(intersection(left, right)) == members(left) & members(right)


def test_an_empty_node_is_a_member_and_a_dot_marks_one_with_members_below() -> None:
    assert is_member({})
    assert is_member({".": {}, "f:a": {}})
    assert not is_member({"f:a": {}})


def test_list_items_are_named_by_their_keys() -> None:
    spec = {
        "containers": [{"name": "main", "image": "a", "ports": [{"containerPort": 80}]}],
        "tolerations": [{"key": "x"}],
    }
    fields = fields_of({"spec": spec, "metadata": {"labels": {"app": "x"}, "finalizers": ["a/b"]}}, POD)

    assert members(fields) == {
        '.spec.containers[name="main"]',
        '.spec.containers[name="main"].name',
        '.spec.containers[name="main"].image',
        '.spec.containers[name="main"].ports[containerPort=80,protocol="TCP"]',
        '.spec.containers[name="main"].ports[containerPort=80,protocol="TCP"].containerPort',
        ".spec.tolerations",
        ".metadata.labels.app",
        '.metadata.finalizers[="a/b"]',
    }


def test_a_comparison_says_what_was_set_and_what_was_removed() -> None:
    old: dict[str, Any] = {"spec": {"nodeName": "a", "priority": 1, "containers": [{"name": "x", "image": "1"}]}}
    new: dict[str, Any] = {"spec": {"nodeName": "b", "containers": [{"name": "x", "image": "1"}, {"name": "y"}]}}
    changed, removed = compare(old, new, POD)

    assert members(changed) == {".spec.nodeName", '.spec.containers[name="y"]', '.spec.containers[name="y"].name'}
    assert members(removed) == {".spec.priority"}


def test_an_atomic_list_changes_as_a_whole() -> None:
    old = {"spec": {"tolerations": [{"key": "a"}]}}
    new = {"spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}}
    changed, removed = compare(old, new, POD)

    assert members(changed) == {".spec.tolerations"}
    assert removed == {}
