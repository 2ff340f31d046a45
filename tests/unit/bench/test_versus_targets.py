"""Targets: one comparison each, and only where both sides are known."""

from __future__ import annotations

from collections.abc import Mapping

from bench.versus.records import Growth, medians
from bench.versus.targets import growth_verdicts, verdicts
from tests.unit.bench.runs import a_run

OURS = medians([a_run()])
THEIRS = medians(
    [a_run("kube-scheduler", pods_per_second=300.0, decision_ms=2.5, cpu_life_per_1000=4.0, peak_mib=60.0)]
)


def judged(targets: Mapping[str, float], mode: str = "backlog", raw: float = 1500.0) -> dict[str, bool]:
    return {verdict.name: verdict.is_met for verdict in verdicts(targets, mode, THEIRS, OURS, raw)}


def test_targets_that_are_reached_are_met() -> None:
    assert judged({"ratio": 4, "ofRaw": 0.8, "decision": 0.05, "cpu": 1, "memory": 2}) == {
        "ratio": True,
        "ofRaw": True,
        "decision": True,
        "cpu": True,
        "memory": True,
    }


def test_targets_that_are_not_reached_are_missed() -> None:
    assert judged({"ratio": 4.1, "ofRaw": 0.81, "decision": 0.03, "memory": 1.5}) == {
        "ratio": False,
        "ofRaw": False,
        "decision": False,
        "memory": False,
    }


def test_a_target_of_zero_asks_for_nothing() -> None:
    assert judged({"ratio": 0, "ofRaw": 0}) == {}


def test_latency_is_judged_for_arrival_and_throughput_for_a_backlog() -> None:
    targets = {"ratio": 3, "p99": 1}

    assert judged(targets) == {"ratio": True}
    assert judged(targets, mode="arrival 200/s") == {"p99": True}


def test_without_kube_scheduler_only_the_share_of_the_raw_rate_is_judged() -> None:
    found = verdicts({"ratio": 3, "ofRaw": 0.75, "decision": 0.05}, "backlog", {}, OURS, 1500.0)

    assert [verdict.name for verdict in found] == ["ofRaw"]
    assert verdicts({"ofRaw": 0.75}, "backlog", THEIRS, OURS, 0.0) == []


def test_a_verdict_says_what_is_and_what_is_asked() -> None:
    (met,) = verdicts({"ratio": 3}, "backlog", THEIRS, OURS, 0.0)
    (missed,) = verdicts({"ratio": 5}, "backlog", THEIRS, OURS, 0.0)

    assert str(met) == "met: 4.00 times kube-scheduler's pods/s (at least 3.00 times)"
    assert missed.cell == "**4.00 missed** (≥ 5)"


def grown(workload: str, nodes: int, bound: int, cost: float) -> Growth:
    return Growth(session="1", workload=workload, nodes=nodes, bound_pods=bound, decision_us=cost)


def test_growth_is_judged_from_the_smallest_to_the_largest_size() -> None:
    sizes = [grown("template", nodes, 10 * nodes, cost) for nodes, cost in ((500, 10.0), (15000, 90.0), (5000, 20.0))]

    (verdict,) = growth_verdicts(sizes)

    assert (verdict.value, verdict.is_met) == (9.0, False)


def test_bound_pods_are_judged_where_nodes_stay_the_same() -> None:
    pods = [grown("bound", 5000, count, cost) for count, cost in ((0, 100.0), (150000, 115.0))]

    (verdict,) = growth_verdicts(pods)

    assert (round(verdict.value, 2), verdict.is_met) == (1.15, True)
    assert growth_verdicts(pods[:1]) == []
