"""The resource axis: places for names, and what nodes of one size offer."""

from __future__ import annotations

from bayplan.cluster.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceAxis


def test_nodes_of_one_size_are_read_once() -> None:
    axis = ResourceAxis()
    size = {"cpu": "2500m", "memory": "1Ki", "pods": "110", "hugepages-2Mi": "4Mi"}

    vector, pods = axis.offer(size)

    place = axis.find("hugepages-2Mi")
    assert place is not None
    assert vector == ((CPU, 2500), (MEMORY, 1024), (place, 4 << 20))
    assert pods == 110
    assert axis.offer(dict(size))[0] is vector


def test_sizes_differ_by_amounts_and_names() -> None:
    axis = ResourceAxis()

    assert axis.offer({"cpu": "1", "pods": "2"}) == (((CPU, 1000),), 2)
    assert axis.offer({"cpu": "2", "pods": "2"}) == (((CPU, 2000),), 2)
    assert axis.offer({"ephemeral-storage": "1"}) == (((EPHEMERAL_STORAGE, 1),), 0)
    assert axis.offer(None) == ((), 0)
    assert axis.offer({}) == ((), 0)


def test_sizes_that_never_repeat_do_not_fill_memory() -> None:
    axis = ResourceAxis()
    for number in range(2000):
        assert axis.offer({"memory": number})[0] == ((MEMORY, number),)

    assert len(axis._offers) <= 512
