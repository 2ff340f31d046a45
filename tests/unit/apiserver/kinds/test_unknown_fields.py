"""Misspelt fields: found by kind, with what was probably meant."""

from __future__ import annotations

import copy
from typing import Any

from bayplan.apiserver.kinds.builtin import builtin_kinds
from bayplan.apiserver.kinds.unknown_fields import _type_of, unknown_fields

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"nodeSelektor": {"disk": "ssd"}, "containers": [{"name": "main", "image": "app:1"}]},
}
MEANT = "unknown field `spec.nodeSelektor`; did you mean `nodeSelector`?"


def test_a_misspelt_field_is_named_with_the_one_that_was_meant() -> None:
    nested = copy.deepcopy(POD)
    nested["spec"] = {"containers": [{"name": "main", "image": "a", "resource": {}, "ports": [{"hostport": 1}]}]}
    nested["nonsense"] = 1

    assert unknown_fields(POD) == [MEANT]
    assert unknown_fields(nested) == [
        "unknown field `spec.containers[0].resource`; did you mean `resources`?",
        "unknown field `spec.containers[0].ports[0].hostport`; did you mean `hostPort`?",
        "unknown field `nonsense`",
    ]


def test_free_names_custom_resources_and_objects_of_a_server_are_left_alone() -> None:
    """Labels and amounts have any names; a server checked what it wrote, and may be newer than the table."""
    free = {**NODE, "metadata": {"name": "n1", "labels": {"nodeSelektor": "x"}}}
    custom = {"apiVersion": "example.com/v1", "kind": "Pod", "spec": {"anything": 1}}
    written = copy.deepcopy(POD)
    written["metadata"]["resourceVersion"] = "7"

    assert [unknown_fields(each) for each in (free, custom, written)] == [[], [], []]


def test_every_built_in_kind_is_found_by_its_version_and_no_custom_resource_is() -> None:
    for kind in builtin_kinds():
        assert _type_of(f"{kind.group}/{kind.version}".lstrip("/"), kind.kind) is kind.type
    assert _type_of("apps.example.com/v1", "Deployment") is None
    assert _type_of("scheduling.x-k8s.io/v1alpha1", "PodGroup") is None
    assert _type_of(None, None) is None
