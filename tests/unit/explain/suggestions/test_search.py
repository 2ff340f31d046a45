"""Counterfactuals: whatever is suggested works when it is done, on clusters that kube-scheduler could not place on."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import islice
from typing import Any

import msgspec
import pytest
from tests.patching import merged
from tests.unit.explain.golden import Case, copy_of, objects_in, read_pod, registry, scheduler_for, single_pod_cases

from bayplan.api.meta import KubeObject
from bayplan.api.pod import Container
from bayplan.app.offline import OfflineScheduler
from bayplan.explain.claims.base import Edit
from bayplan.explain.claims.pods import Lacks, Without
from bayplan.explain.model import Changes, Suggestion
from bayplan.explain.suggestions.search import find_changes
from bayplan.explain.whatif.cluster_copy import ClusterCopy, ClusterObjects
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint
from bayplan.observe.time_slices import at_once
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from bayplan.plugins.community.capacity_scheduling.plugin import CapacityScheduling
from bayplan.plugins.community.coscheduling.plugin import Coscheduling
from bayplan.plugins.community.coscheduling.pod_group import POD_GROUP_LABEL
from bayplan.plugins.community.expression_policy import ExpressionPolicy
from bayplan.plugins.community.gpu_share import GpuShareBestFit
from bayplan.plugins.community.node_crd_resource_fit import ClusterScopedResource, NodeCRDResourceFit
from bayplan.testing import Harness, node, pod, taint

UNSCHEDULABLE = list(islice((case for case in single_pod_cases() if "message" in case["expect"]), 60))


def edited(case: Case, edits: list[Edit]) -> Case:
    """The case as its author would have written it after the change."""
    case = copy.deepcopy(case)
    for edit in edits:
        if edit.kind == "patchPod":
            case["pod"] = merged(case["pod"], edit.patch)
        elif edit.kind in ("addNode", "addPod", "create"):
            case["objects"].append(edit.object)
        else:
            case["objects"] = [_changed(item, edit) for item in case["objects"]]
            case["objects"] = [item for item in case["objects"] if item is not None]
    return case


def _changed(item: Any, edit: Edit) -> Any:
    metadata = item["metadata"]
    if edit.kind == "patchNode" and item["kind"] == "Node" and metadata["name"] == edit.name:
        return merged(item, edit.patch)
    key = f"{metadata.get('namespace', 'default')}/{metadata['name']}"
    if item["kind"] == "ResourceClaim" and key == edit.name:
        is_released = edit.kind == "releaseClaim"
        return (
            {name: part for name, part in item.items() if name != "status"} if is_released else merged(item, edit.patch)
        )
    return None if edit.kind == "deletePod" and item["kind"] == "Pod" and key == edit.name else item


@pytest.mark.parametrize("case", UNSCHEDULABLE, ids=lambda case: case["id"])
def test_every_suggested_change_makes_the_pod_schedulable(case: Case) -> None:
    changes = at_once(find_changes(copy_of(case), read_pod(case)))

    for suggestion in (each for each in changes.suggestions if each.edits):
        after = edited(case, suggestion.edits)
        decision = scheduler_for(after).decide(scheduler_for(after).info(read_pod(after)))
        assert decision.node_name, f"{suggestion.sentence} {suggestion.edits}: {decision.message}"
        assert decision.feasible_nodes == suggestion.nodes


def test_nearly_every_unschedulable_case_gets_a_suggestion() -> None:
    """What the scheduler's own configuration forbids is answered by turning the plugin off; else it says why not."""
    for case in UNSCHEDULABLE:
        changes = at_once(find_changes(copy_of(case), read_pod(case)))
        assert changes.suggestions, case["id"]


