"""BlockAllScheduler keeps every pod pending, with its reason."""

from __future__ import annotations

from bayplan.plugins.community.block_all_scheduler import BlockAllScheduler
from bayplan.testing import Harness, expect, pod


def test_every_pod_stays_pending_with_its_name_in_the_reason() -> None:
    harness = Harness(nodes=["n1", "n2"], plugins=[BlockAllScheduler])

    outcome = harness.schedule(pod("web", namespace="shop"))

    expect(outcome).message_says("Pod shop/web blocked by BlockAllScheduler")
    assert outcome.unschedulable_plugins == {"BlockAllScheduler"}


def test_nothing_brings_a_blocked_pod_back() -> None:
    assert BlockAllScheduler().events_to_register() == []
