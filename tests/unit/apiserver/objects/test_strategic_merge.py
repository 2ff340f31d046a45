"""Strategic merge patch: keyed lists and directives."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.api.patches import BadPatch
from bayplan.apiserver.kinds.type_table import builtin_types
from bayplan.apiserver.objects.strategic_merge import strategic_merge

POD = builtin_types()["core.v1.Pod"]


def merged(document: dict[str, Any], patch: Any) -> dict[str, Any]:
    return strategic_merge(document, patch, POD)


def test_keyed_lists_are_merged_item_by_item() -> None:
    document = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}}
    patch = {"spec": {"containers": [{"name": "b", "image": "2"}, {"name": "c", "image": "3"}]}}

    images = [(one["name"], one["image"]) for one in merged(document, patch)["spec"]["containers"]]
    assert images == [("a", "1"), ("b", "2"), ("c", "3")]


def test_lists_without_a_key_are_replaced() -> None:
    document = {"spec": {"containers": [{"name": "a", "args": ["1"]}]}}
    patch = {"spec": {"containers": [{"name": "a", "args": ["2"]}]}}

    assert merged(document, patch)["spec"]["containers"][0]["args"] == ["2"]


def test_lists_of_values_that_merge_become_a_union() -> None:
    document = {"metadata": {"finalizers": ["a"]}}

    assert merged(document, {"metadata": {"finalizers": ["b", "a"]}})["metadata"]["finalizers"] == ["b", "a"]


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}, {"spec": {"containers": []}}),
        ({"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}}, {"spec": {"containers": [{"name": "z"}]}}),
        ({"spec": {"$patch": "replace", "nodeName": "n"}}, {"spec": {"nodeName": "n"}}),
        ({"spec": {"$patch": "delete"}}, {}),
        ({"spec": None}, {}),
        ({"spec": {"$retainKeys": ["nodeName"], "nodeName": "n"}}, {"spec": {"nodeName": "n"}}),
    ],
)
def test_directives_do_what_they_say(patch: dict[str, Any], expected: dict[str, Any]) -> None:
    assert merged({"spec": {"containers": [{"name": "a"}]}}, patch) == expected


def test_an_order_can_be_given_without_a_change() -> None:
    document = {"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}}
    patch = {"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}}

    assert [one["name"] for one in merged(document, patch)["spec"]["containers"]] == ["b", "c", "a"]


@pytest.mark.parametrize(
    "patch",
    [
        [],
        {"spec": {"containers": [{"image": "no key"}]}},
        {"spec": {"containers": ["x"]}},
        {"spec": {"$patch": "frobnicate"}},
        {"spec": {"$retainKeys": "x"}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": "x"}},
    ],
)
def test_a_malformed_patch_says_so(patch: Any) -> None:
    with pytest.raises(BadPatch):
        merged({"spec": {"containers": [{"name": "a"}]}, "metadata": {"finalizers": ["a"]}}, patch)
