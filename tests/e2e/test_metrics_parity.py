"""Our declarations against what the real kube-scheduler shows: names, types, stability, labels and buckets."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from bayplan.observe.component_metrics import REGISTERED_METRICS, REST_DURATION, REST_REQUESTS
from bayplan.observe.metrics import Family, MetricKind
from bayplan.observe.scheduler_metrics import SCHEDULER_FAMILIES
from tests.e2e.clusters import Cluster

PODS = "/api/v1/namespaces/default/pods"
OURS = {family.name: family for family in (*SCHEDULER_FAMILIES, REST_REQUESTS, REST_DURATION, REGISTERED_METRICS)}
_PATIENCE = 900


def node() -> dict[str, Any]:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"capacity": room, "allocatable": room}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "parity-1"}, "status": status}


def pod(name: str, cpu: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}}
    containers = [{"name": "main", "image": "example.test/main:1", "resources": resources}]
    tolerations = [{"operator": "Exists"}]
    spec = {"containers": containers, "tolerations": tolerations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def kube_scheduler_text(cluster: Cluster, programs: None) -> Iterator[str]:
    """What kube-scheduler shows after it has bound a pod and failed to bind another."""
    with cluster.start_kube_scheduler() as scheduler:
        assert cluster.admin.request("POST", "/api/v1/nodes", node()).status == 201
        for name, cpu in (("small", "100m"), ("large", "100")):
            assert cluster.admin.request("POST", PODS, pod(name, cpu)).status == 201
        for _ in range(_PATIENCE):
            text = scheduler.metrics()
            if 'result="scheduled"} 1' in text and 'result="unschedulable"} 1' in text:
                break
            time.sleep(0.1)
        yield text
    cluster.clear()


def samples_by_family(text: str) -> dict[str, list[Sample]]:
    found = {}
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = list(family.samples)
    return found


def labels_of(family: Family, samples: list[Sample]) -> set[str]:
    return {label for sample in samples for label in sample.labels} - {"le"}


def bounds_of(samples: list[Sample]) -> list[float]:
    bounds = {float(sample.labels["le"]) for sample in samples if "le" in sample.labels}
    return sorted(bounds - {float("inf")})


def test_every_metric_of_kube_scheduler_is_declared_as_it_is_there(kube_scheduler_text: str) -> None:
    theirs = samples_by_family(kube_scheduler_text)
    shown = {name for name in theirs if name.startswith("scheduler_") or name in OURS}

    assert len(shown) >= 20
    assert shown - OURS.keys() == set()
    for name in sorted(shown):
        family, samples = OURS[name], theirs[name]
        assert labels_of(family, samples) == set(family.labels), name
        if family.kind is MetricKind.HISTOGRAM:
            assert bounds_of(samples) == pytest.approx(list(family.buckets)), name


def test_types_and_stability_are_those_of_kube_scheduler(kube_scheduler_text: str) -> None:
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", kube_scheduler_text, re.MULTILINE))
    stability = dict(re.findall(r"^# HELP (\S+) \[(\w+)\]", kube_scheduler_text, re.MULTILINE))
    for name in sorted(types.keys() & OURS.keys()):
        assert types[name] == OURS[name].kind.value, name
        assert stability[name] == OURS[name].stability.value, name
