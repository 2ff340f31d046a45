from __future__ import annotations

import pytest
from tests.unit.queue.kit import START, make_queued

from bayplan.framework.queued import QueuedPod
from bayplan.queue.backoff import BackoffQueue, BackoffTimes
from bayplan.queue.heap import by_priority


def failed(name: str = "pod", *, rejected: int = 0, errors: int = 0, at: float = START, **keywords: int) -> QueuedPod:
    queued = make_queued(name, timestamp=at, **keywords)
    queued.unschedulable_count, queued.consecutive_errors = rejected, errors
    if rejected and not errors:
        queued.unschedulable_plugins = frozenset({"Fit"})
    return queued


@pytest.mark.parametrize(("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (100_000, 10)])
def test_back_off_doubles_up_to_the_maximum(failures: int, seconds: float) -> None:
    assert BackoffTimes().duration_seconds(failures) == seconds


@pytest.mark.parametrize(
    ("initial", "maximum", "failures", "seconds"),
    [
        (1, 10, 0, 0),
        (1, 0, 3, 0),
        (0.5, 2, 2, 1),
        (3, 10, 2, 6),
        (3, 10, 3, 10),
        (20, 10, 1, 10),
        (1, 8, 4, 8),
        (0, 10, 9, 0),
    ],
)
def test_back_off_follows_its_settings(initial: float, maximum: float, failures: int, seconds: float) -> None:
    assert BackoffTimes(initial_seconds=initial, max_seconds=maximum).duration_seconds(failures) == seconds


def test_expiration_is_cut_to_the_whole_second() -> None:
    assert BackoffTimes().expiration(failed(rejected=1, at=START + 0.9)) == START + 1


def test_errors_in_a_row_count_before_rejections() -> None:
    assert BackoffTimes().expiration(failed(rejected=4, errors=1)) == START + 1


def test_a_pod_that_never_failed_has_no_back_off() -> None:
    queued = failed()

    assert BackoffTimes().expiration(queued) == 0.0
    assert not BackoffTimes().is_backing_off(queued, START)


def test_a_maximum_of_zero_turns_back_off_off() -> None:
    queued = failed(rejected=3)

    assert not BackoffTimes(max_seconds=0).is_backing_off(queued, START)
    assert queued.backoff_expiration is None


def test_expiration_is_remembered_until_somebody_clears_it() -> None:
    queued = failed(rejected=1)
    times = BackoffTimes()

    assert times.expiration(queued) == START + 1
    queued.timestamp += 100
    assert times.expiration(queued) == START + 1
    queued.backoff_expiration = None
    assert times.expiration(queued) == START + 101


@pytest.mark.parametrize(("after", "is_waiting"), [(0.0, True), (1.0, True), (1.999, True), (2.0, False)])
def test_a_pod_waits_through_the_second_in_which_it_expires(after: float, is_waiting: bool) -> None:
    assert BackoffTimes().is_backing_off(failed(rejected=1), START + after) is is_waiting


def make_queue(*pods: QueuedPod) -> BackoffQueue:
    queue = BackoffQueue(BackoffTimes(), by_priority)
    for queued in pods:
        queue.push(queued)
    return queue


def test_rejected_pods_leave_early_by_expiration_then_by_the_order_of_the_active_queue() -> None:
    queue = make_queue(
        failed("later", rejected=2, priority=100),
        failed("low", rejected=1, at=START + 0.1, priority=1),
        failed("high", rejected=1, at=START + 0.2, priority=2),
    )

    names = [queued.info.name for queued in iter(queue.pop_early, None) if queued]

    assert names == ["high", "low", "later"]


def test_pods_that_failed_with_an_error_never_leave_early() -> None:
    queue = make_queue(failed("error", errors=1))

    assert queue.pop_early() is None
    assert len(queue) == 1


def test_completed_pods_are_the_rejected_ones_first_then_the_failed_ones() -> None:
    queue = make_queue(
        failed("error", errors=1),
        failed("waiting", rejected=4),
        failed("rejected", rejected=1),
        failed("slow", errors=9),
    )

    assert [queued.info.name for queued in queue.pop_completed(START + 2)] == ["rejected", "error"]
    assert {queued.info.name for queued in queue} == {"waiting", "slow"}


def test_lookup_and_removal_look_into_both_heaps() -> None:
    queue = make_queue(failed("error", errors=1), failed("rejected", rejected=1))

    assert queue.get("ns/error") is not None
    assert queue.get("ns/rejected") is not None
    assert queue.get("ns/nobody") is None
    assert queue.remove("ns/error") is not None
    assert queue.remove("ns/rejected") is not None
    assert queue.remove("ns/rejected") is None
    assert len(queue) == 0


def test_a_sort_plugin_that_fails_loses_no_pod_in_back_off() -> None:
    def broken(queued: QueuedPod) -> tuple[int]:
        raise RuntimeError("no")

    queue = BackoffQueue(BackoffTimes(), broken)
    queue.push(failed("low", rejected=1))
    queue.push(failed("high", rejected=1, priority=1))

    assert [queued.info.name for queued in queue.pop_completed(START + 60)] == ["high", "low"]
