"""The control plane itself: what every other end-to-end test relies on."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.controlplane import CommandFailed, ControlPlane
from tests.controlplane.rest import RestClient
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.e2e


def node(name: str) -> dict[str, Any]:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {
        "capacity": resources,
        "allocatable": resources,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Test"}],
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "example.test/main:1", "resources": {"requests": {"cpu": "500m"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def create(cluster: ControlPlane, *objects: dict[str, Any]) -> None:
    document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(document))


def read_pod(cluster: ControlPlane, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(cluster.kubectl("get", "pod", name, "-o", "json").stdout)
    return document


def wait_until_bound(cluster: ControlPlane, name: str) -> str:
    cluster.kubectl("wait", "pod", name, "--for=jsonpath={.spec.nodeName}", "--timeout=90s")
    return str(read_pod(cluster, name)["spec"]["nodeName"])


def test_both_versions_are_the_pinned_release(control_plane: ControlPlane) -> None:
    versions = json.loads(control_plane.kubectl("version", "-o", "json").stdout)

    assert versions["clientVersion"]["gitVersion"] == versions["serverVersion"]["gitVersion"]
    assert versions["serverVersion"]["gitVersion"].startswith("v1.36.")
    assert (versions["serverVersion"]["major"], versions["serverVersion"]["minor"]) == ("1", "36")


def test_a_created_pod_is_defaulted_and_needs_no_controller_manager(empty_control_plane: ControlPlane) -> None:
    """Defaulting and the Priority admission stay on; service-account tokens, which need a controller, are off."""
    create(empty_control_plane, pod("plain"))

    spec = read_pod(empty_control_plane, "plain")["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["priority"] == 0
    assert spec["preemptionPolicy"] == "PreemptLowerPriority"
    assert {toleration["key"] for toleration in spec["tolerations"]} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
    assert "volumes" not in spec


def test_a_new_node_is_not_tainted(empty_control_plane: ControlPlane) -> None:
    create(empty_control_plane, node("fresh"))

    document = json.loads(empty_control_plane.kubectl("get", "node", "fresh", "-o", "json").stdout)
    assert "taints" not in document["spec"]
    assert document["status"]["allocatable"]["cpu"] == "4"


def test_the_real_kube_scheduler_binds_a_pod_and_says_so(empty_control_plane: ControlPlane) -> None:
    create(empty_control_plane, node("n1"), pod("web"))

    with empty_control_plane.start_kube_scheduler() as scheduler:
        assert wait_until_bound(empty_control_plane, "web") == "n1"
        assert (
            'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1' in scheduler.metrics()
        )
    assert not scheduler.is_running
    wait_for_event(empty_control_plane, reason="Scheduled", text="Successfully assigned default/web to n1")


def wait_for_event(cluster: ControlPlane, *, reason: str, text: str) -> None:
    """Events are written after the bind and on their own time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    seen = ""
    while time.monotonic() < deadline:
        seen = cluster.kubectl("get", "events", f"--field-selector=reason={reason}").stdout
        if text in seen:
            return
        time.sleep(0.2)
    pytest.fail(f"no event {reason} with `{text}`; seen:\n{seen}")


def test_data_and_address_survive_restarts_of_both_servers(empty_control_plane: ControlPlane) -> None:
    create(empty_control_plane, node("n1"), pod("web"))
    uid, url = read_pod(empty_control_plane, "web")["metadata"]["uid"], empty_control_plane.url

    empty_control_plane.restart_apiserver()
    assert read_pod(empty_control_plane, "web")["metadata"]["uid"] == uid
    empty_control_plane.restart_etcd()
    assert read_pod(empty_control_plane, "web")["metadata"]["uid"] == uid
    empty_control_plane.kill_apiserver()
    empty_control_plane.kill_etcd()
    empty_control_plane.start_etcd()
    empty_control_plane.start_apiserver()

    assert read_pod(empty_control_plane, "web")["metadata"]["uid"] == uid
    assert empty_control_plane.url == url


