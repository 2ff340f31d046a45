"""ScoreByNameLength gives the numbers that its author worked out beforehand."""

from __future__ import annotations

from bayplan.testing import Harness, expect, pod

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1beta3",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "namescore-scheduler",
            "plugins": {
                "score": {"enabled": [{"name": "ScoreByNameLength", "weight": 1}], "disabled": [{"name": "*"}]}
            },
        }
    ],
}


def test_the_three_nodes_of_the_write_up_score_two_two_and_three() -> None:
    harness = Harness(nodes=["k8s-master01", "k8s-node01", "k8s-node02"], config=CONFIG)

    outcome = harness.schedule(pod("busybox-test-scheduler", scheduler="namescore-scheduler"))

    expect(outcome).scores("ScoreByNameLength", {"k8s-master01": 2, "k8s-node01": 2, "k8s-node02": 3})
    expect(outcome).scheduled_on("k8s-node02")


def test_the_score_is_of_bytes_and_not_of_letters() -> None:
    name = "knoten-ä"
    harness = Harness(nodes=[name, "b"], config=CONFIG)

    outcome = harness.explain(pod("web", scheduler="namescore-scheduler"))

    expect(outcome).scores("ScoreByNameLength", {name: sum(name.encode()) % 10, "b": 98 % 10})
