from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.app.client_metrics import MeasuredTransport, RequestMetrics, register_client
from bayplan.app.live import LiveOptions, LiveScheduler
from bayplan.app.metrics import SchedulerMetrics, register_leadership, register_live, register_self
from bayplan.app.resource_metrics import known_pods, pod_resource_lines
from bayplan.app.watching import served_kinds
from bayplan.cluster.pod_info import pod_info
from bayplan.cluster.state import ClusterState
from bayplan.config.loading import default_config
from bayplan.config.profiles import resolve_profiles
from bayplan.framework.cycle import CycleState
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Error, Unschedulable
from bayplan.framework.times import PluginTimes
from bayplan.loop.decide import Decision
from bayplan.observe.clock import SystemClock, VirtualClock
from bayplan.observe.exposition import render
from bayplan.observe.metrics import MetricsRegistry
from bayplan.plugins.intree import default_registry
from bayplan.queue.places import POD_ADD
from bayplan.testing.build import pod

PODS = "/api/v1/namespaces/default/pods"


class Scrape:
    """The samples of one scrape."""

    def __init__(self, registry: MetricsRegistry) -> None:
        families = text_string_to_metric_families(render(registry)[0].decode())
        samples = [sample for family in families for sample in family.samples]
        self._values = {(s.name, frozenset(s.labels.items())): s.value for s in samples}

    def __call__(self, name: str, /, **labels: str) -> float | None:
        return self._values.get((f"scheduler_{name}", frozenset(labels.items())))

    def other(self, name: str, /, **labels: str) -> float | None:
        return self._values.get((name, frozenset(labels.items())))