def test_a_running_kube_scheduler_goes_on_after_the_api_server_was_killed(empty_control_plane: ControlPlane) -> None:
    create(empty_control_plane, node("n1"))

    with empty_control_plane.start_kube_scheduler():
        empty_control_plane.kill_apiserver()
        empty_control_plane.start_apiserver()
        create(empty_control_plane, pod("late"))

        assert wait_until_bound(empty_control_plane, "late") == "n1"


def test_without_a_name_only_health_can_be_read(control_plane: ControlPlane) -> None:
    stranger = RestClient(control_plane.url, ca_file=control_plane.ca_file)

    assert stranger.request("GET", "/readyz").status == 200
    assert stranger.request("GET", "/version").status == 401
    assert stranger.request("GET", "/api/v1/pods").status == 401


def test_tokens_carry_their_user_and_rbac_decides(control_plane: ControlPlane) -> None:
    def status_with(token: str) -> int:
        client = RestClient(control_plane.url, ca_file=control_plane.ca_file, token=token)
        return client.request("GET", "/api/v1/nodes").status

    assert status_with(control_plane.token_for("admin")) == 200
    assert status_with(control_plane.token_for("nobody")) == 403
    assert status_with("not-a-token") == 401


def test_a_user_made_while_running_gets_a_token_and_a_certificate(control_plane: ControlPlane) -> None:
    token = control_plane.token_for("ann", ["team-a", "team-b"])
    kubeconfigs = [control_plane.token_kubeconfig(token), control_plane.kubeconfig_for("ann", ["team-a", "team-b"])]

    for kubeconfig in kubeconfigs:
        answer = control_plane.kubectl("--kubeconfig", str(kubeconfig), "auth", "whoami", "-o", "json").stdout
        who = json.loads(answer)["status"]["userInfo"]
        assert who["username"] == "ann"
        assert {"team-a", "team-b"} <= set(who["groups"])
    assert control_plane.token_for("ann", ["team-a", "team-b"]) == token


def test_a_failing_kubectl_raises_what_it_printed(control_plane: ControlPlane) -> None:
    with pytest.raises(CommandFailed, match="NotFound"):
        control_plane.kubectl("get", "pod", "no-such-pod")
    assert control_plane.kubectl("get", "pod", "no-such-pod", check=False).returncode == 1


def test_clear_removes_all_that_a_test_made(empty_control_plane: ControlPlane) -> None:
    create(empty_control_plane, node("n1"), pod("web"))
    empty_control_plane.kubectl("create", "namespace", "team")
    empty_control_plane.kubectl("create", "configmap", "settings", "-n", "team")
    empty_control_plane.kubectl("create", "priorityclass", "gold", "--value=10")
    # A pod on a node waits for its kubelet when deleted, and a namespace for its controller: neither exists here.
    binding = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n1"}}
    assert (
        empty_control_plane.admin.request("POST", "/api/v1/namespaces/default/pods/web/binding", binding).status == 201
    )

    empty_control_plane.clear()

    assert empty_control_plane.kubectl("get", "pods,nodes,configmaps", "-n", "team", "-o", "name").stdout == ""
    names = empty_control_plane.kubectl("get", "namespaces,priorityclasses,pods", "-o", "name").stdout.split()
    assert "namespace/team" not in names
    assert "pod/web" not in names
    assert [name for name in names if name.startswith("priorityclass")] == [
        "priorityclass.scheduling.k8s.io/system-cluster-critical",
        "priorityclass.scheduling.k8s.io/system-node-critical",
    ]


def test_helm_runs_against_it(empty_control_plane: ControlPlane) -> None:
    assert empty_control_plane.helm("version", "--short").stdout.startswith("v3.")
    assert json.loads(empty_control_plane.helm("list", "-A", "-o", "json").stdout) == []
