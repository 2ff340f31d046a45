"""Cases: what is read, what is refused, and that nothing leaks from one into the next."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.config import load_config
from bayplan.explain.offline.cases import CaseError, CaseEvaluator, evaluate_case

CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def node(name: str, cpu: str = "4") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}},
    }


def pod(name: str = "web", cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container], **spec}}


def test_a_single_pod_gives_an_object() -> None:
    result = evaluate_case({"config": CONFIG, "objects": [node("a"), node("b", "1500m")], "pod": pod()})

    assert isinstance(result, dict)
    assert result["best"] == ["a"]
    assert set(result["scores"]) == {"a", "b"}


def test_a_sequence_gives_a_list_where_each_counts_for_the_next() -> None:
    pods = [pod("one", "3"), pod("two", "3"), pod("three", "3")]
    result = evaluate_case({"objects": [node("b"), node("a")], "pods": pods})

    assert [step.get("chosen") for step in result] == ["a", "b", None]  # type: ignore[union-attr]
    assert result[2]["message"] == "0/2 nodes are available: 2 Insufficient cpu."  # type: ignore[index]


def test_a_pod_of_a_sequence_must_not_be_there_already() -> None:
    placed = pod("two") | {"apiVersion": "v1", "kind": "Pod"}
    with pytest.raises(CaseError, match=r"pods\[1\]: the pod `default/one` is there already"):
        evaluate_case({"objects": [node("a")], "pods": [pod("one"), pod("one")]})
    with pytest.raises(CaseError, match=r"pods\[0\]: the pod `default/two` is there already"):
        evaluate_case({"objects": [node("a"), placed], "pods": [pod("two")]})


def test_cases_know_nothing_of_each_other() -> None:
    evaluator = CaseEvaluator()
    case = {"objects": [node("a")], "pods": [pod("one", "3")]}

    assert evaluator.evaluate(case) == evaluator.evaluate(case)


def test_an_empty_cluster_is_an_answer() -> None:
    result = evaluate_case({"objects": [], "pod": pod()})

    assert result == {"nodes": {}, "scores": {}, "best": [], "message": "no nodes available to schedule pods"}


def test_a_case_without_a_configuration_takes_the_one_given() -> None:
    config = load_config({**CONFIG, "profiles": [{"schedulerName": "mine"}]})
    evaluator = CaseEvaluator(config=config)

    assert evaluator.evaluate({"objects": [node("a")], "pod": pod(schedulerName="mine")})["best"] == ["a"]  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ([], "expected an object"),
        ({}, "objects: expected a list, found nothing"),
        ({"objects": 3, "pod": pod()}, "objects: expected a list, found something else"),
        ({"objects": []}, "`pod` is missing"),
        ({"objects": [], "pods": {}}, "pods: expected a list"),
        ({"objects": [], "pod": 3}, "pod: expected a Kubernetes object"),
        ({"objects": [], "pod": {}}, "pod: Pod has no `metadata.name`"),
        ({"objects": [], "pod": {"metadata": {"name": "a"}}}, "pod: has no `spec.containers`"),
        ({"objects": [], "pod": node("a")}, "pod: expected a Pod, found a Node"),
        ({"objects": [3], "pod": pod()}, "objects[0]: expected a Kubernetes object"),
        ({"objects": [{"apiVersion": "v1", "kind": "Nod"}], "pod": pod()}, "objects[0]: "),
        ({"objects": [node("a", "many")], "pod": pod()}, "objects[0]: "),
        ({"objects": [], "pod": pod(), "config": 3}, "config: expected a KubeSchedulerConfiguration"),
        ({"objects": [], "pod": pod(), "config": {**CONFIG, "foo": 1, "bar": 2}}, "foo: unknown field"),
        ({"objects": [], "pod": pod(schedulerName="other")}, "names the scheduler `other`"),
        ({"objects": [], "pods": [pod(schedulerName="other")]}, "names the scheduler `other`"),
        ({"objects": [], "pod": pod(tolerations=[{"tolerationSeconds": 2**70}])}, "a number is larger than"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_in_one_line(case: Any, message: str) -> None:
    with pytest.raises(CaseError) as raised:
        evaluate_case(case)

    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
