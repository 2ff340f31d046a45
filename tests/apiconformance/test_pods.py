"""Pods: defaults, priority, gates, binding, graceful deletion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.apiconformance.client import MERGE_PATCH, STRATEGIC_PATCH, ApiClient, Json, binding, node, pod, unique


def condition(found: Json, kind: str) -> Json:
    conditions = found.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), {})


def test_a_pod_gets_the_defaults_scheduling_depends_on(api: ApiClient, pods: str) -> None:
    body = pod("a")
    body["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    spec = api.create(pods, body)["spec"]

    expected = {
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert {name: spec[name] for name in expected} == expected
    container = spec["containers"][0]
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert container["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    tolerations = {(t["key"], t["effect"], t["tolerationSeconds"]) for t in spec["tolerations"]}
    assert tolerations == {
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    }


def test_default_tolerations_are_added_again_when_an_update_lacks_them(api: ApiClient, pods: str) -> None:
    created = api.create(pods, pod("a"))
    body = created | {"spec": {name: value for name, value in created["spec"].items() if name != "tolerations"}}
    updated = api.put(f"{pods}/a", body)

    assert updated.status == 200, updated.body
    assert updated.body["spec"]["tolerations"] == created["spec"]["tolerations"]


def test_the_pod_of_a_template_gets_the_defaults_of_a_pod(api: ApiClient, namespace: str) -> None:
    body = {"metadata": {"name": "a"}, "template": {"spec": pod("")["spec"]}}
    created = api.create(f"/api/v1/namespaces/{namespace}/podtemplates", body)

    assert created["metadata"]["generation"] == 1
    assert created["template"]["spec"]["restartPolicy"] == "Always"
    assert created["template"]["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert api.delete(f"/api/v1/namespaces/{namespace}/podtemplates/a").body["kind"] == "PodTemplate"


def test_a_new_pod_is_pending_with_a_service_class(api: ApiClient, pods: str) -> None:
    best_effort = api.create(pods, pod("a"))
    body = pod("b")
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    burstable = api.create(pods, body)
    body = pod("c")
    body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    guaranteed = api.create(pods, body)

    classes = [one["status"]["qosClass"] for one in (best_effort, burstable, guaranteed)]
    assert classes == ["BestEffort", "Burstable", "Guaranteed"]
    assert best_effort["status"]["phase"] == "Pending"


def test_host_network_pods_claim_their_ports_on_the_node(api: ApiClient, pods: str) -> None:
    body = pod("a", hostNetwork=True)
    body["spec"]["containers"][0]["ports"] = [{"containerPort": 8080}]
    port = api.create(pods, body)["spec"]["containers"][0]["ports"][0]

    assert port["hostPort"] == 8080


@pytest.fixture
def priority_class(api: ApiClient) -> Iterator[str]:
    name = unique("high")
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    api.create(path, {"metadata": {"name": name}, "value": 1000, "preemptionPolicy": "Never"})
    yield name
    api.delete(f"{path}/{name}")


def test_priority_comes_from_the_class(api: ApiClient, pods: str, priority_class: str) -> None:
    spec = api.create(pods, pod("a", priorityClassName=priority_class))["spec"]
    system = api.create(pods, pod("b", priorityClassName="system-node-critical"))["spec"]

    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    assert system["priority"] == 2_000_001_000


def test_an_unknown_priority_class_is_forbidden(api: ApiClient, pods: str) -> None:
    answer = api.post(pods, pod("a", priorityClassName="no-such-class"))

    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == 'pods "a" is forbidden: no PriorityClass with name no-such-class was found'


def test_a_priority_of_ones_own_is_forbidden(api: ApiClient, pods: str) -> None:
    assert api.post(pods, pod("a", priority=5)).status == 403


def test_match_label_keys_become_selector_requirements(api: ApiClient, pods: str) -> None:
    selector = {"matchLabels": {"app": "x"}}
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        "matchLabelKeys": ["version"],
    }
    term = {"topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["version"]}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    body = pod("a", topologySpreadConstraints=[constraint], affinity=affinity)
    body["metadata"]["labels"] = {"app": "x", "version": "7"}
    spec = api.create(pods, body)["spec"]

    requirement = {"key": "version", "operator": "In", "values": ["7"]}
    merged = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"]
    assert merged["matchExpressions"] == [requirement]
    assert spec["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == [requirement]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [{"name": "a"}]}, "spec.containers[0].image: Required value"),
        ({"restartPolicy": "Sometimes"}, 'spec.restartPolicy: Unsupported value: "Sometimes"'),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "value must be empty when `operator` is"),
        (
            {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
            "must be greater than zero",
        ),
        ({"nodeSelector": {"a": "b c"}}, "a valid label must be an empty string or consist of"),
    ],
)
def test_a_bad_pod_is_invalid(api: ApiClient, pods: str, change: Json, expected: str) -> None:
    body = pod("a")
    body["spec"] |= change
    answer = api.post(pods, body)

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert expected in answer.message
    assert answer.message.startswith('Pod "a" is invalid: ')


def test_requests_over_the_limit_are_invalid(api: ApiClient, pods: str) -> None:
    body = pod("a")
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    answer = api.post(pods, body)

    assert answer.status == 422
    assert "must be less than or equal to cpu limit of 1" in answer.message


def test_the_spec_of_a_pod_is_mostly_fixed(api: ApiClient, pods: str) -> None:
    api.create(pods, pod("a"))
    answer = api.patch(f"{pods}/a", {"spec": {"nodeSelector": {"a": "b"}}})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "pod updates may not change fields other than" in answer.message
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "example/app:2"}]
    assert api.patch(f"{pods}/a", image, "application/json-patch+json").status == 200


_TOLERATIONS = [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]
_TERM = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
_OTHER_TERM = {"matchExpressions": [{"key": "b", "operator": "Exists"}]}
_BOTH = {"matchExpressions": [*_TERM["matchExpressions"], *_OTHER_TERM["matchExpressions"]]}


def _required(*terms: Json) -> Json:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def _changed(part: str, value: Any) -> Json:
    return {"containers": [{"name": "main", part: value}]}


_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {"a": "b"}},
}
_REFUSED, _TAKEN = 422, 200


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"nodeSelector": {"a": "b"}}, _REFUSED),
        ({"affinity": _required(_TERM)}, _REFUSED),
        ({"topologySpreadConstraints": [_SPREAD]}, _REFUSED),
        ({"volumes": [{"name": "more", "emptyDir": {}}]}, _REFUSED),
        ({"terminationGracePeriodSeconds": 5}, _REFUSED),
        ({"schedulerName": "another"}, _REFUSED),
        ({"priorityClassName": "another"}, _REFUSED),
        ({"hostNetwork": True}, _REFUSED),
        ({"runtimeClassName": "another"}, _REFUSED),
        (_changed("resources", {"requests": {"cpu": "1m"}}), _REFUSED),
        (_changed("ports", [{"containerPort": 80, "hostPort": 80}]), _REFUSED),
        (_changed("env", [{"name": "a", "value": "b"}]), _REFUSED),
        (_changed("image", "example/app:2"), _TAKEN),
        ({"containers": [{"name": "second", "image": "example/app:1"}]}, _REFUSED),
        ({"tolerations": []}, _REFUSED),
        ({"tolerations": [{**_TOLERATIONS[0], "effect": "NoSchedule", "tolerationSeconds": None}]}, _REFUSED),
        ({"tolerations": [*_TOLERATIONS, {"key": "more", "operator": "Exists"}]}, _TAKEN),
        ({"tolerations": [{**_TOLERATIONS[0], "tolerationSeconds": 5}]}, _TAKEN),
        ({"tolerations": [*_TOLERATIONS, {"key": "more", "operator": "Wrong"}]}, _REFUSED),
        ({"activeDeadlineSeconds": 99}, _TAKEN),
        ({"activeDeadlineSeconds": 101}, _REFUSED),
        ({"activeDeadlineSeconds": None}, _REFUSED),
        ({"schedulingGates": [{"name": "example.com/new"}]}, _REFUSED),
    ],
    ids=str,
)
def test_what_of_a_pod_may_change(api: ApiClient, pods: str, change: Json, status: int) -> None:
    api.create(pods, pod("a", tolerations=_TOLERATIONS, activeDeadlineSeconds=100))
    if change.get("tolerations") is not None:
        # The server adds its own, which must stay.
        added = api.get(f"{pods}/a").body["spec"]["tolerations"][1:]
        change = {"tolerations": change["tolerations"] + (added if change["tolerations"] else [])}

    answer = api.patch(f"{pods}/a", {"spec": change}, STRATEGIC_PATCH)

    assert answer.status == status, answer.message


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"nodeSelector": {"c": "d"}}, _TAKEN),
        ({"nodeSelector": {"a": "other"}}, _REFUSED),
        ({"nodeSelector": {"a": None}}, _REFUSED),
        ({"affinity": _required(_BOTH)}, _TAKEN),
        ({"affinity": _required(_OTHER_TERM)}, _REFUSED),
        ({"affinity": _required(_TERM, _OTHER_TERM)}, _REFUSED),
        ({"affinity": None}, _REFUSED),
        ({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}}, _REFUSED),
        ({"topologySpreadConstraints": [_SPREAD]}, _REFUSED),
        ({"schedulingGates": None}, _TAKEN),
        ({"schedulingGates": None, "nodeSelector": {"a": None}}, _REFUSED),
        ({"schedulingGates": None, "nodeSelector": {"c": "d"}}, _TAKEN),
    ],
    ids=str,
)
def test_what_of_a_gated_pod_may_change(api: ApiClient, pods: str, change: Json, status: int) -> None:
    gates = [{"name": "example.com/wait"}]
    api.create(pods, pod("a", schedulingGates=gates, nodeSelector={"a": "b"}, affinity=_required(_TERM)))

    answer = api.patch(f"{pods}/a", {"spec": change}, MERGE_PATCH)

    assert answer.status == status, answer.message


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"requests": {"cpu": "50m"}}, _TAKEN),
        ({"requests": {"memory": "32Mi"}, "limits": {"memory": "64Mi"}}, _TAKEN),
        ({"requests": {"cpu": None}}, _REFUSED),
        ({"requests": {"example.com/card": "2"}, "limits": {"example.com/card": "2"}}, _REFUSED),
        ({"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "64Mi"}}, _REFUSED),
        ({"requests": {"cpu": "50m"}, "limits": {"cpu": "1m"}}, _REFUSED),
    ],
    ids=str,
)
def test_what_of_a_pod_may_be_resized(api: ApiClient, pods: str, change: Json, status: int) -> None:
    body = pod("a")
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    api.create(pods, body)

    answer = api.patch(f"{pods}/a/resize", {"spec": _changed("resources", change)}, STRATEGIC_PATCH)

    assert answer.status == status, answer.message


# ---- gates


def test_a_gated_pod_says_so_and_cannot_be_bound(api: ApiClient, pods: str) -> None:
    created = api.create(pods, pod("a", schedulingGates=[{"name": "example.com/wait"}]))
    scheduled = condition(created, "PodScheduled")

    assert (scheduled["status"], scheduled["reason"]) == ("False", "SchedulingGated")
    answer = api.post(f"{pods}/a/binding", binding("a", "n1"))
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "has non-empty .spec.schedulingGates" in answer.message
    added = api.patch(f"{pods}/a", {"spec": {"schedulingGates": [{"name": "x.io/1"}, {"name": "example.com/wait"}]}})
    assert added.status == 422
    assert api.patch(f"{pods}/a", {"spec": {"schedulingGates": None}}).status == 200


# ---- binding


def test_a_binding_assigns_a_pod_once(api: ApiClient, pods: str) -> None:
    api.create(pods, pod("a"))
    answer = api.post(f"{pods}/a/binding", binding("a", "n1", annotations={"note": "by us"}))

    assert answer.status == 201
    assert (answer.body["kind"], answer.body["status"], answer.body["code"]) == ("Status", "Success", 201)
    bound = api.get(f"{pods}/a").body
    assert bound["spec"]["nodeName"] == "n1"
    assert condition(bound, "PodScheduled")["status"] == "True"
    assert bound["metadata"]["annotations"]["note"] == "by us"
    again = api.post(f"{pods}/a/binding", binding("a", "n2"))
    assert (again.status, again.reason) == (409, "Conflict")
    assert again.message == (
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"'
    )


def test_a_binding_for_another_uid_conflicts(api: ApiClient, pods: str) -> None:
    created = api.create(pods, pod("a"))
    wrong = binding("a", "n1", uid="11111111-2222-3333-4444-555555555555")
    answer = api.post(f"{pods}/a/binding", wrong)

    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "UID in precondition: 11111111-2222-3333-4444-555555555555" in answer.message
    right = binding("a", "n1", uid=created["metadata"]["uid"])
    assert api.post(f"{pods}/a/binding", right).status == 201


def test_a_binding_clears_the_nomination(api: ApiClient, pods: str) -> None:
    api.create(pods, pod("a"))
    nominated = api.patch(f"{pods}/a/status", {"status": {"nominatedNodeName": "n1"}})
    assert nominated.body["status"]["nominatedNodeName"] == "n1"
    api.post(f"{pods}/a/binding", binding("a", "n1"))

    assert "nominatedNodeName" not in api.get(f"{pods}/a").body["status"]


def test_a_binding_without_a_target_is_refused(api: ApiClient, pods: str) -> None:
    """kube-apiserver answers 500 here, where an honest server says that the request is invalid."""
    api.create(pods, pod("a"))
    answer = api.post(f"{pods}/a/binding", binding("a", ""))

    assert answer.status in (422, 500)
    assert "target.name: Required value" in answer.message
    assert "nodeName" not in api.get(f"{pods}/a").body["spec"]


def test_a_binding_of_a_missing_pod_is_not_found(api: ApiClient, pods: str) -> None:
    answer = api.post(f"{pods}/nope/binding", binding("nope", "n1"))

    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.message == 'pods "nope" not found'


def test_the_old_bindings_resource_works_too(api: ApiClient, pods: str, namespace: str) -> None:
    api.create(pods, pod("a"))
    answer = api.post(f"/api/v1/namespaces/{namespace}/bindings", binding("a", "n1"))

    assert answer.status == 201
    assert api.get(f"{pods}/a").body["spec"]["nodeName"] == "n1"


# ---- deletion


def test_an_unassigned_pod_is_deleted_at_once(api: ApiClient, pods: str) -> None:
    api.create(pods, pod("a"))
    answer = api.delete(f"{pods}/a")

    assert (answer.status, answer.body["kind"]) == (200, "Pod")
    assert api.get(f"{pods}/a").status == 404


def test_an_assigned_pod_gets_its_grace_period(api: ApiClient, pods: str, node_name: str) -> None:
    api.create("/api/v1/nodes", node(node_name))
    api.create(pods, pod("a", nodeName=node_name))
    answer = api.delete(f"{pods}/a")

    assert answer.status == 200
    metadata = api.get(f"{pods}/a").body["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert metadata["deletionTimestamp"]
    refused = api.post(f"{pods}/a/binding", binding("a", "n2"))
    assert refused.status == 409
    shorter = api.delete(f"{pods}/a", {"gracePeriodSeconds": 5})
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 5
    assert api.delete(f"{pods}/a", {"gracePeriodSeconds": 0}).status == 200
    assert api.get(f"{pods}/a").status == 404
