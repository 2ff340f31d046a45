"""The harness: the real decision path, in a few lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.testing.plugins import HoldsAtPermit, Licences, RefusesAtPermit, ScoreByLabel

from bayplan.config import ConfigError
from bayplan.testing import Harness, expect, node, pod, pv, pvc, service, storage_class

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
"""


def test_pods_are_scheduled_and_count_from_then_on() -> None:
    harness = Harness(nodes=[node("n1", cpu=1), node("n2", cpu=1)])

    first = harness.schedule(pod("a", cpu=1)).node_name
    second = harness.schedule(pod("b", cpu=1)).node_name

    assert {first, second} == {"n1", "n2"}
    expect(harness.schedule(pod("c", cpu=1))).pending().rejected_because("Insufficient cpu", on="n1")


def test_explaining_changes_nothing() -> None:
    harness = Harness(nodes=[node("n1", cpu=1)])
    for _ in range(3):
        expect(harness.explain(pod("a", cpu=1))).scheduled_on("n1")

    assert len(harness.scheduler.cache) == 0


def test_plugins_given_as_classes_run_beside_the_default_ones() -> None:
    harness = Harness(nodes=["n1", node("n2", labels={"speed": "10"})], plugins=[ScoreByLabel])
    outcome = harness.schedule(pod("web"))

    expect(outcome).scheduled_on("n2").scores("ScoreByLabel", {"n1": 0, "n2": 100})
    assert "NodeResourcesFit" in outcome.weights


def test_plugins_given_as_files_run_too(tmp_path: Path) -> None:
    path = tmp_path / "by_label.py"
    path.write_text(
        "from bayplan.framework import Plugin\n"
        "class ByLabel(Plugin):\n"
        "    def score(self, state, pod, node):\n"
        "        return int(node.labels.get('speed', 0))\n"
    )
    harness = Harness(nodes=["n1", node("n2", labels={"speed": "10"})], plugins=[path])

    assert expect(harness.schedule(pod())).score("ByLabel", "n2") == 10


def test_arguments_and_weights_go_by_plugin_name() -> None:
    fast = node("n2", labels={"pace": "5"})
    args, weights = {"ScoreByLabel": {"labelKey": "pace"}}, {"ScoreByLabel": 7}
    outcome = Harness(nodes=["n1", fast], plugins=[ScoreByLabel], args=args, weights=weights).schedule(pod())

    assert outcome.weights["ScoreByLabel"] == 7
    assert outcome.totals["n2"] - outcome.totals["n1"] == 700


def test_without_default_plugins_a_plugin_is_alone() -> None:
    harness = Harness(nodes=[node("n1", cpu=0)], plugins=[ScoreByLabel], default_plugins=False)

    expect(harness.schedule(pod(cpu=100))).scheduled_on("n1")


def test_a_plugin_of_an_in_tree_name_takes_its_place() -> None:
    class NodeName(ScoreByLabel):
        pass

    harness = Harness(nodes=["n1"], plugins=[NodeName])

    assert isinstance(harness.plugin("NodeName"), ScoreByLabel)


def test_profiles_come_from_the_configuration() -> None:
    harness = Harness(nodes=["n1", "n2"], pods=[pod("there", cpu=2, memory="8Gi", node="n2")], config=CONFIG)

    expect(harness.explain(pod("a", cpu=1, memory="1Gi"))).best("n1")
    expect(harness.explain(pod("b", cpu=1, memory="1Gi", scheduler="packing"))).best("n2")
    with pytest.raises(ValueError, match="`nobody`; there are `default-scheduler`, `packing`"):
        harness.schedule(pod(scheduler="nobody"))


def test_a_bad_configuration_says_what_is_wrong() -> None:
    with pytest.raises(ConfigError, match="labelKay"):
        Harness(plugins=[ScoreByLabel], args={"ScoreByLabel": {"labelKay": "x"}})


def test_reserve_runs_and_is_undone_when_a_pod_is_forgotten() -> None:
    harness = Harness(nodes=["n1"], plugins=[Licences])
    first = pod("a")
    expect(harness.schedule(first)).scheduled_on("n1")
    expect(harness.schedule(pod("b"))).pending().rejected_because("node(s) had no licence", by="Licences")
    harness.forget(first)

    expect(harness.schedule(pod("c"))).scheduled_on("n1")


def test_a_volume_that_one_pod_took_is_not_given_to_the_next() -> None:
    """What Reserve assumed is seen by the decision that follows."""
    objects = [storage_class("local"), pv("disk", storage_class="local")]
    objects += [pvc(name, storage_class="local") for name in ("one", "two")]
    harness = Harness(nodes=["n1"], objects=objects)
    expect(harness.schedule(pod("a", volumes=["one"]))).scheduled_on("n1")

    expect(harness.schedule(pod("b", volumes=["two"]))).pending()


def test_a_pod_may_be_held_or_refused_at_permit() -> None:
    harness = Harness(nodes=["n1"], plugins=[HoldsAtPermit])
    expect(harness.schedule(pod("alone"))).held_by()
    expect(harness.schedule(pod("gang", labels={"gang": "yes"}))).held_by("HoldsAtPermit").scheduled_on("n1")

    refused = Harness(nodes=["n1"], plugins=[RefusesAtPermit]).schedule(pod())
    expect(refused).pending().message("0/1 nodes are available: 1 not today.")
    assert refused.unschedulable_plugins == {"RefusesAtPermit"}


def test_the_cluster_may_change_between_decisions() -> None:
    harness = Harness(nodes=["n1"])
    big = node("big", cpu=64)
    expect(harness.schedule(pod("a", cpu=32))).pending()
    harness.add(big, service("s", {"app": "web"}))
    expect(harness.schedule(pod("a", cpu=32))).scheduled_on("big")
    harness.add(pod("b", cpu=20, node="big"))
    expect(harness.explain(pod("c", cpu=16))).pending()
    harness.remove(pod("b"), service("s"))
    expect(harness.explain(pod("c", cpu=16))).scheduled_on("big")
    harness.remove(big)
    expect(harness.explain(pod("c", cpu=16))).pending()


def test_a_finished_pod_leaves_and_a_waiting_one_cannot_be_added() -> None:
    harness = Harness(nodes=["n1"], pods=[pod("job", cpu=4, node="n1")])
    harness.add(pod("job", cpu=4, node="n1", phase="Succeeded"))

    expect(harness.explain(pod("next", cpu=4))).scheduled_on("n1")
    with pytest.raises(ValueError, match="use `schedule`"):
        harness.add(pod("waiting"))


def test_an_empty_cluster_is_a_failure_and_not_a_rejection() -> None:
    expect(Harness().schedule(pod())).failed("no nodes available to schedule pods")


def test_without_caches_the_answer_is_the_same() -> None:
    made = [
        Harness(nodes=["n1", "n2", "n3"], remember=remember).schedule(pod("a", cpu=1)) for remember in (True, False)
    ]

    assert made[0] == made[1]


def test_what_a_plugin_raises_is_kept_and_is_a_failure_of_that_plugin() -> None:
    class Raises(ScoreByLabel):
        def filter(self, state: object, pod: object, node: object) -> None:
            raise KeyError("speed")

    harness = Harness(nodes=["n1"], plugins=[Raises])
    expect(harness.schedule(pod())).failed("KeyError: 'speed'")

    assert [(plugin, method) for plugin, method, _ in harness.complaints] == [("Raises", "filter")]