@pytest.mark.parametrize("case", UNSCHEDULABLE[:20], ids=lambda case: case["id"])
def test_without_a_plugin_as_many_nodes_fit_as_is_said(case: Case) -> None:
    changes = at_once(find_changes(copy_of(case), read_pod(case)))
    name = read_pod(case).spec.scheduler_name
    profile = next(p for p in copy_of(case).profiles if p.scheduler_name == name)

    for entry in (each.claim for each in changes.without):
        assert isinstance(entry, Without)
        points = {
            point: tuple(plugin for plugin in names if plugin != entry.plugin or point is ExtensionPoint.QUEUE_SORT)
            for point, names in profile.points.items()
        }
        other = OfflineScheduler([replace(profile, points=points)], registry(), objects_in(case))
        assert entry.nodes == other.decide(other.info(read_pod(case))).feasible_nodes


def changes_for(harness_nodes: list[Any], waiting: Any, running: tuple[Any, ...] = ()) -> Changes:
    harness = Harness()
    cluster = ClusterObjects(
        nodes=harness_nodes, placed=[(each, each.spec.node_name) for each in running], others=[], waiting=[waiting]
    )
    return at_once(find_changes(at_once(ClusterCopy.build(cluster, harness.profiles, harness.registry)), waiting))


def sentences(found: list[Suggestion]) -> str:
    return "\n".join(suggestion.sentence for suggestion in found)


def test_a_missing_toleration_is_named() -> None:
    changes = changes_for([node("n1", taints=[taint("team=a:NoSchedule")])], pod("web"))

    assert changes.suggestions[0].sentence == "It would fit on n1 if the pod tolerated team=a:NoSchedule."
    patch = changes.suggestions[0].edits[0].patch
    assert patch["spec"]["tolerations"][-1] == {
        "key": "team",
        "operator": "Equal",
        "value": "a",
        "effect": "NoSchedule",
    }


def test_the_nearest_miss_is_told_in_amounts() -> None:
    nodes = [node("near", cpu=2), node("far", cpu=1)]
    changes = changes_for(nodes, pod("web", cpu="2500m"))

    assert changes.nearest[0].claim == Lacks(pod="default/web", node="near", amounts={"cpu": "500m"})
    assert "The pod asks 2.5 CPU; the largest node has 2 CPU." in sentences(changes.suggestions)
    assert "if the pod asked 2 instead of 2.5 CPU" in sentences(changes.suggestions)


@pytest.mark.parametrize("resource", ["cpu", "nvidia.com/gpu"])
def test_a_pod_is_not_told_to_do_without_what_it_asks_for(resource: str) -> None:
    """Every pod that wants GPUs would run without them."""
    running = (pod("first", requests={resource: 2}, node="n1"),)
    changes = changes_for(
        [node("n1", cpu=2, allocatable={"nvidia.com/gpu": 2})], pod("web", requests={resource: 1}), running
    )

    assert [each.sentence for each in changes.suggestions] == [
        "It would fit on n1 if default/first left n1; that deletes default/first, which nobody makes again.",
        "It would fit on n1-more-1 if there were one more node like n1.",
    ]


def test_a_pod_that_asks_for_what_no_node_offers_is_told_that_it_would_run_without() -> None:
    changes = changes_for([node("n1", cpu=2)], pod("web", requests={"example.com/fpga": 1}))

    assert [each.sentence for each in changes.suggestions] == [
        "No node offers example.com/fpga; the pod asks 1 example.com/fpga.",
        "It would fit on n1 if the pod asked 0 instead of 1 example.com/fpga.",
    ]


def test_pods_that_would_have_to_leave_are_named_and_are_no_more_than_needed() -> None:
    running = (pod("small", cpu=1, node="n1"), pod("large", cpu=3, node="n1"))
    changes = changes_for([node("n1", cpu=4)], pod("web", cpu=1), running)

    assert "if default/small left n1" in sentences(changes.suggestions) or "if default/large left n1" in sentences(
        changes.suggestions
    )
    assert all(len([e for e in s.edits if e.kind == "deletePod"]) <= 1 for s in changes.suggestions)


