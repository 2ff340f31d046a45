"""Experiments: a case on an embedded cluster with the real scheduler, perhaps with a change made to it first."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import msgspec

from bayplan.api.devices import ResourceClaim
from bayplan.api.pod import Pod
from bayplan.app.garbage_collection import GarbageCollection
from bayplan.app.settings import Settings, load_settings
from bayplan.cluster.axes import Rows
from bayplan.deploy.crds import crd_documents
from bayplan.explain.edits import Edit
from bayplan.explain.service import ExplainService
from bayplan.explain.wiring import Explaining
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.queued import QueuedPod
from bayplan.loop.record import DecisionRecord
from bayplan.observe.clock import SystemClock
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from bayplan.plugins.community.coscheduling.pod_group import PodGroup
from bayplan.plugins.community.node_resource_topology_match.node_resource_topology import NodeResourceTopology
from bayplan.sim.local import LocalCluster, LocalOptions
from tests.companions.quotas import CAPACITY
from tests.companions.world import configuration
from tests.patching import merged
from tests.truth.documents import SUBJECT, Case, JsonObject

__all__ = ["Change", "Outcome", "Running", "observe", "running"]

_PATIENCE_SECONDS = 30.0


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is done to a case before it is started."""

    edits: tuple[Edit, ...] = ()
    drain: str = ""
    without_plugin: str = ""
    weights: tuple[tuple[str, int], ...] = ()
    placed: tuple[tuple[str, str], ...] = ()
    """Pods that stay on a node, where only the subject is scheduled again."""
    only_devices: tuple[str, ...] = ()
    """The devices that are left, if not all are."""


@dataclass
class Outcome:
    """What became of the pods."""

    nodes: dict[str, str]
    """Node of every pod that is there; empty while it waits."""
    devices: dict[str, dict[str, list[str]]]
    """By resource claim and request, the devices that were allocated."""
    record: DecisionRecord | None
    """Of the subject's attempt that placed it, else of its last one."""


@dataclass
class Running:
    local: LocalCluster
    service: ExplainService
    pods: list[str] = field(default_factory=list)

    async def settle(self) -> None:
        """Until every pod has a node, or has failed and waits for an event."""
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while not self._is_settled():  # noqa: ASYNC110 - the scheduler's state has no event for every question
                    await asyncio.sleep(0.003)
        except TimeoutError:
            raise TimeoutError(f"the cluster did not settle: {self._under_way()}") from None

    def _under_way(self) -> str:
        """What the cluster waits for."""
        live = self.local.live
        places = {place.value: [pod.key for pod in pods] for place, pods in live.queue.pending_pods().items() if pods}
        last = {key: [record.outcome for record in self.service.recorder.of_pod(key, most=2)] for key in self.pods}
        return f"{live.queue.sizes}, {live.cache.assumed_count} assumed, {places}, attempts {last}"

    def _is_settled(self) -> bool:
        live = self.local.live
        sizes = live.queue.sizes
        if live.cache.assumed_count - len(live.held_pods) > 0 or sizes.active or sizes.backoff or sizes.in_flight:
            return False
        for key in self.pods:
            namespace, _, name = key.partition("/")
            known = live.watching.pod(namespace, name)
            if known is None:
                if not self.service.recorder.of_pod(key, most=1) and key == SUBJECT:
                    return False
            elif not known.spec.node_name and known.spec.scheduler_name in live.profiles:
                queued = live.queue.get(key)
                held = live.held_pods.get(known.uid)
                last = self.service.recorder.of_pod(key, most=1)
                is_preempting = bool(last) and bool(last[0].nominated)
                if held is None and (queued is None or is_preempting or not _has_waited(known, queued)):
                    return False
        return True

    def _devices(self) -> dict[str, dict[str, list[str]]]:
        found: dict[str, dict[str, list[str]]] = {}
        for claim in self.local.live.cache.cluster.objects.list(ResourceClaim):
            allocation = claim.status.allocation
            for each in allocation.devices.results or () if allocation is not None else ():
                names = found.setdefault(claim.key, {}).setdefault(each.request, [])
                names.append(f"{each.driver}/{each.pool}/{each.device}")
        return found

    def outcome(self) -> Outcome:
        pods = {f"{pod.namespace}/{pod.name}": pod.spec.node_name for pod in self.local.live.watching.pods()}
        records = self.service.recorder.of_pod(SUBJECT)
        placed = next((each for each in records if each.node and each.node == pods.get(SUBJECT)), None)
        return Outcome(pods, self._devices(), placed or (records[0] if records else None))


def _has_waited(known: Pod, queued: QueuedPod) -> bool:
    """A pod that preempts is held back until its victims are gone; that is not the end of it."""
    return bool(known.spec.scheduling_gates) if queued.gating_plugin else bool(queued.attempts)


@lru_cache
def _settings(plugin: str) -> Settings:
    configurations = {
        "Coscheduling": configuration("Coscheduling", disabled=["PrioritySort"]),
        "CapacityScheduling": CAPACITY,
        "NodeResourceTopologyMatch": configuration("NodeResourceTopologyMatch"),
    }
    if not plugin:
        return load_settings(None, [])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(configurations[plugin])
        return load_settings(str(path), [])


