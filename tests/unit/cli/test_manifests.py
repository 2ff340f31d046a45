"""A cluster and the pods to decide about, out of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.api.decode import InputError
from bayplan.api.node import Node
from bayplan.cli.manifests import Manifests, read_manifests
from bayplan.cli.output import CommandError
from bayplan.plugins.community.coscheduling.pod_group import PodGroup


def keys(found: Manifests) -> list[str]:
    return [pod.key for pod in found.pods]


def test_a_pod_file_brings_its_pods(folder: Path) -> None:
    found = read_manifests(["cluster.yaml"], ["pod.yaml"])

    assert keys(found) == ["default/web"]
    assert found.are_named
    assert {type(item).__name__ for item in found.objects} == {"Node", "Pod"}


@pytest.mark.parametrize("name", ["default/waiting", "waiting"])
def test_a_waiting_pod_of_the_cluster_can_be_named(folder: Path, name: str) -> None:
    found = read_manifests(["cluster.yaml"], [name])

    assert keys(found) == ["default/waiting"]
    assert "default/waiting" not in [item.key for item in found.objects]


def test_without_names_all_that_wait_are_taken(folder: Path) -> None:
    found = read_manifests(["cluster.yaml"], [])

    assert keys(found) == ["default/waiting"]
    assert not found.are_named


def test_what_else_is_in_a_pod_file_joins_the_cluster(folder: Path) -> None:
    extra = "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 7\n"
    pod = Path("pod.yaml").read_text().replace("spec: {", "spec: {priorityClassName: high, ")
    Path("pod.yaml").write_text(pod + extra)
    found = read_manifests(["cluster.yaml"], ["pod.yaml"])

    assert found.pods[0].spec.priority == 7
    assert "high" in [item.key for item in found.objects]


def test_nodes_that_name_their_capacity_offer_it(folder: Path) -> None:
    nodes = [item for item in read_manifests(["cluster.yaml"], ["pod.yaml"]).objects if isinstance(item, Node)]

    assert [(node.status.allocatable or {})["cpu"] for node in nodes] == ["2", "8"]


def test_kinds_that_scheduling_does_not_read_are_left_out_with_a_note(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("more.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n---\n"
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n"
    )
    read_manifests(["cluster.yaml", "more.yaml"], ["pod.yaml"])

    assert capsys.readouterr().err == (
        "note: more.yaml: left out 1 ConfigMap, 1 Deployment; scheduling does not read these kinds\n"
    )


GROUP = "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: gang}\nspec: {minMember: 3}\n"


def test_custom_resources_that_a_plugin_watches_are_part_of_the_cluster(folder: Path) -> None:
    Path("group.yaml").write_text(GROUP)
    found = read_manifests(["cluster.yaml", "group.yaml"], ["pod.yaml"], watched=[PodGroup])

    groups = [item for item in found.objects if isinstance(item, PodGroup)]
    assert [(group.key, group.spec.min_member) for group in groups] == [("default/gang", 3)]


def test_custom_resources_that_no_plugin_watches_are_left_out_with_a_note(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("group.yaml").write_text(GROUP)
    read_manifests(["cluster.yaml", "group.yaml"], ["pod.yaml"])

    assert capsys.readouterr().err == (
        "note: group.yaml: left out 1 PodGroup; no plugin that is enabled watches these custom resources\n"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("v1alpha1", "v1"), "PodGroup is read as `scheduling.x-k8s.io/v1alpha1`"),
        (("minMember: 3", "minMember: many"), "spec.minMember: expected a whole number, found `many`"),
        (("name: gang", "generateName: gang"), "has no `metadata.name`"),
    ],
)
def test_a_custom_resource_that_cannot_be_read_is_refused(folder: Path, change: tuple[str, str], message: str) -> None:
    Path("group.yaml").write_text(GROUP.replace(*change))
    with pytest.raises(InputError) as raised:
        read_manifests(["cluster.yaml", "group.yaml"], ["pod.yaml"], watched=[PodGroup])

    assert message in str(raised.value)


def test_a_pinned_pod_is_mentioned(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("pod.yaml").write_text(Path("pod.yaml").read_text().replace("spec: {", "spec: {nodeName: large, "))
    read_manifests(["cluster.yaml"], ["pod.yaml"])

    assert "only `large` is considered" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("apiVersion: v1\nkind: Podd\nmetadata: {name: a}\n", "did you mean `Pod`?"),
        ("apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n", "Widget"),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a}]}\n", "no `metadata.name`"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: 3}\n", "spec.containers"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nsepc: {}\n", "unknown field `sepc`; did you mean `spec`?"),
        ("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n", "add the pods that it creates"),
        ("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n", "holds no Pod"),
        ("", "holds no Pod"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
            "spec: {priorityClassName: nope, containers: [{name: a}]}\n",
            "PriorityClass `nope`",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a}]}\n"
            "status: {startTime: noon}\n",
            "status.startTime: `noon` is not a time",
        ),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: running}\nspec: {containers: [{name: a}]}\n", "on node `small`"),
    ],
)
def test_a_bad_pod_file_is_refused_with_its_name(folder: Path, content: str, message: str) -> None:
    Path("bad.yaml").write_text(content)
    with pytest.raises(InputError) as raised:
        read_manifests(["cluster.yaml"], ["bad.yaml"])

    assert str(raised.value).startswith("bad.yaml: ")
    assert message in str(raised.value)


def test_an_unknown_kind_in_the_cluster_is_refused(folder: Path) -> None:
    Path("odd.yaml").write_text("apiVersion: v1\nkind: Nod\nmetadata: {name: a}\n")
    with pytest.raises(InputError, match="did you mean `Node`"):
        read_manifests(["odd.yaml"], ["pod.yaml"])


@pytest.mark.parametrize("files", [["cluster.yaml", "cluster.yaml"], ["cluster.yaml", "copy.yaml"]])
def test_an_object_that_is_there_twice_is_refused(folder: Path, files: list[str]) -> None:
    Path("copy.yaml").write_text(Path("cluster.yaml").read_text())
    with pytest.raises(InputError, match="Node `small` is there"):
        read_manifests(files, ["pod.yaml"])


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        (["wating"], "no such pod"),
        (["default/running"], "already on node `small`"),
        (["pod.yaml", "pod.yaml"], "given twice"),
        (["waiting", "default/waiting"], "given twice"),
        (["-", "-"], "once only"),
    ],
)
def test_a_pod_that_names_nothing_is_refused(folder: Path, pods: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        read_manifests(["cluster.yaml"], pods)


def test_a_misspelt_pod_is_answered_with_the_one_that_was_meant(folder: Path) -> None:
    with pytest.raises(CommandError) as raised:
        read_manifests(["cluster.yaml"], ["wating"])

    assert raised.value.hint == "did you mean `default/waiting`?"


def test_a_name_in_two_namespaces_has_to_be_written_out(folder: Path) -> None:
    twins = "".join(
        f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: twin, namespace: {name}}}\n"
        "spec: {containers: [{name: a}]}\n"
        for name in ("one", "two")
    )
    Path("twins.yaml").write_text(twins)
    with pytest.raises(CommandError, match="`one/twin`, `two/twin`"):
        read_manifests(["cluster.yaml", "twins.yaml"], ["twin"])

    assert keys(read_manifests(["cluster.yaml", "twins.yaml"], ["two/twin"])) == ["two/twin"]


def test_a_cluster_where_nothing_waits_needs_a_pod(folder: Path) -> None:
    Path("idle.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")
    with pytest.raises(CommandError, match="no pod to decide about"):
        read_manifests(["idle.yaml"], [])
