from __future__ import annotations

import logging
import random
from typing import Any

import pytest
from tests.unit.queue.kit import make_queued, sort_key_of

from bayplan.framework.plugin import Plugin
from bayplan.framework.queued import QueuedPod
from bayplan.framework.runtime.call import key_from_less
from bayplan.queue.heap import PodHeap, by_priority, in_order


def heap_of(*pods: QueuedPod, sort_key: Any = by_priority) -> PodHeap:
    heap = PodHeap(sort_key, fallback=by_priority)
    for queued in pods:
        heap.push(queued)
    return heap


def drained(heap: PodHeap) -> list[str]:
    names = []
    while (queued := heap.pop()) is not None:
        names.append(queued.info.name)
    return names


def test_higher_priority_leaves_first_then_the_earlier_timestamp() -> None:
    heap = heap_of(
        make_queued("late", priority=5, timestamp=2.0),
        make_queued("low", priority=1, timestamp=0.0),
        make_queued("early", priority=5, timestamp=1.0),
    )

    assert drained(heap) == ["early", "late", "low"]


def test_no_priority_counts_as_zero() -> None:
    heap = heap_of(
        make_queued("none", timestamp=1.0), make_queued("minus", priority=-1), make_queued("one", priority=1)
    )

    assert drained(heap) == ["one", "none", "minus"]


def test_full_ties_leave_in_order_of_arrival() -> None:
    heap = heap_of(*(make_queued(str(number)) for number in range(20)))

    assert drained(heap) == [str(number) for number in range(20)]


def test_an_empty_heap_has_nothing_to_pop_or_peek_at() -> None:
    heap = heap_of()

    assert heap.pop() is None
    assert heap.peek() is None
    assert len(heap) == 0


def test_a_removed_pod_does_not_surface() -> None:
    heap = heap_of(make_queued("a", priority=2), make_queued("b", priority=1))

    assert heap.remove("ns/a") is not None
    assert heap.remove("ns/a") is None
    assert heap.peek() is heap.get("ns/b")
    assert drained(heap) == ["b"]


def test_membership_lookup_and_iteration_agree() -> None:
    heap = heap_of(make_queued("a"), make_queued("b", priority=1))

    assert "ns/a" in heap
    assert "ns/c" not in heap
    assert heap.get("ns/c") is None
    assert {queued.info.name for queued in heap} == {"a", "b"}
    assert len(heap) == 2


def test_pushing_a_changed_copy_moves_the_pod() -> None:
    heap = heap_of(make_queued("a", priority=1), make_queued("b", priority=2))

    heap.push(make_queued("a", priority=3))

    assert len(heap) == 2
    assert drained(heap) == ["a", "b"]


def test_a_replaced_pod_keeps_its_place_among_ties() -> None:
    heap = heap_of(make_queued("a"), make_queued("b"))

    heap.push(make_queued("a"))

    assert drained(heap) == ["a", "b"]


def test_leftovers_of_removed_pods_are_bounded() -> None:
    heap = heap_of(make_queued("keep"))
    for _ in range(1000):
        heap.push(make_queued("churn", priority=-1))
        heap.remove("ns/churn")

    assert len(heap._heap) + len(heap._line) < 200
    assert drained(heap) == ["keep"]


def test_pods_that_come_in_order_stand_in_line_and_only_the_others_are_sorted_in() -> None:
    heap = heap_of(*(make_queued(str(number), timestamp=float(number)) for number in range(5)))
    heap.push(make_queued("first", priority=1, timestamp=5.0))
    heap.push(make_queued("5", timestamp=5.0))

    assert len(heap._heap) == 1
    assert drained(heap) == ["first", "0", "1", "2", "3", "4", "5"]


def test_a_plugin_with_less_only_gives_the_same_order() -> None:
    class ByNameBackwards(Plugin):
        def less(self, first: QueuedPod, second: QueuedPod) -> bool:
            return first.info.name > second.info.name

    heap = heap_of(*(make_queued(name) for name in "bdac"), sort_key=sort_key_of(ByNameBackwards()))

    assert drained(heap) == ["d", "c", "b", "a"]


