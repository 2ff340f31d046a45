"""Requests: containers add up, init containers take turns, sidecars stay, the pod level overrides."""

from __future__ import annotations

from random import Random

import pytest

from bayplan.api.pod import ContainerStatus, Pod, PodCondition, ResourceRequirements
from bayplan.api.requests import is_extended_resource, is_scalar_resource, pod_requests
from bayplan.cluster.resources import ResourceAxis
from bayplan.cluster.shapes import usage_of
from bayplan.testing import container, pod
from bayplan.testing.generate import random_pod
from bayplan.testing.oracle import usage

MEBIBYTE = 1 << 20


def test_containers_add_up() -> None:
    both = pod(containers=[container(cpu="500m", memory="1Gi"), container("b", cpu="1.5", memory="512Mi")])

    assert pod_requests(both) == {"cpu": 2000, "memory": 1536 * MEBIBYTE}


def test_an_init_container_needs_room_before_the_others_run() -> None:
    made = pod(cpu=1, memory="1Gi", init_containers=[container("i", cpu=3, memory="10Mi"), container("j", cpu=2)])

    assert pod_requests(made) == {"cpu": 3000, "memory": 1024 * MEBIBYTE}


def test_a_sidecar_runs_beside_containers_and_later_init_containers() -> None:
    inits = [
        container("first", cpu=2),
        container("side", cpu=1, sidecar=True),
        container("later", cpu=2),
        container("side2", cpu="500m", sidecar=True),
    ]

    assert pod_requests(pod(cpu=1, init_containers=inits)) == {"cpu": 3000}
    assert pod_requests(pod(cpu="2500m", init_containers=inits)) == {"cpu": 4000}


def test_overhead_counts_on_top_of_everything() -> None:
    made = pod(cpu=1, pod_requests={"cpu": 3}, overhead={"cpu": "250m", "memory": "1Mi"})

    assert pod_requests(made) == {"cpu": 3250, "memory": MEBIBYTE}


def test_pod_level_requests_override_what_the_containers_come_to() -> None:
    made = pod(cpu=5, memory="1Gi", requests={"ephemeral-storage": 7}, pod_requests={"cpu": 2, "hugepages-2Mi": "4Mi"})

    expected = {"cpu": 2000, "memory": 1024 * MEBIBYTE, "ephemeral-storage": 7, "hugepages-2Mi": 4 * MEBIBYTE}
    assert pod_requests(made) == expected
    assert pod_requests(made, pod_level=False)["cpu"] == 5000


def test_only_cpu_memory_and_huge_pages_have_a_pod_level() -> None:
    made = pod(cpu=1, pod_requests={"ephemeral-storage": "1Gi"})

    assert pod_requests(made) == {"cpu": 1000}


def test_scoring_assumes_an_amount_for_each_container_that_names_none() -> None:
    made = pod(containers=[container(cpu=0), container("b", memory="1Mi"), container("c")])

    assert pod_requests(made, nonzero=True) == {"cpu": 200, "memory": 401 * MEBIBYTE}
    assert pod_requests(made, nonzero=["cpu"]) == {"cpu": 200, "memory": MEBIBYTE}


def _resized(*, infeasible: bool = False) -> Pod:
    made = pod(cpu=1, memory="1Gi", node="n")
    granted = ResourceRequirements(requests={"cpu": "500m", "memory": "2Gi"})
    made.status.container_statuses = [
        ContainerStatus(name="main", resources=granted, allocated_resources={"cpu": "700m"})
    ]
    if infeasible:
        made.status.conditions = [PodCondition(type="PodResizePending", status="True", reason="Infeasible")]
    return made


def test_a_pod_on_a_node_counts_for_the_larger_of_asked_and_granted() -> None:
    assert pod_requests(_resized(), status=True) == {"cpu": 1000, "memory": 2048 * MEBIBYTE}
    assert pod_requests(_resized()) == {"cpu": 1000, "memory": 1024 * MEBIBYTE}


def test_a_resize_that_cannot_be_done_counts_for_what_is_granted() -> None:
    assert pod_requests(_resized(infeasible=True), status=True) == {"cpu": 700, "memory": 2048 * MEBIBYTE}


def test_a_resized_sidecar_counts_and_a_plain_init_container_does_not() -> None:
    granted = ResourceRequirements(requests={"cpu": 2})
    side = pod(cpu=1, node="n", init_containers=[container("i", cpu="100m", sidecar=True)])
    plain = pod(cpu=1, node="n", init_containers=[container("i", cpu="100m")])
    for made in (side, plain):
        made.status.init_container_statuses = [ContainerStatus(name="i", resources=granted)]

    assert pod_requests(side, status=True) == {"cpu": 3000}
    assert pod_requests(plain, status=True) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ({"cpu": 2}, (2000, 400 * MEBIBYTE)),
        ({"memory": "1Gi"}, (200, 1024 * MEBIBYTE)),
        ({"hugepages-2Mi": 0}, (200, 400 * MEBIBYTE)),
    ],
)
def test_defaults_stand_in_for_what_neither_pod_nor_container_names(
    requests: dict[str, str], expected: tuple[int, int]
) -> None:
    """A pod that states requests as a whole gets the defaults, container by container, only where nobody says."""
    made = pod(containers=[container(), container("b")], pod_requests=requests)
    counted = usage_of(made, ResourceAxis())

    assert (counted.nonzero_cpu, counted.nonzero_memory) == expected


def test_pod_level_requests_leave_no_room_for_defaults_when_they_say_it_all() -> None:
    made = pod(containers=[container(cpu="100m"), container("b")], pod_requests={"memory": "1Gi"})
    counted = usage_of(made, ResourceAxis())

    assert (counted.nonzero_cpu, counted.nonzero_memory) == (100, 1024 * MEBIBYTE)


def test_random_pods_count_for_what_the_oracle_says() -> None:
    rng = Random(5)
    for number in range(300):
        made = random_pod(rng, f"p{number}", node="n")
        counted, right = usage_of(made, ResourceAxis()), usage.nonzero(made)

        assert pod_requests(made) == usage.requested(made)
        assert pod_requests(made, status=True) == usage.counted(made)
        assert pod_requests(made, nonzero=True, pod_level=False) == usage.scoring_request(made)
        assert (counted.nonzero_cpu, counted.nonzero_memory) == (right["cpu"], right["memory"])


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("cpu", False, False),
        ("memory", False, False),
        ("pods", False, False),
        ("example.com/gpu", True, True),
        ("requests.example.com/gpu", False, False),
        ("kubernetes.io/thing", False, True),
        ("scheduling.kubernetes.io/thing", False, True),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-csi", False, True),
        ("plain", False, False),
    ],
)
def test_resources_are_told_apart_by_name(name: str, extended: bool, scalar: bool) -> None:
    assert is_extended_resource(name) is extended
    assert is_scalar_resource(name) is scalar
