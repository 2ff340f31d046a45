from __future__ import annotations

import pytest

from bayplan.observe.metrics import MetricKind, Stability
from bayplan.observe.scheduler_metrics import SCHEDULER_FAMILIES

BY_NAME = {family.name: family for family in SCHEDULER_FAMILIES}
STABLE = {
    "scheduler_schedule_attempts_total": ("result", "profile"),
    "scheduler_scheduling_attempt_duration_seconds": ("result", "profile"),
    "scheduler_preemption_victims": (),
    "scheduler_preemption_attempts_total": (),
    "scheduler_pending_pods": ("queue",),
    "scheduler_pod_scheduling_attempts": (),
    "scheduler_framework_extension_point_duration_seconds": ("extension_point", "status", "profile"),
    "scheduler_queue_incoming_pods_total": ("queue", "event"),
}


def test_names_are_unique_and_carry_the_prefix() -> None:
    assert len(BY_NAME) == len(SCHEDULER_FAMILIES)
    assert all(name.startswith("scheduler_") for name in BY_NAME)


def test_the_stable_metrics_are_those_that_kubernetes_guarantees() -> None:
    stable = {f.name: f.labels for f in SCHEDULER_FAMILIES if f.stability is Stability.STABLE}

    assert stable == STABLE


@pytest.mark.parametrize(
    ("name", "first", "last", "count"),
    [
        ("scheduler_scheduling_attempt_duration_seconds", 0.001, 16.384, 15),
        ("scheduler_scheduling_algorithm_duration_seconds", 0.001, 16.384, 15),
        ("scheduler_event_handling_duration_seconds", 0.0001, 0.2048, 12),
        ("scheduler_preemption_victims", 1, 64, 7),
        ("scheduler_pod_scheduling_sli_duration_seconds", 0.01, 5242.88, 20),
        ("scheduler_pod_scheduling_attempts", 1, 16, 5),
        ("scheduler_framework_extension_point_duration_seconds", 0.0001, 0.2048, 12),
        ("scheduler_plugin_execution_duration_seconds", 0.00001, 0.00001 * 1.5**19, 20),
        ("scheduler_permit_wait_duration_seconds", 0.001, 16.384, 15),
        ("scheduler_dra_bindingconditions_wait_duration_seconds", 0.1, 819.2, 14),
        ("scheduler_get_node_hint_duration_seconds", 0.00001, 0.02048, 12),
    ],
)
def test_buckets_are_those_of_kube_scheduler(name: str, first: float, last: float, count: int) -> None:
    buckets = BY_NAME[name].buckets

    assert (buckets[0], len(buckets)) == (first, count)
    assert buckets[-1] == pytest.approx(last)


def test_counters_end_in_total_and_nothing_else_does() -> None:
    for family in SCHEDULER_FAMILIES:
        assert family.name.endswith("_total") is (family.kind is MetricKind.COUNTER), family.name


def test_metrics_of_alpha_features_name_their_gate() -> None:
    gated = {family.gate for family in SCHEDULER_FAMILIES if family.gate}

    assert gated == {"SchedulerAsyncAPICalls", "GenericWorkload"}
