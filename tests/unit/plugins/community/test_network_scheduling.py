"""NetworkScheduling and what made the original fail."""

from __future__ import annotations

from tests.unit.plugins.network import job, metrics

from bayplan.plugins.community.network_scheduling import NetworkScheduling
from bayplan.plugins.distributed_jobs import DistributedJob
from bayplan.testing import Harness, expect, pod

SECOND = pod("second", labels={"resource": "b"})


def _harness(*objects: object, nodes: tuple[str, ...] = ("n1", "n2", "n3")) -> Harness:
    return Harness(nodes=nodes, objects=objects, plugins=[NetworkScheduling], default_plugins=False)  # type: ignore[arg-type]


def _chain(**changes: int) -> DistributedJob:
    wants = {"limits": 100, "requests": 200, "latency_limits": 10, "latency_requests": 5} | changes
    return job([("a", None, "n1"), ("b", wants, "")])


def test_links_below_the_limits_are_refused() -> None:
    tables = metrics({"n1": {"n1": 1000, "n2": 99, "n3": 100}}, {"n1": {"n1": 11, "n2": 1, "n3": 10}})

    outcome = _harness(_chain(), tables).schedule(SECOND)

    expect(outcome).rejected_because("Latency too high for pod second", on="n1")
    expect(outcome).rejected_because("Insufficient bandwidth for pod second", on="n2")
    expect(outcome).scheduled_on("n3")


def test_bandwidth_from_limit_to_request_scores_30_to_100_and_never_more() -> None:
    tables = metrics({"n1": {"n1": 100, "n2": 150, "n3": 900}}, {})

    expect(_harness(_chain(), tables).explain(SECOND)).scores("NetworkScheduling", {"n1": 30, "n2": 65, "n3": 100})


def test_a_request_that_equals_the_limit_is_no_division_by_zero() -> None:
    tables = metrics({"n1": {"n1": 100, "n2": 150}}, {})

    outcome = _harness(_chain(requests=100), tables, nodes=("n1", "n2")).explain(SECOND)

    expect(outcome).scores("NetworkScheduling", {"n1": 100, "n2": 100})


def test_a_workload_waits_for_the_one_before_it() -> None:
    waiting = job([("a", None, ""), ("b", {"limits": 1, "requests": 2}, "")])

    outcome = _harness(waiting, metrics({}, {})).schedule(SECOND)

    expect(outcome).rejected_because("the workload before this one is not on a node yet", on="n1")


def test_the_first_workload_and_pods_without_the_label_go_anywhere() -> None:
    harness = _harness(_chain(), metrics({}, {}))

    expect(harness.explain(pod("first", labels={"resource": "a"}))).accepted("n1", "n2", "n3")
    expect(harness.explain(pod("other"))).accepted("n1", "n2", "n3")


def test_no_job_two_jobs_and_no_metrics_are_reasons_and_not_failures() -> None:
    one, other = _chain(), job([("a", None, "n1")], name="other")

    expect(_harness().schedule(SECOND)).message_says(
        "failed to get DistributedJob: no DistributedJob resources found in namespace default"
    )
    expect(_harness(one, other).schedule(SECOND)).message_says("multiple DistributedJob resources found")
    expect(_harness(one).schedule(SECOND)).message_says("NetworkMetrics kube-system/cluster-metrics not found")


def test_a_workload_without_dependencies_goes_anywhere() -> None:
    odd = job([("a", None, "n1"), ("b", None, "")])

    expect(_harness(odd, metrics({}, {})).explain(SECOND)).accepted("n1", "n2", "n3")
