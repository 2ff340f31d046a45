"""Workloads as data: what a template becomes, how many pods there are, and that all files are good."""

from __future__ import annotations

import pytest
from bench.versus.cluster import collection_of
from bench.versus.workload import Place, Workload, filled, load_workloads

PLACE = Place(nodes=10, zones=3)


def workload(name: str) -> Workload:
    return load_workloads([name])[0]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("node-{i}", "node-00012"),
        ("{zone}", "zone-0"),
        ("{node}", "node-00002"),
        ("app-{i % 5}", "app-2"),
        ("{i // 5}", "2"),
        ("{i % 5 + 50}m", "52m"),
        ("{other}", "{other}"),
        ("plain", "plain"),
        (7, 7),
    ],
)
def test_the_number_of_the_object_is_put_in(template: object, expected: object) -> None:
    assert expected == filled(template, 12, PLACE)


def test_a_filled_template_is_a_copy_to_its_depth() -> None:
    template = {"a": [{"b-{i}": "{i}"}]}

    copy = filled(template, 3, PLACE)

    assert copy == {"a": [{"b-00003": "00003"}]}
    assert template == {"a": [{"b-{i}": "{i}"}]}


def test_templates_are_interleaved() -> None:
    apps = [pod["metadata"]["labels"]["app"] for pod in workload("taints").pods(10, 4)]

    assert apps == ["plain", "batch", "plain", "batch"]


def test_measured_pods_have_names_of_their_own() -> None:
    pods = list(workload("plain").pods(10, 3))

    assert [pod["metadata"]["name"] for pod in pods] == ["pod-000000", "pod-000001", "pod-000002"]


def test_initial_pods_are_on_nodes() -> None:
    pods = list(workload("bound-50000").initial_pods(4, 1000))

    assert len(pods) == 40
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-00000", "node-00001", "node-00002", "node-00003"}


def test_pods_that_fit_nowhere_wait_without_a_node() -> None:
    stuck = workload("unschedulable-churn")
    pods = list(stuck.initial_pods(10, stuck.count // 100))

    assert len(pods) == 50
    assert all("nodeName" not in pod["spec"] for pod in pods)


def test_no_more_pods_are_measured_than_nodes_can_hold() -> None:
    apart = workload("required-anti-affinity")

    assert apart.pod_count(5000) == 3000
    assert apart.pod_count(500) == 400
    assert apart.pod_count(500, most=100) == 100
    assert workload("plain").pod_count(10) == 3000


def test_each_pod_has_its_companions() -> None:
    volumes = workload("volumes-bound")
    (pod,) = volumes.pods(10, 1, start=7)
    volume, claim = volumes.companion_objects(10, 1, start=7)

    assert pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"] == "claim-00007"
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert volume["spec"]["claimRef"]["name"] == "claim-00007"


def test_churn_makes_objects_of_several_kinds() -> None:
    churn = workload("unschedulable-churn").churn
    assert churn is not None

    pod, node, service = churn.objects(3, PLACE)

    assert pod["metadata"]["name"] == "churn-000003"
    assert [node["metadata"]["name"], service["metadata"]["name"]] == ["churn-00003", "churn-00003"]


def test_the_most_important_workloads_come_first() -> None:
    names = [each.name for each in load_workloads()]

    assert names[:3] == ["plain", "templates-100", "all-different"]
    assert len(load_workloads(group="target")) == 9
    assert set(names) == {each.name for group in ("target", "more") for each in load_workloads(group=group)}


def test_an_unknown_workload_is_named() -> None:
    with pytest.raises(SystemExit, match="unknown workloads: nonsense"):
        load_workloads(["nonsense"])


@pytest.mark.parametrize("each", load_workloads(), ids=lambda each: each.name)
def test_every_file_holds_objects_that_can_be_created(each: Workload) -> None:
    objects = [*each.nodes(2), *each.objects, *each.pods(2, 2), *each.companion_objects(2, 1)]
    objects += each.initial_pods(2, 3)
    objects += each.churn.objects(0, PLACE) if each.churn else []

    assert all(collection_of(item).startswith("/api") for item in objects)
    assert all(item["apiVersion"] for item in objects)
    assert not [item for item in objects if "{" in str(item["metadata"].get("name"))]


@pytest.mark.parametrize("each", load_workloads(group="target"), ids=lambda each: each.name)
def test_every_workload_of_the_target_group_asks_for_a_ratio_and_a_share(each: Workload) -> None:
    assert each.targets["ratio"] in (3, 5, 8)
    assert each.targets["ofRaw"] == 0.75
    assert each.targets["decision"] == 0.05
