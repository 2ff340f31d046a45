"""NodeUnschedulable keeps pods off cordoned nodes."""

from __future__ import annotations

import pytest
from tests.unit.plugins.small_cluster import SmallCluster, node, rejected, verdicts

from bayplan.framework import ActionType, Code, Hint, Resource
from bayplan.plugins.intree.node_unschedulable import NodeUnschedulable

CORDON = "node.kubernetes.io/unschedulable"
CLUSTER = SmallCluster(node("open"), node("cordoned", unschedulable=True))


def test_a_cordoned_node_is_left_out() -> None:
    answers = verdicts(CLUSTER.plugin(NodeUnschedulable), CLUSTER.pod(), CLUSTER)

    assert answers["open"].is_success
    assert answers["cordoned"].code is Code.UNRESOLVABLE
    assert answers["cordoned"].reasons == ("node(s) were unschedulable",)


@pytest.mark.parametrize(
    ("toleration", "is_let_through"),
    [
        ({"key": CORDON, "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": CORDON, "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": CORDON, "effect": "NoSchedule"}, True),
        ({"key": CORDON, "operator": "Equal", "value": "x", "effect": "NoSchedule"}, False),
        ({"key": CORDON, "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_toleration_of_the_cordon_taint_lets_a_pod_through(toleration: dict[str, str], is_let_through: bool) -> None:
    plugin, pod = CLUSTER.plugin(NodeUnschedulable), CLUSTER.pod(tolerations=[toleration])

    assert rejected(plugin, pod, CLUSTER) == (set() if is_let_through else {"cordoned"})
    assert plugin.is_relevant(pod) is not is_let_through


def test_pods_share_answers_by_whether_they_tolerate_a_cordon() -> None:
    plugin = CLUSTER.plugin(NodeUnschedulable)
    unrelated = CLUSTER.pod(tolerations=[{"key": "gpu", "operator": "Exists"}])

    assert plugin.sign(CLUSTER.pod()) == plugin.sign(unrelated)


def test_a_node_wakes_a_pod_when_it_opens() -> None:
    event, hint = CLUSTER.plugin(NodeUnschedulable).events_to_register()[0]
    pod, opened, cordoned = CLUSTER.pod(), node(), node(unschedulable=True)

    assert (event.resource, event.action) == (Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
    assert hint(pod, None, opened) is Hint.QUEUE
    assert hint(pod, None, cordoned) is Hint.SKIP
    assert hint(pod, cordoned, opened) is Hint.QUEUE
    assert hint(pod, opened, opened) is Hint.SKIP
    assert hint(pod, opened, cordoned) is Hint.SKIP
    assert hint(pod, cordoned, cordoned) is Hint.SKIP


def test_a_pod_wakes_itself_by_the_right_toleration_alone() -> None:
    event, hint = CLUSTER.plugin(NodeUnschedulable).events_to_register()[1]
    pod, right = CLUSTER.pod("p"), [{"key": CORDON, "operator": "Exists"}]
    wrong = [{"key": "other", "operator": "Exists"}]

    assert (event.resource, event.action) == (Resource.POD, ActionType.UPDATE_POD_TOLERATION)
    assert hint(pod, pod, CLUSTER.pod("p", tolerations=right)) is Hint.QUEUE
    assert hint(pod, pod, CLUSTER.pod("p", tolerations=wrong)) is Hint.SKIP
    assert hint(pod, pod, CLUSTER.pod("other", tolerations=right)) is Hint.SKIP
