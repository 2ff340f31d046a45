"""NodeDeclaredFeatures keeps pods to nodes that declare the features they use."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.small_cluster import STATE, SmallCluster, node, rejected, verdicts

from bayplan.framework import SKIP, ActionType, Code, Hint, Resource
from bayplan.plugins.intree.node_declared_features import NodeDeclaredFeatures

RESTART, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
RESTARTING = {"name": "c", "restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}
CLUSTER = SmallCluster(
    node("none"),
    node("restart", status={"declaredFeatures": ["Other", RESTART]}),
    node("both", status={"declaredFeatures": [RESTART, USERS]}),
)


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({}, {"none", "restart", "both"}),
        ({"containers": [RESTARTING]}, {"restart", "both"}),
        ({"initContainers": [RESTARTING]}, {"restart", "both"}),
        ({"containers": [{"name": "c", "restartPolicyRules": [{"action": "Restart"}]}]}, {"none", "restart", "both"}),
        ({"hostNetwork": True, "hostUsers": False}, {"both"}),
        ({"hostNetwork": True}, {"none", "restart", "both"}),
        ({"hostNetwork": True, "hostUsers": True}, {"none", "restart", "both"}),
        ({"hostUsers": False}, {"none", "restart", "both"}),
        ({"containers": [RESTARTING], "hostNetwork": True, "hostUsers": False}, {"both"}),
    ],
)
def test_a_node_must_declare_what_the_pod_uses(spec: dict[str, Any], fits: set[str]) -> None:
    plugin, pod = CLUSTER.plugin(NodeDeclaredFeatures), CLUSTER.pod(**spec)

    assert rejected(plugin, pod, CLUSTER) == {"none", "restart", "both"} - fits


def test_the_reason_and_code_are_those_of_kube_scheduler() -> None:
    answer = verdicts(CLUSTER.plugin(NodeDeclaredFeatures), CLUSTER.pod(containers=[RESTARTING]), CLUSTER)["none"]

    assert answer.code is Code.UNRESOLVABLE
    assert answer.reasons == ("node(s) didn't match Pod's required features",)


def test_a_pod_that_uses_none_is_skipped() -> None:
    plugin, needy = CLUSTER.plugin(NodeDeclaredFeatures), CLUSTER.pod(containers=[RESTARTING])

    assert plugin.pre_filter(STATE, CLUSTER.pod(), CLUSTER.columns) is SKIP
    assert not plugin.is_relevant(CLUSTER.pod())
    assert plugin.pre_filter(STATE, needy, CLUSTER.columns) is None
    assert plugin.is_relevant(needy)
    assert plugin.sign(needy) == frozenset((RESTART,))


def test_a_node_wakes_a_pod_by_any_change_of_its_features() -> None:
    event, hint = CLUSTER.plugin(NodeDeclaredFeatures).events_to_register()[0]
    pod, bare, other = CLUSTER.pod(), node(), node(status={"declaredFeatures": ["Other"]})

    assert (event.resource, event.action) == (Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE)
    assert hint(pod, None, bare) is Hint.QUEUE
    assert hint(pod, bare, other) is Hint.QUEUE
    assert hint(pod, other, other) is Hint.SKIP
    assert hint(pod, bare, node(status={"declaredFeatures": []})) is Hint.SKIP


def test_a_pod_wakes_itself_by_needing_something_else() -> None:
    event, hint = CLUSTER.plugin(NodeDeclaredFeatures).events_to_register()[1]
    plain, needy = CLUSTER.pod("p"), CLUSTER.pod("p", containers=[RESTARTING])

    assert (event.resource, event.action) == (Resource.POD, ActionType.UPDATE)
    assert hint(needy, needy, plain) is Hint.QUEUE
    assert hint(needy, needy, needy) is Hint.SKIP
    assert hint(needy, None, plain) is Hint.QUEUE
    assert hint(needy, CLUSTER.pod("other", containers=[RESTARTING]), CLUSTER.pod("other")) is Hint.SKIP