def _changed_settings(settings: Settings, change: Change) -> Settings:
    if not change.without_plugin and not change.weights:
        return settings
    profiles = []
    for profile in settings.profiles:
        points = {
            point: tuple(name for name in names if name != change.without_plugin or point is ExtensionPoint.QUEUE_SORT)
            for point, names in profile.points.items()
        }
        if change.without_plugin:
            points[ExtensionPoint.POST_FILTER] = ()
        profiles.append(replace(profile, points=points, weights={**profile.weights, **dict(change.weights)}))
    return replace(settings, profiles=tuple(profiles))


def changed(case: Case, change: Change) -> Case:
    """The case as its author would have written it after the change."""
    case = copy.deepcopy(case)
    for edit in change.edits:
        _EDITS[edit.kind](case, edit)
    if change.drain:
        for node in case.nodes:
            if node["metadata"]["name"] == change.drain:
                node["spec"]["unschedulable"] = True
        for pod in case.pods:
            if key_of(pod) == SUBJECT:
                pod["spec"].pop("nodeName", None)
                pod.pop("status", None)
    if change.only_devices:
        _keep_devices(case, frozenset(change.only_devices))
    nodes = dict(change.placed)
    for pod in case.pods:
        if key_of(pod) in nodes:
            pod["spec"]["nodeName"] = nodes[key_of(pod)]
            pod["status"] = {"phase": "Running"}
    return case


def _keep_devices(case: Case, names: frozenset[str]) -> None:
    for item in case.objects:
        spec = item.get("spec", {})
        if item["kind"] == "ResourceSlice" and "devices" in spec:
            prefix = f"{spec['driver']}/{spec['pool']['name']}"
            spec["devices"] = [device for device in spec["devices"] if f"{prefix}/{device['name']}" in names]


def key_of(item: JsonObject) -> str:
    return f"{item['metadata'].get('namespace', 'default')}/{item['metadata']['name']}"


def _patch_pod(case: Case, edit: Edit) -> None:
    case.pods[:] = [merged(pod, edit.patch) if key_of(pod) == edit.name else pod for pod in case.pods]


def _patch_node(case: Case, edit: Edit) -> None:
    case.nodes[:] = [merged(n, edit.patch) if n["metadata"]["name"] == edit.name else n for n in case.nodes]


def _delete_pod(case: Case, edit: Edit) -> None:
    case.pods[:] = [pod for pod in case.pods if key_of(pod) != edit.name]


def _patch_claim(case: Case, edit: Edit) -> None:
    case.objects[:] = [merged(item, edit.patch) if _is_claim(item, edit.name) else item for item in case.objects]


def _release_claim(case: Case, edit: Edit) -> None:
    for item in case.objects:
        if _is_claim(item, edit.name):
            item.pop("status", None)


def _is_claim(item: JsonObject, name: str) -> bool:
    return item["kind"] == "ResourceClaim" and key_of(item) == name


_EDITS = {
    "patchClaim": _patch_claim,
    "releaseClaim": _release_claim,
    "patchPod": _patch_pod,
    "patchNode": _patch_node,
    "deletePod": _delete_pod,
    "addPod": lambda case, edit: case.pods.append(edit.object),
    "addNode": lambda case, edit: case.nodes.append(edit.object),
    "create": lambda case, edit: case.objects.append(edit.object),
}


def _first(ties: Rows) -> int:
    """Which of several best nodes is drawn is no claim: the first of them is taken here, as on a copy."""
    return int(ties.min())


@asynccontextmanager
async def _uncollected() -> AsyncIterator[None]:
    """A scheduler collects the garbage of its process when it starts: here that would take longer than all the rest."""
    with patch.object(GarbageCollection, "start"), patch.object(GarbageCollection, "settle"):
        yield


@asynccontextmanager
async def running(case: Case, change: Change | None = None) -> AsyncIterator[Running]:
    """The case at work, settled."""
    change = change or Change()
    case = changed(case, change)
    settings = _changed_settings(_settings(case.plugin), change)
    explaining = Explaining(SystemClock(), settings=lambda: settings)
    running_pods = [pod for pod in case.pods if pod["spec"].get("nodeName")]
    first = [*_definitions(case), *case.objects, *running_pods]
    options = LocalOptions(nodes=case.nodes, objects=first, listen=False, observers=explaining.observers)
    async with _uncollected(), LocalCluster(settings, options) as local:
        explaining.attach(local.live)
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await local.live.is_ready.wait()
        for profile in local.live.profiles.values():
            # Profiles are frozen; the tie-break is the one input of decisions that the wiring does not let in.
            object.__setattr__(profile, "decider", replace(profile.decider, tie_break=_first))
        waiting = [pod for pod in case.pods if not pod["spec"].get("nodeName")]
        for pod in waiting:
            await _create(local, pod)
        found = Running(local, explaining.service, [key_of(pod) for pod in waiting])
        await found.settle()
        yield found


def _definitions(case: Case) -> Sequence[JsonObject]:
    kinds = {item["kind"] for item in case.objects}
    return [crd for crd in _all_definitions() if crd["spec"]["names"]["kind"] in kinds]


@lru_cache
def _all_definitions() -> Sequence[JsonObject]:
    return crd_documents([PodGroup, ElasticQuota, NodeResourceTopology])


async def _create(local: LocalCluster, pod: JsonObject) -> None:
    path = f"/api/v1/namespaces/{pod['metadata'].get('namespace', 'default')}/pods"
    response = await local.transport().request("POST", path, body=json.dumps(pod).encode())
    assert response.status < 300, response.body


async def observe(case: Case, change: Change) -> Outcome:
    async with running(case, change) as found:
        return found.outcome()
