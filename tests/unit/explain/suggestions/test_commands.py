"""How suggestions are done: what an API server lets happen to a pod, and what is done about the rest."""

from __future__ import annotations

import json
import shlex
from typing import Any

import msgspec
import pytest

from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.api.workload import ReplicaSet
from bayplan.explain.claims.base import Edit
from bayplan.explain.suggestions.commands import commands_for
from bayplan.explain.suggestions.search import find_changes
from bayplan.explain.whatif.cluster_copy import ClusterCopy, ClusterObjects
from bayplan.observe.time_slices import at_once
from bayplan.testing import Harness, node, pod

SELECTS_NOTHING = {"spec": {"nodeSelector": {"disk": None}}}


def owned(made: Pod, kind: str, name: str) -> Pod:
    owner = {"kind": kind, "name": name, "apiVersion": "apps/v1", "uid": "o", "controller": True}
    document: dict[str, Any] = msgspec.to_builtins(made)
    document["metadata"]["ownerReferences"] = [owner]
    return msgspec.convert(document, Pod)


def copy_with(
    waiting: Pod, others: tuple[KubeObject, ...] = (), placed: tuple[tuple[Pod, str], ...] = ()
) -> ClusterCopy:
    harness = Harness()
    objects = ClusterObjects(nodes=[node("n0", cpu=2)], placed=list(placed), others=list(others), waiting=[waiting])
    return at_once(ClusterCopy.build(objects, harness.profiles, harness.registry))


def done(waiting: Pod, patch: dict[str, Any], others: tuple[KubeObject, ...] = ()) -> tuple[list[str], str]:
    edit = Edit(kind="patchPod", name=waiting.key, patch=patch)
    return commands_for(copy_with(waiting, others), [edit])


PICKY = pod("web", cpu="100m", node_selector={"disk": "ssd"})


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}},
        {"spec": {"schedulingGates": None}},
        {"metadata": {"labels": None}},
    ],
    ids=str,
)
def test_what_may_change_is_patched_as_it_is(patch: dict[str, Any]) -> None:
    waiting = pod("web", gates=["review"], labels={"app": "web"})

    assert done(waiting, patch)[0] == [f"kubectl patch pod web -n default -p {_quoted(patch)}"]


def _quoted(patch: dict[str, Any]) -> str:
    return shlex.quote(json.dumps(patch, separators=(",", ":")))


def test_amounts_of_cpu_and_memory_are_resized() -> None:
    patch = {
        "spec": {"containers": [{"name": PICKY.spec.containers[0].name, "resources": {"requests": {"cpu": "50m"}}}]}
    }
    commands, how = done(PICKY, patch)

    assert commands == [f"kubectl patch pod web -n default --subresource resize -p {_quoted(patch)}"]
    assert how == ""


def test_a_pod_of_nobody_is_made_anew_from_itself() -> None:
    commands, _ = done(PICKY, SELECTS_NOTHING)

    assert commands == [
        "kubectl get pod web -n default -o json"
        f" | kubectl patch --local -f - -p {_quoted(SELECTS_NOTHING)} -o json"
        " | kubectl replace --force -f -"
    ]


TEMPLATE = _quoted({"spec": {"template": SELECTS_NOTHING}})


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("DaemonSet", "agent", [f"kubectl patch daemonset agent -n default -p {TEMPLATE}"]),
        (
            "StatefulSet",
            "db",
            [f"kubectl patch statefulset db -n default -p {TEMPLATE}", "kubectl delete pod web -n default"],
        ),
        (
            "ReplicaSet",
            "web-abc",
            [f"kubectl patch replicaset web-abc -n default -p {TEMPLATE}", "kubectl delete pod web -n default"],
        ),
    ],
)
def test_an_owner_has_the_template(kind: str, name: str, expected: list[str]) -> None:
    assert done(owned(PICKY, kind, name), SELECTS_NOTHING)[0] == expected


def test_the_deployment_behind_a_replica_set_has_the_template() -> None:
    replicas = msgspec.convert(
        {
            "metadata": {
                "name": "web-abc",
                "namespace": "default",
                "ownerReferences": [{"kind": "Deployment", "name": "web", "controller": True}],
            }
        },
        ReplicaSet,
    )
    expected = [f"kubectl patch deployment web -n default -p {TEMPLATE}"]

    assert done(owned(PICKY, "ReplicaSet", "web-abc"), SELECTS_NOTHING, (replicas,))[0] == expected
    hashed = msgspec.convert({**msgspec.to_builtins(PICKY), "metadata": {"name": "web", "namespace": "default"}}, Pod)
    hashed.metadata.labels = {"pod-template-hash": "abc"}
    assert done(owned(hashed, "ReplicaSet", "web-abc"), SELECTS_NOTHING)[0] == expected


def test_what_no_command_does_is_said() -> None:
    commands, how = done(owned(PICKY, "Rollout", "web"), SELECTS_NOTHING)

    assert (commands, how) == ([], "Make the change where the pod comes from: Rollout web.")
    twin = Edit(kind="addNode", name="n0-more-1", object={})
    assert commands_for(copy_with(PICKY), [twin]).how == "Add a node of that kind."


def test_tolerations_that_admission_adds_stay_out_of_templates() -> None:
    added = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    patch = {"spec": {"nodeSelector": {"disk": None}, "tolerations": [added, {"key": "a", "operator": "Exists"}]}}
    commands, _ = done(owned(PICKY, "DaemonSet", "agent"), patch)

    assert "not-ready" not in commands[0] and '"key":"a"' in commands[0]


def test_nobody_is_asked_to_delete_pods_that_come_back() -> None:
    """Those of DaemonSets come back to their node, so that their leaving helps nobody."""
    agent = owned(pod("agent", cpu="2", node="n0"), "DaemonSet", "agent")
    waiting = pod("web", cpu="1")
    changes = at_once(find_changes(copy_with(waiting, placed=((agent, "n0"),)), waiting))

    assert [each for each in changes.suggestions if any(edit.kind == "deletePod" for edit in each.edits)] == []


def test_a_daemon_set_is_not_asked_to_leave_its_affinity_out() -> None:
    pinned = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["elsewhere"]}]}
    document: dict[str, Any] = msgspec.to_builtins(owned(pod("agent"), "DaemonSet", "agent"))
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pinned]}}
    document["spec"]["affinity"] = {"nodeAffinity": required}
    waiting = msgspec.convert(document, Pod)
    changes = at_once(find_changes(copy_with(waiting), waiting))

    assert [each for each in changes.suggestions if each.edits] == []
