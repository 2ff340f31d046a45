"""JSON patch and merge patch, by the letter of their standards."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.api.patches import BadPatch, json_patch, merge_patch


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        (["x"], {"a": 1}, {"a": 1}),
    ],
)
def test_a_merge_patch_follows_the_standard(document: Any, patch: Any, expected: Any) -> None:
    assert merge_patch(document, patch) == expected


@pytest.mark.parametrize(
    ("document", "operations", "expected"),
    [
        ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        ({"a": 1}, [{"op": "remove", "path": "/a"}], {}),
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}),
        ({"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}),
        ({"a": {"x": 1}}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": {"x": 1}, "b": {"x": 1}}),
        ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}),
        ({"x/y": 1, "~": 2}, [{"op": "remove", "path": "/x~1y"}, {"op": "remove", "path": "/~0"}], {}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
    ],
)
def test_a_json_patch_follows_the_standard(document: Any, operations: Any, expected: Any) -> None:
    assert json_patch(document, operations) == expected


@pytest.mark.parametrize(
    "operations",
    [
        {"op": "add"},
        [1],
        [{"op": "add", "path": "/a"}],
        [{"op": "frobnicate", "path": "/a"}],
        [{"op": "add", "path": "a", "value": 1}],
        [{"op": "remove", "path": ""}],
        [{"op": "move", "path": "/a/b", "from": "/a"}],
        [{"op": "add", "path": "/x", "value": 1}] * 10_001,
    ],
)
def test_a_malformed_json_patch_says_so(operations: Any) -> None:
    with pytest.raises(BadPatch) as raised:
        json_patch({"a": {"b": 1}}, operations)

    assert raised.value.is_malformed


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/nope"},
        {"op": "replace", "path": "/nope", "value": 1},
        {"op": "test", "path": "/a", "value": 2},
        {"op": "test", "path": "/t", "value": 1},
        {"op": "add", "path": "/l/9", "value": 1},
        {"op": "add", "path": "/l/01x", "value": 1},
        {"op": "add", "path": "/a/b", "value": 1},
        {"op": "move", "from": "/nope", "path": "/b"},
    ],
)
def test_a_json_patch_that_does_not_fit_says_so(operation: Any) -> None:
    with pytest.raises(BadPatch) as raised:
        json_patch({"a": 1, "t": True, "l": []}, [operation])

    assert not raised.value.is_malformed


@pytest.mark.parametrize("path", ["/a/y{}", "/{}"])
def test_copies_that_double_a_document_are_stopped(path: str) -> None:
    operations = [{"op": "copy", "from": "/a", "path": path.format(number)} for number in range(60)]
    operations += [{"op": "copy", "from": "", "path": f"/z{number}"} for number in range(60)]

    with pytest.raises(BadPatch, match="Unable to complete the copy") as refused:
        json_patch({"a": {"x": "a" * 1000}}, operations)
    assert not refused.value.is_malformed


def test_copies_that_nest_a_document_without_end_are_stopped() -> None:
    path = "/a" * 300
    nested: dict[str, Any] = {}
    for _ in range(300):
        nested = {"a": nested}
    operations = [{"op": "copy", "from": "", "path": path * times} for times in (1, 2, 4, 8, 16, 32)]

    with pytest.raises(BadPatch, match="nested too deeply"):
        json_patch(nested, operations)


def test_an_index_of_thousands_of_digits_is_out_of_bounds() -> None:
    with pytest.raises(BadPatch, match="out of bounds"):
        json_patch({"a": [1]}, [{"op": "replace", "path": "/a/" + "9" * 5000, "value": 2}])
