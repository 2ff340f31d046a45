from __future__ import annotations

from tests.unit.queue.kit import PROFILE, make_queued

from bayplan.framework.queued import QueuedPod
from bayplan.queue.unschedulable import Alike, Kind, Rejector, UnschedulablePool


def rejected(name: str, *plugins: str, gated_by: str = "", profile: str = PROFILE) -> QueuedPod:
    queued = make_queued(name, profile=profile)
    queued.unschedulable_plugins = frozenset(plugins)
    queued.gating_plugin = gated_by
    return queued


def pool_of(*pods: QueuedPod) -> UnschedulablePool:
    pool = UnschedulablePool({PROFILE, "other"})
    for queued in pods:
        pool.add(queued)
    return pool


def names(found: list[tuple[Rejector, dict[Kind, Alike]]]) -> list[str]:
    return [queued.info.name for _, kinds in found for alike in kinds.values() for queued in alike.values()]


def test_pods_are_found_by_who_rejected_them() -> None:
    pool = pool_of(rejected("a", "Fit"), rejected("b", "Fit", "Taint"), rejected("c", "Taint"))

    assert names(pool.rejected_by([(PROFILE, "Fit")])) == ["a", "b"]
    assert names(pool.rejected_by([(PROFILE, "Taint"), (PROFILE, "Fit")])) == ["b", "c", "a"]
    assert names(pool.rejected_by([(PROFILE, "Nobody")])) == []


def test_a_pending_plugin_counts_as_a_rejector() -> None:
    queued = rejected("a")
    queued.pending_plugins = frozenset({"Devices"})

    assert names(pool_of(queued).rejected_by([(PROFILE, "Devices")])) == ["a"]


def test_the_same_plugin_of_another_profile_is_another_rejector() -> None:
    pool = pool_of(rejected("a", "Fit"), rejected("b", "Fit", profile="other"))

    assert names(pool.rejected_by([("other", "Fit")])) == ["b"]


def test_pods_of_unknown_profiles_are_found_by_every_event() -> None:
    pool = pool_of(rejected("lost", "Fit", profile="gone"))

    assert names(pool.rejected_by([])) == ["lost"]
    assert names(pool.rejected_by([("gone", "Fit")])) == ["lost"]


def test_a_removed_pod_leaves_no_trace() -> None:
    pool = pool_of(rejected("a", "Fit", "Gate", gated_by="Gate"), rejected("b", "Fit"))

    assert pool.gated == 1
    assert pool.remove("ns/a") is not None
    assert pool.remove("ns/a") is None
    assert pool.remove("ns/b") is not None
    assert (len(pool), pool.gated, pool._by_rejector, pool._files, pool._arrivals) == (0, 0, {}, {}, {})


def test_rejectors_are_read_when_a_pod_enters() -> None:
    """So a pod whose rejectors change is taken out first; taking it out works even if that was forgotten."""
    queued = rejected("a", "Fit")
    pool = pool_of(queued)
    queued.unschedulable_plugins |= {"Taint"}

    assert names(pool.rejected_by([(PROFILE, "Taint")])) == []
    assert pool.remove("ns/a") is queued
    assert pool._by_rejector == {}


def test_lookup_and_iteration_agree() -> None:
    first, second = rejected("a", "Fit"), rejected("b", "Gate", gated_by="Gate")
    pool = pool_of(first, second)

    assert pool.get("ns/a") is first
    assert pool.get("ns/c") is None
    assert list(pool) == [first, second]
