"""Experiments: a case on an embedded cluster with the real scheduler, perhaps with a change made to it first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from unittest.mock import patch

import msgspec

from bayplan.api.devices import ResourceClaim
from bayplan.api.pod import Pod
from bayplan.api.workload import PodDisruptionBudget
from bayplan.apiserver.simulation.controllers.daemonsets import DaemonSets
from bayplan.apiserver.simulation.controllers.replicas import ReplicaSets
from bayplan.app.garbage_collection import GarbageCollection
from bayplan.app.settings import Settings
from bayplan.cluster.axes import Rows
from bayplan.explain.claims.base import Edit
from bayplan.explain.claims.pods import LOGGED
from bayplan.explain.schemas import schema
from bayplan.explain.service import ExplainService
from bayplan.explain.terminal.decision_printer import DecisionPrinter
from bayplan.explain.wiring import Explaining
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.queued import QueuedPod
from bayplan.loop.points import EXTENDER
from bayplan.loop.record import DecisionRecord
from bayplan.observe.clock import SystemClock
from bayplan.queue.places import Place
from bayplan.sim.local import LocalCluster, LocalOptions
from tests.truth.changes import Change, changed, key_of
from tests.truth.configurations import definitions_for, loaded, settings_with
from tests.truth.documents import SUBJECT, Case, JsonObject, budget_status
from tests.unit.explain.schema_check import problems
from tests.unit.loop.extender_server import ExtenderServer, serving

__all__ = ["Outcome", "Running", "observe", "running"]

_PATIENCE_SECONDS = 30.0
_HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@dataclass
class Outcome:
    """What became of the pods."""

    nodes: dict[str, str]
    """Node of every pod that is there; empty while it waits."""
    devices: dict[str, dict[str, list[str]]]
    """By resource claim and request, the devices that were allocated."""
    record: DecisionRecord | None
    """Of the subject's attempt that placed it, else of its last one."""
    first: DecisionRecord | None
    """Of the subject's first attempt."""
    messages: dict[str, str]
    """Why each pod waits, as its condition has it."""
    plugins: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    times: tuple[float, float] = (0.0, 0.0)
    """When the cluster started and when it was looked at."""
    attempts: tuple[DecisionRecord, ...] = ()
    """Of the subject, the newest first."""
    line: tuple[str, ...] = ()
    """The pods that wait, in the order of the queue among those of one priority."""
    nominations: tuple[tuple[str, str], ...] = ()
    """(pod, node) of those that have preempted, or been said to."""
    result: JsonObject | None = None
    """Every node as the subject finds it at the end, in the form of the reference cases."""


