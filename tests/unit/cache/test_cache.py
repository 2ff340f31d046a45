"""The cache: pods assumed, confirmed, moved, orphaned; nodes that come, change and go."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.api.meta import LabelSelector, LabelSelectorRequirement
from bayplan.api.pod import Affinity, ContainerStatus, Pod, PodCondition, ResourceRequirements
from bayplan.api.selectors import compile_selector
from bayplan.api.workload import Service
from bayplan.cache import Cache
from bayplan.cache.check import check_cache
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_index import PodQuery
from bayplan.testing import HOSTNAME, ZONE, apart, container, near, node, pod, service


def cache_with(*names: str) -> Cache:
    cache = Cache()
    for name in names:
        cache.add_node(node(name))
    return cache


def info_of(cache: Cache, name: str) -> NodeInfo:
    found = cache.cluster.node(name)
    assert found is not None
    return found


def used(cache: Cache, name: str) -> tuple[int, int]:
    """(milli-cpu, pods) on a node, after checking that everything else agrees."""
    assert check_cache(cache) == []
    return info_of(cache, name).requested_of("cpu"), len(info_of(cache, name).pods)


# Assumed and confirmed


def test_an_assumed_pod_counts_at_once() -> None:
    cache = cache_with("n1")
    cache.assume(cache.info(pod("web", cpu=1)), "n1")

    assert used(cache, "n1") == (1000, 1)
    assert cache.is_assumed("uid-default-web")
    assert cache.assumed_count == 1
    assert len(cache) == 1


def test_a_confirmed_pod_is_no_longer_assumed_and_counts_once() -> None:
    cache = cache_with("n1")
    cache.assume(cache.info(pod("web", cpu=1)), "n1")
    cache.add_pod(pod("web", cpu=1, node="n1"))

    assert used(cache, "n1") == (1000, 1)
    assert not cache.is_assumed("uid-default-web")


def test_the_api_server_wins_when_it_says_another_node() -> None:
    cache = cache_with("n1", "n2")
    cache.assume(cache.info(pod("web", cpu=1)), "n1")
    cache.add_pod(pod("web", cpu=1, node="n2"))

    assert used(cache, "n1") == (0, 0)
    assert used(cache, "n2") == (1000, 1)


def test_a_forgotten_pod_counts_for_nothing() -> None:
    cache = cache_with("n1")
    cache.assume(cache.info(pod("web", cpu=1)), "n1")
    gone = cache.forget("uid-default-web")

    assert gone is not None
    assert gone.name == "web"
    assert used(cache, "n1") == (0, 0)
    assert cache.pod("uid-default-web") is None


def test_a_pod_that_was_confirmed_in_the_meantime_is_not_forgotten() -> None:
    cache = cache_with("n1")
    cache.assume(cache.info(pod("web", cpu=1)), "n1")
    cache.add_pod(pod("web", cpu=1, node="n1"))

    assert cache.forget("uid-default-web") is None
    assert used(cache, "n1") == (1000, 1)


def test_a_pod_is_not_assumed_twice() -> None:
    cache = cache_with("n1", "n2")
    cache.assume(cache.info(pod("web")), "n1")
    with pytest.raises(ValueError, match="`default/web` is already on node `n1`"):
        cache.assume(cache.info(pod("web")), "n2")

    assert used(cache, "n2") == (0, 0)


def test_removing_what_is_not_there_is_no_error() -> None:
    cache = cache_with("n1")

    assert cache.remove_pod("nobody") is None
    assert cache.forget("nobody") is None
    cache.remove_node("nowhere")
    assert check_cache(cache) == []


def test_a_recreated_pod_of_the_same_name_is_another_pod() -> None:
    cache = cache_with("n1")
    cache.add_pod(pod("web", cpu=1, node="n1", uid="one"))
    cache.add_pod(pod("web", cpu=1, node="n1", uid="two"))

    assert used(cache, "n1") == (2000, 2)
    cache.remove_pod("one")
    assert used(cache, "n1") == (1000, 1)


# Changed pods


def test_a_changed_pod_counts_as_it_is_now() -> None:
    cache = cache_with("n1")
    cache.add_pod(pod("web", cpu=1, node="n1", labels={"app": "web"}))
    cache.add_pod(pod("web", cpu=1, node="n1", labels={"app": "db"}, terminating=True))

    assert used(cache, "n1") == (1000, 1)
    assert info_of(cache, "n1").pods["uid-default-web"].is_terminating


@pytest.mark.parametrize("sidecar", [False, True])
def test_a_resized_pod_counts_for_what_it_was_granted(sidecar: bool) -> None:
    """Also when it is only a sidecar that was resized."""
    cache = cache_with("n1")
    resized = [
        ContainerStatus(name="main" if not sidecar else "side", resources=ResourceRequirements(requests={"cpu": 3}))
    ]

    def made(name: str) -> Pod:
        return pod(name, cpu=1, node="n1", init_containers=[container("side", cpu=1, sidecar=True)])

    cache.add_pod(made("before"))
    changed = made("after")
    if sidecar:
        changed.status.init_container_statuses = resized
    else:
        changed.status.container_statuses = resized
    cache.add_pod(changed)

    assert used(cache, "n1") == (2000 + 4000, 2)


def test_a_new_version_that_counts_the_same_changes_no_row() -> None:
    cache = cache_with("n1")
    cache.add_pod(pod("web", node="n1", started="2026-01-01T00:00:00Z"))
    before = cache.cluster.nodes.row_changes.position
    ready = pod("web", node="n1", started="2026-01-01T00:00:00Z")
    ready.status.conditions = [PodCondition(type="Ready", status="True")]
    cache.add_pod(ready)

    assert cache.cluster.nodes.row_changes.position == before
    assert info_of(cache, "n1").pods["uid-default-web"].pod is ready


def test_another_start_time_changes_the_row_because_preemption_looks_at_it() -> None:
    cache = cache_with("n1")
    cache.add_pod(pod("web", node="n1"))
    before = cache.cluster.nodes.row_changes.position
    cache.add_pod(pod("web", node="n1", started="2026-01-01T00:00:00Z"))

    assert cache.cluster.nodes.row_changes.position > before


def test_other_annotations_change_the_row_because_plugins_may_look_at_the_pods() -> None:
    cache = cache_with("n1")
    cache.add_pod(pod("web", node="n1"))
    table = cache.cluster.nodes
    row_position, use_position = table.row_changes.position, table.use_changes.position
    cache.add_pod(pod("web", node="n1", annotations={"seen": "yes"}))

    assert table.row_changes.position == row_position + 1
    assert table.use_changes.position == use_position


def relabelled(cache: Cache, affinity: Affinity | None = None) -> tuple[int, int]:
    """How many pods on n1 selectors find by the old label and by the new one, after a binding that changed it."""
    old, new = (RowsOf(cache, stage) for stage in ("old", "new"))
    cache.assume(cache.info(pod("web", cpu=1, labels={"stage": "old"}, affinity=affinity)), "n1")
    cache.add_pod(pod("web", cpu=1, labels={"stage": "new"}, node="n1", affinity=affinity))
    assert used(cache, "n1") == (1000, 1)
    return old.count, new.count


class RowsOf:
    """A standing count of pods by the label `stage`."""

    def __init__(self, cache: Cache, stage: str) -> None:
        selector = compile_selector(LabelSelector(match_labels={"stage": stage}))
        self._counter = cache.cluster.pods.counter(PodQuery(((None, selector),)))

    @property
    def count(self) -> int:
        return int(self._counter.rows.sum())


def test_labels_that_came_with_the_binding_are_seen_by_selectors() -> None:
    assert relabelled(cache_with("n1")) == (0, 1)


def test_a_pod_says_the_same_about_others_when_its_labels_change() -> None:
    cache = cache_with("n1")

    assert relabelled(cache, affinity=apart(HOSTNAME, {"stage": "new"})) == (0, 1)
    cache.remove_pod("uid-default-web")
    assert check_cache(cache) == []


def test_counters_that_mean_a_pod_before_and_after_hear_nothing_of_its_new_labels() -> None:
    cache = cache_with("n1")
    everybody = cache.cluster.pods.counter(PodQuery(((None, compile_selector(LabelSelector())),)))
    cache.add_pod(pod("web", labels={"stage": "old"}, node="n1"))
    cache.add_pod(pod("web", labels={"stage": "new"}, node="n1"))
    assert int(everybody.rows.sum()) == 1
    cache.remove_pod("uid-default-web")

    assert int(everybody.rows.sum()) == 0
    assert check_cache(cache) == []


def test_a_pod_whose_labels_change_changes_its_group() -> None:
    cache = cache_with("n1")
    cache.cluster.labelled_pods.follow("stage")
    relabelled(cache)

    assert not cache.cluster.labelled_pods.get("stage", "default", "old").placed
    assert set(cache.cluster.labelled_pods.get("stage", "default", "new").placed) == {"uid-default-web"}


def test_a_change_of_labels_changes_nothing_for_those_who_look_at_what_is_used() -> None:
    cache = cache_with("n1")
    cache.assume(cache.info(pod("web", cpu=1)), "n1")
    table = cache.cluster.nodes
    before = table.use_changes.position
    cache.add_pod(pod("web", cpu=1, labels={"topology.kubernetes.io/zone": "a"}, node="n1"))

    assert table.use_changes.position == before
    cache.remove_pod(pod("web").uid)
    assert table.use_changes.position == before + 1


def test_a_change_of_labels_is_a_change_of_the_row_because_plugins_may_look_at_the_pods() -> None:
    cache = cache_with("n1")
    cache.add_pod(pod("web", labels={"stage": "old"}, node="n1"))
    before, generation = cache.cluster.nodes.row_changes.position, cache.cluster.generation
    cache.add_pod(pod("web", labels={"stage": "new"}, node="n1"))

    assert cache.cluster.nodes.row_changes.position == before + 1
    assert cache.cluster.generation > generation


def test_pods_of_one_template_share_what_they_have_in_common() -> None:
    cache = cache_with("n1")
    first = cache.add_pod(pod("a", cpu=1, node="n1", labels={"app": "web"}))
    second = cache.add_pod(pod("b", cpu=1, node="n1", labels={"app": "web"}))

    assert first.shape is second.shape
    assert first.pod.spec.containers is second.pod.spec.containers
    assert first.pod.labels is second.pod.labels


# Nodes


def test_pods_wait_for_their_node_and_count_when_it_comes() -> None:
    cache = Cache()
    cache.add_pod(pod("early", cpu=1, node="n1"))
    assert check_cache(cache) == []
    assert list(cache.orphans()) == ["n1"]
    cache.add_node(node("n1"))

    assert used(cache, "n1") == (1000, 1)
    assert cache.orphans() == {}


def test_pods_outlive_their_node_and_count_again_when_it_returns() -> None:
    cache = cache_with("n1")
    cache.add_pod(pod("stays", cpu=1, node="n1"))
    cache.add_pod(pod("goes", cpu=1, node="n1"))
    cache.remove_node("n1")
    assert check_cache(cache) == []
    cache.remove_pod("uid-default-goes")
    cache.add_node(node("n1", cpu=8))

    assert used(cache, "n1") == (1000, 1)
    assert info_of(cache, "n1").allocatable_of("cpu") == 8000


def test_an_orphan_that_moves_or_changes_is_followed() -> None:
    cache = cache_with("n2")
    cache.add_pod(pod("web", cpu=1, node="n1"))
    cache.add_pod(pod("web", cpu=1, node="n1", annotations={"seen": "yes"}))
    assert cache.orphans()["n1"][0].annotations == {"seen": "yes"}
    cache.add_pod(pod("web", cpu=1, node="n2"))

    assert cache.orphans() == {}
    assert used(cache, "n2") == (1000, 1)


def test_the_row_of_a_deleted_node_is_used_again_and_clean() -> None:
    cache = cache_with("n1", "n2")
    cache.cluster.nodes.label(ZONE)
    cache.add_pod(pod("web", cpu=1, node="n1", host_ports=[80], volumes=["data"]))
    row = info_of(cache, "n1").row
    cache.remove_node("n1")
    cache.add_node(node("n3", zone="a"))

    assert info_of(cache, "n3").row == row
    assert used(cache, "n3") == (0, 0)
    assert cache.cluster.port_rows == {}
    assert cache.cluster.claims_in_use == {}


def test_a_changed_node_keeps_its_pods() -> None:
    cache = cache_with("n1")
    cache.add_pod(pod("web", cpu=1, node="n1"))
    cache.add_node(node("n1", cpu=16, zone="b", taints=["k:NoSchedule"], images={"app:1": "1Gi"}))

    assert used(cache, "n1") == (1000, 1)
    assert info_of(cache, "n1").allocatable_of("cpu") == 16000
    assert info_of(cache, "n1").taints[0].key == "k"


def test_columns_grow_with_the_cluster() -> None:
    cache = Cache()
    cache.cluster.nodes.label(HOSTNAME)
    for number in range(200):
        cache.add_node(node(f"n{number}", zone="abc"[number % 3]))
        cache.add_pod(pod(f"p{number}", cpu="10m", node=f"n{number}", labels={"app": "web"}))

    assert check_cache(cache) == []
    assert len(cache.cluster.nodes) == 200
    assert cache.cluster.nodes.label(HOSTNAME).is_injective


def test_resources_that_nobody_named_before_get_a_column() -> None:
    cache = cache_with("n1", "n2")
    for number in range(12):
        cache.add_node(node("n2", allocatable={f"example.com/r{i}": i + 1 for i in range(number + 1)}))
        cache.add_pod(pod(f"p{number}", requests={f"example.com/r{number}": 1}, node="n1"))

        assert check_cache(cache) == []


def test_a_node_with_a_new_resource_can_be_asked_about_it() -> None:
    """What is requested has a place for every resource the node offers, from the start."""
    cache = Cache()
    first = cache.add_node(node("n1", allocatable={"example.com/new": 4}))

    assert first.free("example.com/new") == 4
    assert len(first.requested) == len(first.allocatable) == len(cache.cluster.resources)


# Indexes


def test_terms_of_running_pods_come_and_go_with_them() -> None:
    cache = cache_with("n1", "n2")
    rules = [near(ZONE, {"app": "db"}), apart(HOSTNAME, {"app": "web"}), apart(ZONE, {"app": "x"}, weight=5)]
    for number in range(3):
        cache.add_pod(pod(f"p{number}", node="n1", affinity=rules))
    assert len(cache.cluster.terms) == 3
    assert check_cache(cache) == []
    cache.remove_node("n1")

    assert len(cache.cluster.terms) == 0


def test_a_running_pod_whose_terms_do_not_parse_is_counted_without_them() -> None:
    """API servers have accepted such pods; the terms that do parse still hold."""
    cache = cache_with("n1")
    broken = LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="Near")])
    odd = pod("odd", cpu=1, node="n1", affinity=[near(ZONE, broken), apart(HOSTNAME, {"app": "web"})])
    cache.add_pod(odd)

    assert used(cache, "n1") == (1000, 1)
    assert len(cache.cluster.terms) == 1
    cache.remove_pod(odd.uid)
    assert used(cache, "n1") == (0, 0)
    assert len(cache.cluster.terms) == 0


def test_a_port_that_two_pods_have_is_free_when_the_first_of_them_goes() -> None:
    """As kube-scheduler counts: a set, not a count."""
    cache = cache_with("n1")
    for name in ("a", "b"):
        cache.add_pod(pod(name, node="n1", host_ports=[80]))
    cache.remove_pod("uid-default-a")

    assert not info_of(cache, "n1").ports.conflicts("TCP", 80, "")
    assert cache.cluster.port_rows == {}
    cache.remove_pod("uid-default-b")
    assert check_cache(cache) == []


def test_a_claim_is_in_use_while_a_pod_names_it() -> None:
    cache = cache_with("n1", "n2")
    cache.add_pod(pod("a", node="n1", volumes=["data"]))
    cache.add_pod(pod("b", node="n2", volumes=["data"]))
    cache.remove_pod("uid-default-a")

    assert cache.cluster.claims_in_use == {"default/data": 1}


def test_other_objects_are_kept_by_kind_and_namespace() -> None:
    cache = Cache()
    web, other = service("web", {"app": "web"}), service("web", {"app": "x"}, namespace="other")
    cache.put_object(web)
    cache.put_object(other)
    objects = cache.cluster.objects

    assert objects.generation == 2
    assert objects.get(Service, "default/web") is web
    assert list(objects.list(Service, "other")) == [other]
    before = objects.version(Service)
    cache.remove_object(msgspec.structs.replace(web))
    cache.remove_object(web)
    assert list(objects.list(Service)) == [other]
    assert objects.version(Service) == before + 1


def test_every_change_moves_the_generation() -> None:
    cache = Cache()
    steps = [
        lambda: cache.add_node(node("n1")),
        lambda: cache.add_pod(pod("a", node="n1")),
        lambda: cache.assume(cache.info(pod("b")), "n1"),
        lambda: cache.forget("uid-default-b"),
        lambda: cache.put_object(service("s", {})),
        lambda: cache.remove_pod("uid-default-a"),
        lambda: cache.remove_node("n1"),
    ]
    for step in steps:
        before = cache.cluster.generation
        step()
        assert cache.cluster.generation > before