class Told:
    """Metrics that are told things, and a pod to tell them about."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.registry = MetricsRegistry()
        self.metrics = SchedulerMetrics(self.registry, self.clock)
        self.queued = QueuedPod(pod_info(pod("web"), ClusterState().shapes), self.clock.now())
        self.queued.attempts = 1

    @property
    def scrape(self) -> Scrape:
        return Scrape(self.registry)


@pytest.fixture
def told() -> Told:
    return Told()


def test_attempts_are_counted_by_result_and_profile(told: Told) -> None:
    told.metrics.bound(told.queued, "n1", 0.003)
    told.metrics.attempt_failed(told.queued, Unschedulable("no room"), 0.002)
    told.metrics.attempt_failed(told.queued, Error("boom"), 0.001)

    for result in ("scheduled", "unschedulable", "error"):
        assert told.scrape("schedule_attempts_total", result=result, profile="default-scheduler") == 1
    name = "scheduling_attempt_duration_seconds_sum"
    assert told.scrape(name, result="scheduled", profile="default-scheduler") == 0.003


def test_a_bound_pod_tells_how_long_it_took_from_the_first_attempt(told: Told) -> None:
    told.queued.initial_attempt_timestamp = told.clock.now()
    told.queued.attempts = 3
    told.clock.advance(4.0)
    told.metrics.bound(told.queued, "n1", 0.001)

    assert told.scrape("pod_scheduling_sli_duration_seconds_sum", attempts="3") == 4.0
    assert told.scrape("pod_scheduling_attempts_sum") == 3
    assert told.scrape("pod_scheduled_after_flush_total") == 0


@pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (999, "15+")])
def test_many_attempts_share_a_label(told: Told, attempts: int, label: str) -> None:
    told.queued.initial_attempt_timestamp = told.clock.now()
    told.queued.attempts = attempts
    told.metrics.bound(told.queued, "n1", 0.001)

    assert told.scrape("pod_scheduling_sli_duration_seconds_count", attempts=label) == 1


def test_a_pod_that_the_timer_brought_back_is_counted_when_it_is_bound(told: Told) -> None:
    told.queued.flushed_at = told.clock.now()
    told.metrics.bound(told.queued, "n1", 0.001)

    assert told.scrape("pod_scheduled_after_flush_total") == 1


def test_everything_else_the_loop_tells_is_counted(told: Told) -> None:
    told.metrics.permit_waited("Success", 0.5)
    told.metrics.preempted(3)
    told.metrics.plugin_failed("Mine", "filter", ValueError())
    told.metrics.event_handled("NodeAdd", 0.0002)
    told.metrics.hint_asked("NodeResourcesFit", "NodeAdd", "Queue", 0.00002)
    told.metrics.extension_point_ran("Filter", "Success", "default-scheduler", 0.0002)
    told.metrics.plugin_ran("NodeResourcesFit", "Filter", "Success", 0.00002)
    scrape = told.scrape

    assert scrape("permit_wait_duration_seconds_count", result="Success") == 1
    assert scrape("preemption_victims_sum") == 3
    assert scrape.other("bayplan_plugin_failures_total", plugin="Mine", extension_point="filter") == 1
    assert scrape("event_handling_duration_seconds_count", event="NodeAdd") == 1
    hint = {"plugin": "NodeResourcesFit", "event": "NodeAdd", "hint": "Queue"}
    assert scrape("queueing_hint_execution_duration_seconds_count", **hint) == 1
    point = {"extension_point": "Filter", "status": "Success"}
    assert scrape("framework_extension_point_duration_seconds_count", profile="default-scheduler", **point) == 1
    assert scrape("plugin_execution_duration_seconds_count", plugin="NodeResourcesFit", **point) == 1


def test_plugins_are_timed_in_measured_cycles_up_to_their_binding(told: Told) -> None:
    decision = Decision(told.queued.info, CycleState())
    decision.state.times = times = PluginTimes(told.clock.monotonic)
    times.add("NodeResourcesFit", "Filter", "Success", 0.00002)
    told.metrics.decided(told.queued, decision, 0.001)
    times.add("DefaultBinder", "Bind", "Success", 0.01)
    scrape = told.scrape

    filtering = {"plugin": "NodeResourcesFit", "extension_point": "Filter", "status": "Success"}
    binding = {"plugin": "DefaultBinder", "extension_point": "Bind", "status": "Success"}
    assert scrape("plugin_execution_duration_seconds_sum", **filtering) == pytest.approx(0.00002)
    assert scrape("plugin_execution_duration_seconds_sum", **binding) == pytest.approx(0.01)


def test_a_replica_that_stands_by_says_so_and_has_no_sizes() -> None:
    registry = MetricsRegistry()
    register_live(registry, lambda: None)
    register_client(registry, lambda: None)
    register_leadership(registry, name="kube-scheduler", is_leader=lambda: False)
    register_self(registry, features={"SchedulerAsyncAPICalls": False})
    scrape = Scrape(registry)

    assert scrape("pending_pods", queue="active") is None
    assert scrape.other("leader_election_master_status", name="kube-scheduler") == 0
    assert scrape.other("kubernetes_feature_enabled", name="SchedulerAsyncAPICalls", stage="") == 0
    assert scrape.other("disabled_metrics_total") == 0


@contextlib.asynccontextmanager
async def scheduling(registry: MetricsRegistry) -> AsyncIterator[tuple[LiveScheduler, EmbeddedCluster]]:
    """A scheduler with metrics on an embedded cluster with two nodes."""
    cluster = EmbeddedCluster(nodes=2, listen=False, simulate=False)
    await cluster.start()
    clock = SystemClock()
    plain = cluster.in_process_transport()
    transport = MeasuredTransport(plain, RequestMetrics(registry), host="embedded", clock=clock)
    metrics = SchedulerMetrics(registry, clock)
    plugins, config = default_registry(), default_config()
    live = LiveScheduler(
        transport,
        config,
        resolve_profiles(config, plugins),
        plugins,
        await served_kinds(transport),
        LiveOptions(observers=[metrics]),
    )
    register_live(registry, lambda: live)
    register_client(registry, lambda: live)
    running = asyncio.create_task(live.run())
    try:
        yield live, cluster
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await transport.close()
        await cluster.stop()


async def create_pod(cluster: EmbeddedCluster, name: str, cpu: str) -> None:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    answer = await cluster.in_process_transport().request("POST", PODS, body=msgspec.json.encode(body))
    assert answer.status == 201, answer.body


def is_settled(live: LiveScheduler) -> bool:
    return live.queue.sizes.unschedulable == 1 and len(live.cache) == 5 and live.cache.assumed_count == 0


async def test_a_scheduler_at_work_fills_the_metrics_of_kube_schedulers_dashboards() -> None:
    registry = MetricsRegistry()
    async with scheduling(registry) as (live, cluster):
        for number in range(5):
            await create_pod(cluster, f"small-{number}", "100m")
        await create_pod(cluster, "large", "1000")
        async with asyncio.timeout(90):
            while not is_settled(live):  # noqa: ASYNC110  # there is no event for "all quiet"
                await asyncio.sleep(0.01)
        scrape = Scrape(registry)
        resources = b"".join(pod_resource_lines(lambda: known_pods(live))).decode()

    profile = {"profile": "default-scheduler"}
    assert scrape("schedule_attempts_total", result="scheduled", **profile) == 5
    assert scrape("schedule_attempts_total", result="unschedulable", **profile) == 1
    assert scrape("scheduling_algorithm_duration_seconds_count") == 6
    assert scrape("preemption_attempts_total") == 1
    assert scrape("pending_pods", queue="unschedulable") == 1
    assert scrape("pending_pods", queue="active") == 0
    assert scrape("cache_size", type="pods") == 5
    assert scrape("cache_size", type="nodes") == 2
    assert scrape("unschedulable_pods", plugin="NodeResourcesFit", **profile) == 1
    assert scrape("queue_incoming_pods_total", queue="active", event=POD_ADD) == 6
    assert scrape("inflight_events", event="PodPopped") == 0
    fit = {"plugin": "NodeResourcesFit", **profile}
    assert scrape("plugin_evaluation_total", extension_point="Filter", **fit) == 6
    assert scrape("plugin_evaluation_total", extension_point="Score", **fit) == 5
    assert (scrape.other("rest_client_requests_total", code="201", method="POST", host="embedded") or 0) >= 5
    assert scrape.other("bayplan_reflector_lists_total", resource="pods") == 1
    assert scrape.other("bayplan_reflector_connected", resource="nodes") == 1
    assert resources.count("kube_pod_resource_request{") == 6
    assert 'pod="large",node="",' in resources