def test_another_node_is_suggested_when_all_are_full() -> None:
    running = (pod("hog", cpu=4, node="n1"),)
    changes = changes_for([node("n1", cpu=4)], pod("web", cpu=4), running)

    assert changes.suggestions[-1].sentence == "It would fit on n1-more-1 if there were one more node like n1."


def test_a_pod_that_fits_needs_no_change() -> None:
    assert changes_for([node("n1")], pod("web")).schedulable


def test_trying_leaves_the_copy_as_it_was() -> None:
    case = UNSCHEDULABLE[0]
    copied = copy_of(case)
    first = at_once(find_changes(copied, read_pod(case)))

    assert at_once(find_changes(copied, read_pod(case))) == first


def test_a_patch_takes_away_the_one_label_and_nothing_else() -> None:
    changes = changes_for([node("n1", labels={"zone": "a"})], pod("web", node_selector={"zone": "a", "disk": "ssd"}))
    patches = [edit.patch for each in changes.suggestions for edit in each.edits if edit.kind == "patchPod"]

    assert patches == [{"spec": {"nodeSelector": {"disk": None}}}]


def test_a_toleration_comes_before_relabelling_and_the_hostname_is_never_changed() -> None:
    waiting = pod("web", node_selector={"kubernetes.io/hostname": "n1"})
    changes = changes_for([node("n1", taints=[taint("team=a:NoSchedule")]), node("n2", cpu=1)], waiting)

    assert changes.suggestions[0].sentence == "It would fit on n1 if the pod tolerated team=a:NoSchedule."
    assert "had the label kubernetes.io/hostname" not in sentences(changes.suggestions)


def test_a_gate_is_named_and_removed() -> None:
    changes = changes_for([node("n1")], pod("web", gates=["quota", "review"]))

    assert changes.suggestions[0].sentence == ("It would fit on n1 if the gate quota and the gate review were removed.")
    assert changes.suggestions[0].edits[0].patch == {"spec": {"schedulingGates": None}}


def test_a_claim_that_nobody_made_is_to_be_made_before_its_volume_is_dropped() -> None:
    changes = changes_for([node("n1")], pod("web", volumes=["nobody-made-it"]))

    assert changes.suggestions[0].sentence.startswith("It would fit on n1 if the claim nobody-made-it existed, bound")
    assert changes.suggestions[1].sentence.startswith("It would fit on n1 if the pod had no volume")


def test_uncordoning_is_suggested_although_the_cordon_brought_a_taint() -> None:
    """One change answers two filters."""
    cordoned = node("n1", unschedulable=True, taints=[taint("node.kubernetes.io/unschedulable:NoSchedule")])
    changes = changes_for([cordoned], pod("web"))

    assert changes.suggestions[0].sentence == "It would fit on n1 if n1 were uncordoned."


def test_what_else_is_in_the_way_of_a_gated_pod_is_answered_with_the_gate() -> None:
    changes = changes_for([node("n1", taints=[taint("team=a:NoSchedule")])], pod("web", gates=["review"]))

    assert changes.suggestions[0].sentence == (
        "It would fit on n1 if the gate review was removed and the pod tolerated team=a:NoSchedule."
    )
    assert set(changes.suggestions[0].edits[0].patch["spec"]) == {"schedulingGates", "tolerations"}


def with_plugin(plugin: type[Plugin], waiting: Any, *others: KubeObject, running: tuple[Any, ...] = ()) -> Changes:
    harness = Harness(plugins=[plugin])
    placed = [(each, each.spec.node_name) for each in running]
    cluster = ClusterObjects(nodes=[node("n1", cpu=8)], placed=placed, others=list(others), waiting=[waiting])
    return at_once(find_changes(at_once(ClusterCopy.build(cluster, harness.profiles, harness.registry)), waiting))


def quota(**spec: Any) -> ElasticQuota:
    return msgspec.convert({"metadata": {"name": "team", "namespace": "default"}, "spec": spec}, ElasticQuota)


