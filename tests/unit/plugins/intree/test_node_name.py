"""NodeName keeps a pod to the node that it names."""

from __future__ import annotations

from tests.unit.plugins.small_cluster import STATE, SmallCluster, node, rejected, verdicts

from bayplan.framework import ActionType, ClusterEvent, Code, Depends, Resource
from bayplan.plugins.intree.node_name import NodeName

CLUSTER = SmallCluster(node("a"), node("b"), node("c"))


def test_a_pod_without_a_node_name_fits_everywhere() -> None:
    plugin, pod = CLUSTER.plugin(NodeName), CLUSTER.pod()

    assert rejected(plugin, pod, CLUSTER) == set()
    assert not plugin.is_relevant(pod)


def test_a_pod_that_names_a_node_fits_there_alone() -> None:
    plugin, pod = CLUSTER.plugin(NodeName), CLUSTER.pod(nodeName="b")
    answers = verdicts(plugin, pod, CLUSTER)

    assert plugin.is_relevant(pod)
    assert answers["b"].is_success
    assert answers["a"].code is Code.UNRESOLVABLE
    assert answers["a"].reasons == ("node(s) didn't match the requested node name",)


def test_a_pod_that_names_a_node_which_is_not_there_fits_nowhere() -> None:
    assert rejected(CLUSTER.plugin(NodeName), CLUSTER.pod(nodeName="ghost"), CLUSTER) == {"a", "b", "c"}


def test_the_row_of_a_deleted_node_does_not_count_as_the_named_node() -> None:
    cluster = SmallCluster(node("a"), node("b"))
    cluster.cache.remove_node("a")

    answer = cluster.plugin(NodeName).filter_nodes(STATE, cluster.pod(nodeName="a"), cluster.columns)

    assert answer.ids.all()


def test_answers_are_not_remembered_because_the_name_is_not_in_the_shape() -> None:
    assert NodeName.depends is Depends.CLUSTER
    assert NodeName.filter_depends is None


def test_any_new_node_wakes_a_pod() -> None:
    [(event, hint)] = CLUSTER.plugin(NodeName).events_to_register()

    assert event == ClusterEvent(Resource.NODE, ActionType.ADD)
    assert hint is None
