"""Fragmentation of GPUs: the columns against the definition, node by node."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from bayplan.plugins.community.gpu_share.devices import WHOLE, GpuRequest
from bayplan.plugins.community.gpu_share.fragmentation import Fragmentation, TypicalPod, typical_pods

CLASSES = [
    TypicalPod(cpu_milli=4000, gpu_milli=1000, gpu_count=1, pods=50),
    TypicalPod(cpu_milli=2000, gpu_milli=460, gpu_count=1, pods=30),
    TypicalPod(cpu_milli=8000, gpu_milli=1000, gpu_count=2, gpu_models=("T4",), pods=11),
    TypicalPod(cpu_milli=6000, pods=9),
]


def defined(cpu: int, free: list[int], model: str, classes: list[TypicalPod] = CLASSES) -> float:
    """The definition: what each class cannot use of what is idle, weighted."""
    total, sum_of = sum(each.pods for each in classes), 0
    for each in classes:
        fitting = [room for room in free if room >= each.gpu_milli]
        fits = each.gpu_count and len(fitting) >= each.gpu_count and cpu >= each.cpu_milli
        fits = fits and (not each.gpu_models or model in each.gpu_models)
        sum_of += each.pods * (sum(room for room in free if room < each.gpu_milli) if fits else sum(free))
    return sum_of / total


def defined_score(cpu: int, free: list[int], model: str, wanted: int, request: GpuRequest) -> tuple[int, int]:
    before = defined(cpu, free, model)
    if not request.is_share:
        whole = [index for index, room in enumerate(free) if room == WHOLE][: request.devices]
        after = [0 if index in whole else room for index, room in enumerate(free)]
        return _graded(before - defined(cpu - wanted, after, model)), 0
    scores = []
    for index, room in enumerate(free):
        after = [*free[:index], room - request.milli, *free[index + 1 :]]
        scores.append(_graded(before - defined(cpu - wanted, after, model)) if room >= request.milli else -1)
    return max(scores), scores.index(max(scores))


def _graded(saved: float) -> int:
    return int(100.0 / (1.0 + math.exp(-saved / 1000.0)))


def _random_nodes(dice: random.Random, count: int) -> tuple[list[int], list[list[int]], list[str]]:
    cpus = [dice.randrange(0, 20_000, 500) for _ in range(count)]
    rooms = [[dice.choice((0, 250, 460, 540, 1000, 1000)) for _ in range(4)] for _ in range(count)]
    return cpus, rooms, [dice.choice(("T4", "P100")) for _ in range(count)]


def test_the_fragmentation_of_a_node_is_what_typical_pods_cannot_use_of_it() -> None:
    cpus, rooms, models = _random_nodes(random.Random(1), 200)
    found = Fragmentation(CLASSES).of_nodes(np.array(cpus), np.array(rooms).T, models)

    assert found.tolist() == pytest.approx([defined(*node) for node in zip(cpus, rooms, models, strict=True)])


@pytest.mark.parametrize(
    "request_of_pod", [GpuRequest(250, 1), GpuRequest(1000, 1), GpuRequest(1000, 2), GpuRequest(0, 0)]
)
def test_a_score_is_the_logistic_function_of_what_a_placement_saves(request_of_pod: GpuRequest) -> None:
    cpus, rooms, models = _random_nodes(random.Random(2), 300)
    fits = [sum(room >= request_of_pod.milli for room in each) >= request_of_pod.devices for each in rooms]
    made, cpu, free = Fragmentation(CLASSES), np.array(cpus), np.array(rooms).T
    scores, devices = made.scores(made.tally(cpu, free, models), cpu, free, 2000, request_of_pod)

    for node in range(len(cpus)):
        if fits[node] and cpus[node] >= 2000:
            expected = defined_score(cpus[node], rooms[node], models[node], 2000, request_of_pod)
            assert (int(scores[node]), int(devices[node])) == expected


def test_without_typical_pods_every_node_is_as_good() -> None:
    made, cpu, free = Fragmentation([]), np.array([1, 2]), np.array([[1000, 500]])
    scores, _ = made.scores(made.tally(cpu, free, ["", ""]), cpu, free, 0, GpuRequest(100, 1))

    assert scores.tolist() == [50, 50]


def test_typical_pods_are_the_most_frequent_ones_up_to_95_percent() -> None:
    requests = (
        [(1000, 0, 0, ())] * 60 + [(4000, 1000, 1, ())] * 34 + [(8000, 1000, 2, ())] * 3 + [(2000, 500, 1, ())] * 3
    )

    found = typical_pods(requests)

    assert [(each.cpu_milli, each.pods) for each in found] == [(1000, 60), (4000, 34), (8000, 3)]


def test_idle_gpus_are_told_apart_by_what_keeps_pods_from_using_them() -> None:
    """One node has cpu for nobody, one has no whole device, one serves all."""
    use = Fragmentation(CLASSES[:2]).use(np.array([0, 9000, 9000]), np.array([[1000, 500, 1000]]), ["", "", ""])

    assert use.unsatisfied["lack_cpu"] == pytest.approx(1000)
    assert use.unsatisfied["lack_gpu"] == pytest.approx(500 * 50 / 80)
    assert use.satisfied == pytest.approx(1000 + 500 * 30 / 80)
    assert use.satisfied + use.fragmented == pytest.approx(2500)