def test_a_quota_is_to_be_raised_as_far_as_the_pod_needs_it() -> None:
    limits = quota(min={"cpu": "4"}, max={"cpu": "2", "memory": "8Gi"})
    first = with_plugin(CapacityScheduling, pod("web", cpu="1500m"), limits, running=(pod("a", cpu=1, node="n1"),))

    suggestion = first.suggestions[0]
    assert suggestion.sentence == "It would fit on n1 if ElasticQuota default/team had max 2500m cpu."
    assert suggestion.edits == [
        Edit(
            kind="patch",
            name="default/team",
            object={"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota"},
            patch={"spec": {"max": {"cpu": "2500m"}}},
        )
    ]


def test_a_quota_that_guarantees_too_little_is_to_be_raised() -> None:
    first = with_plugin(CapacityScheduling, pod("web", cpu=2), quota(min={"cpu": "1"}, max={"cpu": "4"})).suggestions[0]

    assert first.sentence == "It would fit on n1 if ElasticQuota default/team had min 2 cpu."


def test_a_group_that_nobody_made_is_to_be_made() -> None:
    first = with_plugin(Coscheduling, pod("web", labels={POD_GROUP_LABEL: "gang"})).suggestions[0]

    assert "if the PodGroup default/gang existed with minMember 1" in first.sentence
    assert (first.edits[0].kind, first.edits[0].object["kind"]) == ("create", "PodGroup")


