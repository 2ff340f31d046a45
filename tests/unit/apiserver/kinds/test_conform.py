"""Documents are pruned to their type, and what is wrong with them is said by path."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.apiserver.kinds.conform import WrongType, conform
from bayplan.apiserver.kinds.type_table import builtin_types

POD = builtin_types()["core.v1.Pod"]


def test_unknown_fields_are_dropped_and_reported_by_path() -> None:
    document: dict[str, Any] = {"spec": {"x": 1, "containers": [{"name": "a", "y": 2}]}, "z": 3}
    findings = conform(document, POD)

    assert findings.unknown == ["spec.x", "spec.containers[0].y", "z"]
    assert document == {"spec": {"containers": [{"name": "a"}]}}


def test_null_counts_as_absent() -> None:
    document: dict[str, Any] = {
        "metadata": {"labels": None, "annotations": {"a": None}},
        "spec": {"containers": [None]},
    }
    conform(document, POD)

    assert document == {"metadata": {"annotations": {"a": ""}}, "spec": {"containers": [{"name": ""}]}}


def test_zero_values_are_dropped_kept_or_added_as_go_does() -> None:
    """Left out unless the field is a pointer or always written; an always written one is added."""
    toleration = {"key": "k", "value": "", "tolerationSeconds": 0}
    container = {"name": "a", "image": "", "command": [], "stdin": False}
    document: dict[str, Any] = {
        "metadata": {"name": "a", "labels": {}, "generation": 0},
        "spec": {"priority": 0, "hostUsers": False, "hostPID": False, "tolerations": [toleration]},
        "status": {"containerStatuses": [{"name": "a"}]},
    }
    document["spec"]["containers"] = [container]
    conform(document, POD)

    assert document == {
        "metadata": {"name": "a"},
        "spec": {
            "priority": 0,
            "hostUsers": False,
            "tolerations": [{"key": "k", "tolerationSeconds": 0}],
            "containers": [{"name": "a"}],
        },
        "status": {"containerStatuses": [{"name": "a", "ready": False, "restartCount": 0, "image": "", "imageID": ""}]},
    }


def test_an_applied_configuration_keeps_what_its_author_wrote() -> None:
    document: dict[str, Any] = {"spec": {"hostPID": False, "containers": [{"image": ""}]}}
    conform(document, POD, fills=False)

    assert document == {"spec": {"hostPID": False, "containers": [{"image": ""}]}}


def test_times_are_spelled_as_the_server_does() -> None:
    lease = builtin_types()["coordination.v1.Lease"]
    document: dict[str, Any] = {
        "metadata": {"creationTimestamp": "2026-01-31T13:00:00.9+01:00"},
        "spec": {"renewTime": "2026-01-31T12:00:00.5Z"},
    }
    conform(document, lease)

    assert document["metadata"]["creationTimestamp"] == "2026-01-31T12:00:00Z"
    assert document["spec"]["renewTime"] == "2026-01-31T12:00:00.500000Z"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": {}}, "spec.containers: expected a list, found object"),
        ({"containers": ["x"]}, "spec.containers[0]: expected an object, found string"),
        ({"priority": "high"}, "spec.priority: expected an integer of type int32, found string"),
        ({"priority": 2**31}, "spec.priority: expected an integer of type int32, found number"),
        ({"hostNetwork": 1}, "spec.hostNetwork: expected a boolean, found number"),
        ({"nodeName": True}, "spec.nodeName: expected a string, found boolean"),
        ({"overhead": {"cpu": "lots"}}, "spec.overhead.cpu: quantities must match"),
        ({"overhead": {"cpu": []}}, "spec.overhead.cpu: expected a quantity such as 500m or 2Gi, found array"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector.a: expected a string, found number"),
    ],
)
def test_a_value_of_the_wrong_type_is_named_by_path(spec: dict[str, Any], expected: str) -> None:
    with pytest.raises(WrongType) as raised:
        conform({"spec": spec}, POD)

    assert str(raised.value).startswith(expected)


def test_quantities_times_and_whole_floats_are_normalised() -> None:
    document: dict[str, Any] = {
        "metadata": {"creationTimestamp": "2026-01-31T12:00:00Z"},
        "spec": {"overhead": {"cpu": 0.5}, "priority": 3.0},
    }
    conform(document, POD)

    assert document["spec"] == {"overhead": {"cpu": "500m"}, "priority": 3}


@pytest.mark.parametrize("text", ["yesterday", "2026-01-31T12:00:00Z\n", "2026-01-31T12:00:0\u0660Z"])
def test_other_text_is_no_time(text: str) -> None:
    with pytest.raises(WrongType, match="expected a time such as"):
        conform({"metadata": {"creationTimestamp": text}}, POD)


def test_secret_data_must_be_base64() -> None:
    with pytest.raises(WrongType, match="expected base64 data"):
        conform({"data": {"k": "%%%"}}, builtin_types()["core.v1.Secret"])