@dataclass
class Running:
    case: Case
    local: LocalCluster
    service: ExplainService
    pods: list[str] = field(default_factory=list)
    """Those that wait at first."""
    budgets: list[JsonObject] = field(default_factory=list)
    logged: list[LOGGED] = field(default_factory=list)
    """What the log of `bayplan up` says."""
    malformed: list[str] = field(default_factory=list)
    """What of the outputs is not as their schemas say."""
    began: float = field(default_factory=SystemClock().now)

    def check(self, output: str, answer: msgspec.Struct) -> None:
        """Whether an answer is as its published schema says."""
        document = json.loads(msgspec.json.encode(answer))
        self.malformed += [f"{output}: {each}" for each in problems(document, _schema(output), _schema(output))]

    @property
    def place(self) -> str:
        """Where in the queue the subject is."""
        place = self.local.live.queue.place_of(SUBJECT)
        return "in-flight" if place is None else place.value

    async def known(self) -> None:
        """Until the scheduler knows every pod."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not all(self.local.live.watching.pod(*key.split("/")) for key in self.pods):  # noqa: ASYNC110
                await asyncio.sleep(0.003)

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
        if live.cache.assumed_count - len(live.held_pods) > 0 or sizes.active or sizes.backoff > self._failed():
            return False
        if not self._are_budgets_settled():
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
                is_preempting = bool(last) and bool(last[0].nominated) and not self._are_held(last[0])
                if held is None and (queued is None or is_preempting or not _has_waited(known, queued)):
                    return False
        return True

    def _failed(self) -> int:
        """Pods whose last attempt ended with an error, and that back off from it for longer than anybody looks."""
        last = [(self.service.recorder.of_pod(key, most=1), self.local.live.queue.place_of(key)) for key in self.pods]
        return sum(place is Place.BACKOFF and bool(found) and found[0].outcome == "error" for found, place in last)

    def _are_held(self, record: DecisionRecord) -> bool:
        """Whether its victims end and never will have ended."""
        pods = [self.local.live.watching.pod(*victim.pod.split("/")) for victim in record.victims]
        return all(pod is not None and pod.is_terminating and pod.metadata.finalizers for pod in pods)

    def _are_budgets_settled(self) -> bool:
        """Whether the controller has counted the pods that are there."""
        live = self.local.live
        pods = [{"metadata": {"labels": pod.labels}} for pod in live.watching.pods() if pod.spec.node_name]
        known = {budget.key: budget.status for budget in live.cache.cluster.objects.list(PodDisruptionBudget)}
        return all(
            known[key_of(budget)].disruptions_allowed == budget_status(budget, pods)["disruptionsAllowed"]
            for budget in self.budgets
        )

    def _devices(self) -> dict[str, dict[str, list[str]]]:
        found: dict[str, dict[str, list[str]]] = {}
        for claim in self.local.live.cache.cluster.objects.list(ResourceClaim):
            allocation = claim.status.allocation
            for each in allocation.devices.results or () if allocation is not None else ():
                names = found.setdefault(claim.key, {}).setdefault(each.request, [])
                names.append(f"{each.driver}/{each.pool}/{each.device}")
        return found

    async def do(self, edit: Edit) -> None:
        """What a user does."""
        namespace, _, name = edit.name.rpartition("/")
        path = f"/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds=0"
        assert edit.kind == "deletePod", edit.kind
        response = await self.local.transport().request("DELETE", path)
        assert response.status < 300, response.body
        self.pods.remove(edit.name)
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while self.local.live.watching.pod(namespace, name) is not None:  # noqa: ASYNC110 - as in `settle`
                await asyncio.sleep(0.003)

    def _line(self) -> tuple[str, ...]:
        waiting = [queued for pods in self.local.live.queue.pending_pods().values() for queued in pods]
        return tuple(queued.key for queued in sorted(waiting, key=lambda queued: queued.timestamp))

    def _nominations(self) -> tuple[tuple[str, str], ...]:
        found = self.local.live.queue.nominations
        return tuple(sorted((pod.key, node) for node in found.nominated_nodes() for pod in found.nominated_pods(node)))

    def outcome(self) -> Outcome:
        known = list(self.local.live.watching.pods())
        pods = {pod.key: pod.spec.node_name for pod in known}
        records = self.service.recorder.of_pod(SUBJECT)
        placed = next((each for each in records if each.node and each.node == pods.get(SUBJECT)), None)
        messages = {
            pod.key: condition.message or ""
            for pod in known
            for condition in pod.status.conditions or ()
            if condition.type == "PodScheduled"
        }
        last, first = (records[0], records[-1]) if records else (None, None)
        profiles = self.local.live.profiles
        return Outcome(
            nodes=pods,
            devices=self._devices(),
            record=placed or last,
            first=first,
            messages=messages,
            plugins=tuple({name for profile in profiles.values() for name in profile.framework.plugins}),
            profiles=tuple(sorted(profiles)),
            times=(self.began, SystemClock().now()),
            attempts=tuple(records),
            line=self._line(),
            nominations=self._nominations(),
            result=self.service.explain_pod(SUBJECT, in_full=True).result if records else None,
        )


def _has_waited(known: Pod, queued: QueuedPod) -> bool:
    """A pod that preempts is held back until its victims are gone; that is not the end of it."""
    if queued.gating_plugin:
        return bool(known.spec.scheduling_gates)
    return bool(queued.attempts) and any(each.type == "PodScheduled" for each in known.status.conditions or ())


_schema = lru_cache(schema)


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


def _first(ties: Rows) -> int:
    """Which of several best nodes is drawn is no claim: the first of them is taken here, as on a copy."""
    return int(ties.min())


@asynccontextmanager
async def _uncollected() -> AsyncIterator[None]:
    """A scheduler collects the garbage of its process when it starts: here that would take longer than all the rest."""
    with patch.object(GarbageCollection, "start"), patch.object(GarbageCollection, "settle"):
        yield


@asynccontextmanager
async def _no_other_controllers() -> AsyncIterator[None]:
    """The experiments do the work of those that own pods: with pods of known names, created in a known order."""
    kinds = (ReplicaSets, DaemonSets)
    replicas, daemons = (patch.object(kind, "reconcile", return_value=None) for kind in kinds)
    with replicas, daemons:
        yield


@asynccontextmanager
async def running(
    case: Case, change: Change | None = None, ask_early: Callable[[Running], None] | None = None
) -> AsyncIterator[Running]:
    """The case at work, settled. `ask_early` is called when all pods wait and none has been tried."""
    change = change or Change()
    case = changed(case, change)
    async with (
        _no_other_controllers(),
        _extended(case, change) as settings,
        _running(case, _changed_settings(settings, change), ask_early) as found,
    ):
        yield found


@asynccontextmanager
async def _extended(case: Case, change: Change) -> AsyncIterator[Settings]:
    """The settings of the case, with its extender at work if it has one."""
    plugin, _, refused = case.plugin.partition(":")
    if plugin != EXTENDER or change.without_extenders:
        yield settings_with("" if plugin == EXTENDER else case.plugin)
        return
    async with serving(ExtenderServer(filter=partial(_extender_refuses, refused))) as server:
        entry = {"urlPrefix": server.url, "filterVerb": "filter", "nodeCacheCapable": True}
        yield loaded(f"{_HEAD}extenders: {json.dumps([entry])}\n")


def _extender_refuses(which: str, question: JsonObject) -> JsonObject:
    names = question["NodeNames"]
    refused = [name for name in names if which == "all" or int(name[-1]) % 2 == 0]
    return {"nodenames": [n for n in names if n not in refused], "failedNodes": dict.fromkeys(refused, "no licence")}


@asynccontextmanager
async def _running(
    case: Case, settings: Settings, ask_early: Callable[[Running], None] | None
) -> AsyncIterator[Running]:
    lead = asyncio.Event()
    explaining = Explaining(SystemClock(), settings=lambda: settings)
    logged: list[LOGGED] = []
    printer = DecisionPrinter(lambda _: None, note=logged.append)
    running_pods = [pod for pod in case.pods if pod["spec"].get("nodeName")]
    first = [*definitions_for(case), *case.objects, *running_pods]
    options = LocalOptions(
        nodes=case.nodes,
        objects=first,
        listen=False,
        observers=[*explaining.observers, printer],
        wait_to_lead=partial(_wait_for, lead),
    )
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
        budgets = [item for item in case.objects if item["kind"] == "PodDisruptionBudget"]
        found = Running(case, local, explaining.service, [key_of(pod) for pod in waiting], budgets, logged)
        await found.known()
        if ask_early is not None:
            ask_early(found)
        lead.set()
        await found.settle()
        if ask_early is not None:
            for edit in case.later:
                await found.do(edit)
        yield found


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()


async def _create(local: LocalCluster, pod: JsonObject) -> None:
    path = f"/api/v1/namespaces/{pod['metadata'].get('namespace', 'default')}/pods"
    response = await local.transport().request("POST", path, body=json.dumps(pod).encode())
    assert response.status < 300, response.body
    if "status" in pod:
        # What is created has no status.
        status, kind = json.dumps({"status": pod["status"]}).encode(), "application/merge-patch+json"
        path = f"{path}/{pod['metadata']['name']}/status"
        response = await local.transport().request("PATCH", path, body=status, content_type=kind)
        assert response.status < 300, response.body


async def observe(case: Case, change: Change) -> Outcome:
    async with running(case, change) as found:
        return found.outcome()
