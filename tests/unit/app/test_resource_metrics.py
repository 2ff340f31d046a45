from __future__ import annotations

from collections.abc import Sequence

from prometheus_client.parser import text_string_to_metric_families

from bayplan.api.pod import Pod
from bayplan.app.resource_metrics import pod_limits, pod_resource_lines
from bayplan.cluster.pod_info import pod_info
from bayplan.cluster.state import ClusterState
from bayplan.testing.build import container, pod


def lines_of(pods: Sequence[Pod]) -> str:
    shapes = ClusterState().shapes
    infos = [pod_info(each, shapes) for each in pods]
    return b"".join(pod_resource_lines(lambda: infos)).decode()


def samples(pods: Sequence[Pod]) -> dict[tuple[str, str, str, str], float]:
    families = text_string_to_metric_families(lines_of(pods))
    return {
        (s.name, s.labels["pod"], s.labels["resource"], s.labels["unit"]): s.value for f in families for s in f.samples
    }


def test_requests_and_limits_come_with_the_units_of_kube_scheduler() -> None:
    web = pod("web", node="n1", requests={"cpu": "1500m", "memory": "1Gi", "example.com/gpu": 2}, limits={"cpu": 2})

    assert samples([web]) == {
        ("kube_pod_resource_request", "web", "cpu", "cores"): 1.5,
        ("kube_pod_resource_request", "web", "memory", "bytes"): 1 << 30,
        ("kube_pod_resource_request", "web", "example.com/gpu", "integer"): 2,
        ("kube_pod_resource_limit", "web", "cpu", "cores"): 2,
    }


def test_a_line_says_where_the_pod_is_and_who_schedules_it() -> None:
    text = lines_of([pod("web", namespace="shop", node="n1", cpu=1, priority=100, scheduler="mine")])
    labels = 'namespace="shop",pod="web",node="n1",scheduler="mine",priority="100",resource="cpu",unit="cores"'

    assert f"kube_pod_resource_request{{{labels}}} 1\n" in text


def test_pods_of_one_template_have_lines_of_their_own() -> None:
    text = lines_of([pod(f"web-{number}", node="n1", cpu=1) for number in range(250)])

    assert text.count("kube_pod_resource_request{") == 250
    assert 'pod="web-249"' in text


def test_pods_that_are_done_and_amounts_of_zero_are_left_out() -> None:
    assert samples([pod("done", cpu=1, phase="Succeeded"), pod("idle", requests={"cpu": 0}), pod("bare")]) == {}


def test_a_hostile_name_cannot_break_the_text() -> None:
    found = samples([pod('a"b\\c\nd', node='n"1', cpu=1)])

    assert list(found) == [("kube_pod_resource_request", 'a"b\\c\nd', "cpu", "cores")]


def test_limits_add_up_over_containers_and_sidecars_and_an_init_container_can_raise_them() -> None:
    limited = pod(
        containers=[container("a", limits={"cpu": 1, "memory": 100}), container("b", limits={"cpu": 1})],
        init_containers=[
            container("sidecar", limits={"cpu": "500m"}, sidecar=True),
            container("setup", limits={"cpu": 3}),
        ],
        overhead={"cpu": "100m", "example.com/x": 1},
    )

    assert pod_limits(limited) == {"cpu": 3600, "memory": 100}
