"""What a server fills in, drops or normalises in a new object."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiconformance.client import ApiClient, Json, pod, unique


def created(api: ApiClient, path: str, body: Json) -> Json:
    answer = api.post(path, {"metadata": {"name": unique("made")}} | body, query={"dryRun": "All"})
    assert answer.status == 201, answer.body
    found: Json = answer.body
    return found


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("app:1", "IfNotPresent"),
        ("registry.example.com:5000/team/app", "Always"),
        ("registry.example.com:5000/team/app:2", "IfNotPresent"),
        (f"app@sha256:{'0' * 64}", "IfNotPresent"),
        (f"app:latest@sha256:{'0' * 64}", "Always"),
        ("Not/AnImage", "IfNotPresent"),
        ("NotAnImage", "IfNotPresent"),
        ("localhost/app", "Always"),
        ("a__b/c--d.e", "Always"),
        ("app:", "IfNotPresent"),
    ],
)
def test_the_pull_policy_depends_on_the_tag_of_a_name_that_is_one(
    api: ApiClient, pods: str, image: str, policy: str
) -> None:
    body = pod(serviceAccountName="default")
    body["spec"]["containers"][0]["image"] = image

    assert created(api, pods, body)["spec"]["containers"][0]["imagePullPolicy"] == policy


VOLUMES: list[tuple[Json, Json]] = [
    ({"hostPath": {"path": "/a"}}, {"hostPath": {"path": "/a", "type": ""}}),
    (
        {"iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.2026-01.com.example:a", "lun": 0}},
        {"iscsi": {"iscsiInterface": "default", "lun": 0}},
    ),
    (
        {"rbd": {"monitors": ["10.0.0.1"], "image": "a"}},
        {"rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}},
    ),
    (
        {"scaleIO": {"gateway": "a", "system": "a", "volumeName": "a", "secretRef": {"name": "a"}}},
        {"scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"}},
    ),
    (
        {"azureDisk": {"diskName": "a", "diskURI": "https://blob.core.windows.net/a"}},
        {"azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"}},
    ),
    ({"image": {"reference": "example.com/a:1"}}, {"image": {"pullPolicy": "IfNotPresent"}}),
    ({}, {"emptyDir": {}}),
]


@pytest.mark.parametrize(("volume", "wanted"), VOLUMES, ids=lambda value: "-".join(value) or "none")
def test_sources_of_volumes_have_their_defaults(api: ApiClient, pods: str, volume: Json, wanted: Json) -> None:
    body = pod(serviceAccountName="default", automountServiceAccountToken=False, volumes=[{"name": "a"} | volume])
    (found,) = created(api, pods, body)["spec"]["volumes"]

    for source, fields in wanted.items():
        assert fields.items() <= found[source].items()


@pytest.mark.parametrize(
    ("given", "source", "reference"),
    [
        ({"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}}, "a", "a"),
        ({"dataSourceRef": {"kind": "Populator", "name": "a", "apiGroup": "example.com"}}, "a", "a"),
        ({"dataSource": {"kind": "Populator", "name": "a", "apiGroup": "example.com"}}, None, None),
        (
            {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a", "namespace": "other"}},
            None,
            None,
        ),
    ],
)
def test_both_names_of_a_claims_source_say_the_same(
    api: ApiClient, namespace: str, given: Json, source: str | None, reference: str | None
) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    found = created(api, f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", {"spec": claim | given})["spec"]

    assert found.get("dataSource", {}).get("name") == source
    assert found.get("dataSourceRef", {}).get("name") == reference


def test_a_new_persistent_volume_has_the_time_of_its_phase(api: ApiClient) -> None:
    spec = {"hostPath": {"path": "/a"}, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    status = created(api, "/api/v1/persistentvolumes", {"spec": spec, "status": {"phase": "Bound"}})["status"]

    assert status["phase"] == "Pending"
    assert status["lastPhaseTransitionTime"]


@pytest.mark.parametrize(
    ("plural", "zeros"),
    [
        ("replicasets", {"replicas": 0}),
        ("statefulsets", {"replicas": 0, "availableReplicas": 0}),
        ("daemonsets", {"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}),
    ],
)
def test_counts_of_a_new_workload_are_zero_and_not_absent(
    api: ApiClient, namespace: str, plural: str, zeros: Json
) -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod()["spec"]}
    spec: Json = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    found = created(api, f"/apis/apps/v1/namespaces/{namespace}/{plural}", {"spec": spec, "status": {"replicas": 7}})

    assert zeros.items() <= found["status"].items()


def test_ports_are_tcp_unless_they_say_otherwise(api: ApiClient, namespace: str) -> None:
    subset = {"addresses": [{"ip": "10.1.0.1"}], "ports": [{"port": 80}]}
    endpoints = created(api, f"/api/v1/namespaces/{namespace}/endpoints", {"subsets": [subset]})
    listed: Json = {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.0.1"]}], "ports": [{"port": 80}]}
    endpoint_slice = created(api, f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices", listed)

    assert endpoints["subsets"][0]["ports"] == [{"port": 80, "protocol": "TCP"}]
    assert endpoint_slice["ports"] == [{"port": 80, "protocol": "TCP", "name": ""}]


def test_a_role_is_of_the_group_of_roles(api: ApiClient) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    found = created(api, path, {"roleRef": {"kind": "ClusterRole", "name": "view", "apiGroup": ""}})

    assert found["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"


@pytest.mark.parametrize(("event_time", "status"), [("2026-01-31T12:00:00.000001Z", 201), (None, 422)])
def test_an_event_with_a_time_may_be_about_another_namespace(
    api: ApiClient, namespace: str, event_time: Any, status: int
) -> None:
    body = {
        "metadata": {"name": unique("event")},
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": "kube-system"},
        "eventTime": event_time,
        "reportingComponent": "example.com/a",
        "reportingInstance": "a",
        "action": "A",
        "reason": "A",
        "type": "Normal",
    }

    assert api.post(f"/api/v1/namespaces/{namespace}/events", body).status == status


def test_a_node_keeps_no_configuration_source(api: ApiClient) -> None:
    source = {"configMap": {"name": "a", "namespace": "default", "kubeletConfigKey": "a"}}
    found = created(api, "/api/v1/nodes", {"spec": {"configSource": source, "unschedulable": True}})

    assert found["spec"]["unschedulable"]
    assert "configSource" not in found["spec"]


def test_answers_to_reviews_hold_what_is_set(api: ApiClient, namespace: str) -> None:
    token = api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "nonsense"}}).body
    rules = {"spec": {"namespace": namespace}}
    reviewed = api.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", rules).body
    attributes = {"verb": "get", "resource": "pods", "namespace": namespace}
    access = {"spec": {"user": "nobody", "resourceAttributes": attributes}}
    local = api.post(f"/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews", access).body

    assert "authenticated" not in token["status"]
    assert reviewed["spec"] == {}
    assert local["metadata"]["namespace"] == namespace