def test_pods_that_less_cannot_tell_apart_leave_in_order_of_arrival() -> None:
    heap = heap_of(*(make_queued(name) for name in "bdac"), sort_key=key_from_less(lambda first, second: False))

    assert drained(heap) == ["b", "d", "a", "c"]


def test_a_plugin_with_sort_key_is_asked_for_it() -> None:
    class ByName(Plugin):
        def sort_key(self, queued: QueuedPod) -> tuple[str]:
            return (queued.info.name,)

        def less(self, first: QueuedPod, second: QueuedPod) -> bool:
            raise AssertionError("sort_key is faster")

    heap = heap_of(*(make_queued(name) for name in "bdac"), sort_key=sort_key_of(ByName()))

    assert drained(heap) == ["a", "b", "c", "d"]


def test_a_sort_key_that_raises_loses_no_pod(caplog: pytest.LogCaptureFixture) -> None:
    def fragile(queued: QueuedPod) -> tuple[str]:
        if queued.info.name == "bad":
            raise RuntimeError("no key for you")
        return (queued.info.name,)

    heap = heap_of(make_queued("a", priority=1), sort_key=fragile)
    with caplog.at_level(logging.ERROR):
        heap.push(make_queued("bad", priority=3))
        heap.push(make_queued("c", priority=2))

    assert drained(heap) == ["bad", "c", "a"]
    assert "queue-sort plugin failed" in caplog.text
    assert len(caplog.records) == 1


@pytest.mark.parametrize("exception", [ValueError("no"), SystemExit(3)])
@pytest.mark.parametrize("method", ["sort_key", "less"])
def test_a_plugin_that_raises_anything_loses_no_pod(method: str, exception: BaseException) -> None:
    def fails(self: Plugin, *_queued: QueuedPod) -> bool:
        raise exception

    plugin = type("Fragile", (Plugin,), {method: fails})()
    pods = [make_queued("a", priority=1), make_queued("b", priority=2)]

    assert drained(heap_of(*pods, sort_key=sort_key_of(plugin))) == ["b", "a"]
    assert in_order(pods, sort_key_of(plugin)) == [1, 0]


def test_the_order_of_pods_that_stay_where_they_are_is_that_of_the_heap() -> None:
    pods = [make_queued(name, priority=priority) for name, priority in (("a", 1), ("b", 3), ("c", 1), ("d", 2))]

    assert [pods[place].info.name for place in in_order(pods, by_priority)] == drained(heap_of(*pods))


def test_keys_that_cannot_be_compared_lose_no_pod() -> None:
    heap = heap_of(
        make_queued("text", priority=1),
        make_queued("number", priority=2),
        sort_key=lambda queued: (7,) if queued.info.name == "number" else ("seven",),
    )

    assert drained(heap) == ["number", "text"]


def test_a_comparison_that_starts_to_fail_while_pods_leave_loses_no_pod() -> None:
    is_broken = False

    def less(first: QueuedPod, second: QueuedPod) -> bool:
        if is_broken:
            raise RuntimeError("lost my notes")
        return first.info.name < second.info.name

    heap = heap_of(*(make_queued(name, priority=ord(name)) for name in "fedcba"), sort_key=key_from_less(less))
    assert heap.pop() is not None
    is_broken = True

    assert drained(heap) == ["f", "e", "d", "c", "b"]


def test_it_agrees_with_sorting_under_random_pushes_and_removals() -> None:
    random_numbers = random.Random(7)
    heap = heap_of()
    model: dict[str, tuple[int, float]] = {}
    for step in range(2000):
        name = str(random_numbers.randrange(60))
        if random_numbers.random() < 0.6:
            heap.remove(f"ns/{name}")
            queued = make_queued(name, priority=random_numbers.randrange(5), timestamp=float(step))
            heap.push(queued)
            model[name] = by_priority(queued)
        elif random_numbers.random() < 0.5:
            assert (heap.remove(f"ns/{name}") is not None) == (model.pop(name, None) is not None)
        elif (popped := heap.pop()) is not None:
            assert popped.info.name == min(model, key=model.__getitem__)
            del model[popped.info.name]

    assert drained(heap) == sorted(model, key=model.__getitem__)