def test_two_rules_about_neighbours_are_left_out_together() -> None:
    """One plugin has both, and each alone keeps the pod from the node."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    absent = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "absent"}}}
    document: dict[str, Any] = msgspec.to_builtins(pod("db"))
    document["spec"]["affinity"] = {"podAffinity": {required: [absent]}, "podAntiAffinity": {required: [term]}}
    waiting = msgspec.convert(document, type(pod("db")))
    running = pod("web", labels={"app": "web"}, node="n1")
    changes = changes_for([node("n1", labels={"kubernetes.io/hostname": "n1"})], waiting, (running,))

    assert "if the pod's required affinity to other pods and anti-affinity were left out" in sentences(
        changes.suggestions
    )


def enabled(**names: bool) -> ClusterScopedResource:
    return msgspec.convert({"metadata": {"name": "n1"}, "spec": {"resourcesFilter": names}}, ClusterScopedResource)


@pytest.mark.parametrize(
    ("known", "kind", "what"),
    [
        ((enabled(cpu=True),), "patch", "ClusterScopedResources n1 enabled memory"),
        ((), "create", "ClusterScopedResources n1 existed and enabled cpu and memory"),
    ],
)
def test_what_a_node_has_for_pods_is_to_be_enabled(
    known: tuple[ClusterScopedResource, ...], kind: str, what: str
) -> None:
    """The kind of the resource is not the name of its type."""
    waiting = pod("web", requests={"cpu": 1, "memory": "1Gi"})
    first = with_plugin(NodeCRDResourceFit, waiting, *known).suggestions[0]

    assert first.sentence == f"It would fit on n1 if {what}."
    assert (first.edits[0].kind, first.edits[0].object["kind"]) == (kind, "ClusterScopedResources")
    assert first.edits[0].name == "n1" and "kubectl" in first.commands[0]


def test_a_share_of_a_device_is_to_be_smaller_where_no_device_has_as_much_left() -> None:
    """The node has 800 thousandths left, and no device more than 400."""
    card = "alibabacloud.com/gpu-milli"
    running = tuple(pod(f"renders-{number}", node="n1", requests={card: 600}) for number in range(2))
    harness = Harness(plugins=[GpuShareBestFit])
    waiting = pod("web", requests={card: 600})
    cluster = ClusterObjects(
        nodes=[node("n1", cpu=8, allocatable={card: 2000})],
        placed=[(each, "n1") for each in running],
        others=[],
        waiting=[waiting],
    )
    copy = at_once(ClusterCopy.build(cluster, harness.profiles, harness.registry))
    found = [each.sentence for each in at_once(find_changes(copy, waiting)).suggestions]

    assert f"It would fit on n1 if the pod asked 300 instead of 600 {card}." in found


def test_a_request_that_no_node_was_looked_at_for_is_halved_until_it_fits() -> None:
    """1,500 thousandths are no whole devices, half of them are too many for a device of which 400 are left."""
    card = "alibabacloud.com/gpu-milli"
    running = tuple(pod(f"renders-{number}", node="n1", requests={card: 600}) for number in range(2))
    harness = Harness(plugins=[GpuShareBestFit])
    waiting = pod("web", requests={card: 1500})
    cluster = ClusterObjects(
        nodes=[node("n1", cpu=8, allocatable={card: 2000})],
        placed=[(each, "n1") for each in running],
        others=[],
        waiting=[waiting],
    )
    copy = at_once(ClusterCopy.build(cluster, harness.profiles, harness.registry))
    found = [each.sentence for each in at_once(find_changes(copy, waiting)).suggestions]

    less = [sentence for sentence in found if "the pod asked" in sentence]
    assert less == [f"It would fit on n1 if the pod asked 375 instead of 1500 {card}."]


def test_a_pod_that_an_expression_takes_for_too_large_is_to_ask_less() -> None:
    rule = {"expression": 'pod.requests["cpu"].isLessThan(quantity("500m"))', "reason": "node(s) were for small pods"}
    harness = Harness(plugins=[ExpressionPolicy], args={"ExpressionPolicy": {"filters": [rule]}})
    waiting = pod("web", cpu="900m")
    cluster = ClusterObjects(nodes=[node("n1", cpu=8)], placed=[], others=[], waiting=[waiting])
    copy = at_once(ClusterCopy.build(cluster, harness.profiles, harness.registry))
    first = at_once(find_changes(copy, waiting)).suggestions[0]

    assert first.sentence == "It would fit on n1 if the pod asked 450m instead of 900m CPU."


def test_a_sidecar_is_to_ask_less_where_less_for_the_container_is_not_enough() -> None:
    waiting = pod("web", cpu="300m")
    amounts = {
        "name": "proxy",
        "image": "proxy:1",
        "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "1800m"}},
    }
    sidecar = msgspec.convert(amounts, Container)
    waiting = msgspec.structs.replace(waiting, spec=msgspec.structs.replace(waiting.spec, init_containers=[sidecar]))
    cluster = ClusterObjects(nodes=[node("n1", cpu=1)], placed=[], others=[], waiting=[waiting])
    harness = Harness()
    copy = at_once(ClusterCopy.build(cluster, harness.profiles, harness.registry))
    found = [each for each in at_once(find_changes(copy, waiting)).suggestions if each.edits]

    assert found[0].sentence == "It would fit on n1 if the pod asked 1 instead of 2.1 CPU."
    assert found[0].edits[0].patch["spec"]["initContainers"][0]["resources"]["requests"] == {"cpu": "700m"}


def test_what_is_refused_before_any_node_is_looked_at_is_answered_on_the_node_with_most_room() -> None:
    """1,500 thousandths are no whole devices; where 600 are taken, 1,400 would be no better."""
    card = "alibabacloud.com/gpu-milli"
    harness = Harness(plugins=[GpuShareBestFit])
    waiting = pod("web", requests={card: 1500})
    cluster = ClusterObjects(
        nodes=[node(name, cpu=8, allocatable={card: 2000}) for name in ("n1", "n2")],
        placed=[(pod("renders", node="n1", requests={card: 600}), "n1")],
        others=[],
        waiting=[waiting],
    )
    copy = at_once(ClusterCopy.build(cluster, harness.profiles, harness.registry))
    found = [each.sentence for each in at_once(find_changes(copy, waiting)).suggestions]

    assert any(f"if the pod asked 750 instead of 1500 {card}." in each for each in found)
