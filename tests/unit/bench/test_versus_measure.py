"""What a watcher sees, what a provisioner makes, and what the kernel counts."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import msgspec
import pytest
from bench.versus.cluster import side_by_side
from bench.versus.controllers import Provisioner, volume_for
from bench.versus.measure import points, rate_of
from bench.versus.schedulers import mean_decision_ms
from bench.versus.usage import CpuSample, cpu_seconds, family, machine_seconds, peak_mib, sample
from bench.versus.watching import PodWatch


class NoCluster:
    """Nothing is asked of it here."""


def event(kind: str, name: str, node: str = "", version: str = "7") -> bytes:
    pod = {"metadata": {"name": name, "resourceVersion": version}, "spec": {"nodeName": node} if node else {}}
    return msgspec.json.encode({"type": kind, "object": pod})


def watch(expected: int = 2, **options: Any) -> PodWatch:
    cluster: Any = NoCluster()
    return PodWatch(cluster, expected, **options)


async def test_a_watcher_keeps_the_first_moment_of_each_pod() -> None:
    seen: list[str] = []
    following = watch(on_first=lambda: seen.append("first"), on_last=lambda: seen.append("last"))
    for moment, line in enumerate(
        [
            event("ADDED", "pod-1"),
            event("MODIFIED", "pod-1", "node-1"),
            event("MODIFIED", "pod-1", "node-1"),
            event("ADDED", "init-1", "node-1"),
            event("MODIFIED", "pod-2", "node-2"),
        ]
    ):
        following.take(line, float(moment))

    assert following.created == {"pod-1": 0.0, "pod-2": 4.0}
    assert following.bound == {"pod-1": 1.0, "pod-2": 4.0}
    assert seen == ["first", "last"]
    assert following.all_bound.is_set()


async def test_an_error_ends_the_watch() -> None:
    line = msgspec.json.encode({"type": "ERROR", "object": {"kind": "Status", "code": 410}})

    assert not watch().take(line, 0.0)


async def test_waiting_ends_when_it_cannot_happen_any_more() -> None:
    assert not await watch().wait(60, goes_on=lambda: False)


async def test_a_claim_is_due_once_and_only_when_its_node_is_chosen() -> None:
    cluster: Any = NoCluster()
    provisioner = Provisioner(cluster)
    metadata = {"name": "claim", "uid": "u", "resourceVersion": "1"}
    chosen = metadata | {"annotations": {"volume.kubernetes.io/selected-node": "node-1"}}
    for claim in (metadata, chosen, chosen):
        provisioner.take(msgspec.json.encode({"type": "MODIFIED", "object": {"metadata": claim}}))

    assert provisioner._due.qsize() == 1
    assert volume_for("claim", "u", "wait")["spec"]["claimRef"]["uid"] == "u"


async def test_one_failure_ends_work_side_by_side() -> None:
    async def fail(item: int) -> None:
        await asyncio.sleep(0)
        if item == 3:
            raise RuntimeError("three")

    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="three")):
        await side_by_side(range(1000), fail)


async def test_everything_is_done_side_by_side() -> None:
    done: list[int] = []

    async def note(item: int) -> None:
        done.append(item)

    assert await side_by_side(range(100), note) == 100
    assert sorted(done) == list(range(100))


def test_a_timeline_keeps_its_first_and_last_point() -> None:
    times = [10 + i / 100 for i in range(1001)]

    found = points(times, 10.0)

    assert (found[0], found[-1]) == ((0.0, 1), (10.0, 1001))
    assert len(found) < 210
    assert points([], 0.0) == []


def test_a_rate_is_counted_from_the_first_to_the_last() -> None:
    assert rate_of([1.0, 1.5, 2.0]) == 2.0
    assert rate_of([1.0]) == 0.0
    assert rate_of([]) == 0.0


def test_a_rate_may_count_from_an_earlier_moment() -> None:
    assert rate_of([1.0, 1.5, 2.0], since=0.5) == 2.0
    assert rate_of([], since=0.5) == 0.0


def test_the_mean_decision_is_read_from_the_metrics_of_both() -> None:
    name = "scheduler_scheduling_algorithm_duration_seconds"
    text = f'# HELP x\n{name}_bucket{{le="1"}} 4\n{name}_sum 0.02\n{name}_count 4\n'
    labelled = f'{name}_sum{{profile="a"}} 1\n{name}_sum{{profile="b"}} 2\n{name}_count{{profile="a"}} 3\n'

    assert mean_decision_ms(text) == 5.0
    assert mean_decision_ms(labelled) == 1000.0
    assert mean_decision_ms("") == 0.0


def test_the_kernel_counts_this_process() -> None:
    here = os.getpid()

    assert here in family(here)
    assert cpu_seconds(here) > 0
    assert peak_mib(here) > 10
    assert machine_seconds() > cpu_seconds(here)
    assert set(sample({"me": here}).seconds) == {"me"}


def test_a_process_that_is_gone_counts_nothing() -> None:
    assert cpu_seconds(2**22 + 1) == 0.0
    assert peak_mib(2**22 + 1) == 0.0


def test_what_was_used_between_two_samples() -> None:
    earlier, later = CpuSample(1.0, {"etcd": 2.0}), CpuSample(2.0, {"etcd": 2.5, "new": 1.0})

    assert later.since(earlier) == {"etcd": 0.5, "new": 1.0}
