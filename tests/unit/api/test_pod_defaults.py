from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.api.decode import decode_object
from bayplan.api.pod import Pod
from bayplan.api.pod_defaults import UnknownPriorityClass, apply_pod_defaults
from bayplan.api.workload import PriorityClass

GOLDEN = sorted((Path(__file__).parents[2] / "parity" / "golden").glob("*.jsonl.gz"))


def defaulted(spec: dict[str, Any], labels: dict[str, str] | None = None, **options: Any) -> dict[str, Any]:
    pod = msgspec.convert({"metadata": {"name": "p", "labels": labels or {}}, "spec": spec}, Pod)
    once = msgspec.to_builtins(apply_pod_defaults(pod, **options))
    assert msgspec.to_builtins(apply_pod_defaults(pod, **options)) == once
    result: dict[str, Any] = once["spec"]
    return result


def container(**resources: Any) -> dict[str, Any]:
    return {"name": "c", "resources": resources}


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.name.split(".")[0])
def test_pods_of_an_api_server_come_back_unchanged(file: Path) -> None:
    with gzip.open(file, "rt") as lines:
        for line in lines:
            case = json.loads(line)
            objects = [decode_object(item) for item in [*case["objects"], *(case.get("pods") or [case["pod"]])]]
            classes = [item for item in objects if isinstance(item, PriorityClass)]
            for pod in (item for item in objects if isinstance(item, Pod)):
                before = msgspec.to_builtins(pod)
                assert before == msgspec.to_builtins(apply_pod_defaults(pod, priority_classes=classes)), case["id"]


def test_the_golden_cases_are_there() -> None:
    assert len(GOLDEN) == 26


def test_requests_are_taken_over_from_limits() -> None:
    spec = defaulted(
        {
            "containers": [container(limits={"cpu": "2", "memory": "1Gi"}, requests={"cpu": "1"})],
            "initContainers": [container(limits={"cpu": "3"})],
        }
    )

    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert spec["initContainers"][0]["resources"]["requests"] == {"cpu": "3"}


def test_pod_level_limits_bring_pod_level_requests() -> None:
    spec = defaulted(
        {
            "containers": [container(requests={"cpu": "250m"}), container(requests={"cpu": "500m"})],
            "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
            "overhead": {"cpu": "100m"},
        }
    )

    assert spec["resources"]["requests"] == {"cpu": "750m", "memory": "1Gi"}


def test_huge_pages_of_containers_become_the_pod_level_limit() -> None:
    spec = defaulted(
        {
            "containers": [container(limits={"hugepages-2Mi": "4Mi"}), container(limits={"hugepages-2Mi": "2Mi"})],
            "resources": {"requests": {"cpu": "1"}},
        }
    )

    assert spec["resources"] == {"requests": {"cpu": "1", "hugepages-2Mi": "6Mi"}, "limits": {"hugepages-2Mi": "6Mi"}}


def test_container_ports_are_host_ports_on_the_network_of_the_host() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}]
    on_host = defaulted({"hostNetwork": True, "containers": [{"name": "c", "ports": ports}]})
    off_host = defaulted({"containers": [{"name": "c", "ports": ports}]})

    assert [port["hostPort"] for port in on_host["containers"][0]["ports"]] == [80, 8081]
    assert "hostPort" not in off_host["containers"][0]["ports"][0]


def test_label_keys_are_merged_into_selectors() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"a": "b"}},
        "matchLabelKeys": ["app", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    spread = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["app"]}
    spec = defaulted(
        {
            "affinity": {
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]
                },
            },
            "topologySpreadConstraints": [spread, {**spread, "labelSelector": None}],
        },
        labels={"app": "web", "tenant": "red"},
    )
    merged = [
        {"key": "app", "operator": "In", "values": ["web"]},
        {"key": "tenant", "operator": "NotIn", "values": ["red"]},
    ]
    required = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    preferred = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]

    assert required["labelSelector"]["matchExpressions"] == merged
    assert preferred["podAffinityTerm"]["labelSelector"]["matchExpressions"] == merged
    assert spec["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == merged[:1]
    assert "labelSelector" not in spec["topologySpreadConstraints"][1]


def classes() -> list[PriorityClass]:
    items = [
        {"metadata": {"name": "high"}, "value": 100, "preemptionPolicy": "Never"},
        {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True},
    ]
    return msgspec.convert(items, list[PriorityClass])


def test_priority_comes_from_the_class() -> None:
    spec = defaulted({"priorityClassName": "high"}, priority_classes=classes())
    usual = defaulted({}, priority_classes=classes())
    system = defaulted({"priorityClassName": "system-node-critical"}, priority_classes=[])

    assert (spec["priority"], spec["preemptionPolicy"]) == (100, "Never")
    assert (usual["priority"], usual["priorityClassName"]) == (7, "usual")
    assert system["priority"] == 2_000_001_000
    assert "priority" not in defaulted({"priorityClassName": "high"})
    assert defaulted({"priorityClassName": "high", "priority": 5}, priority_classes=classes())["priority"] == 5


def test_a_class_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownPriorityClass, match="names the PriorityClass `gold`, which is not there; add it"):
        defaulted({"priorityClassName": "gold"}, priority_classes=classes())
