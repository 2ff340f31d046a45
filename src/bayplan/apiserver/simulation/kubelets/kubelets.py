"""Simulated kubelets: nodes report, bound pods start, run, finish and stop.

One `Kubelets` stands for all nodes. A bound pod becomes Running after `start_seconds`, unless its node lacks
resources, in which case it is rejected as a real kubelet would. It finishes after the seconds in its annotation
`bayplan.dev/run-seconds`, with the code in `bayplan.dev/exit-code`. A pod that is deleted is gone after
`stop_seconds` or its grace period, whichever is shorter. A node that is stopped does none of this.

Nothing is run; no container, no network.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from bayplan.apiserver.kinds.pod_resources import Amounts, allocatable, lacking, pod_requests
from bayplan.apiserver.objects.deletion import DeleteOptions, delete
from bayplan.apiserver.objects.subresources import set_condition
from bayplan.apiserver.objects.writing import Caller
from bayplan.apiserver.protocol.encoding import Json, decode_object, microtimestamp, timestamp
from bayplan.apiserver.protocol.errors import ApiError
from bayplan.apiserver.protocol.exchange import WriteOptions
from bayplan.apiserver.protocol.identity import User
from bayplan.apiserver.server.api import Api
from bayplan.apiserver.server.own_objects import create_if_absent
from bayplan.apiserver.simulation.kubelets.node_objects import DEFAULT_CAPACITY, KUBELET_VERSION
from bayplan.apiserver.simulation.kubelets.pod_status import set_finished, set_rejected, set_running
from bayplan.apiserver.simulation.timers import TimerQueue
from bayplan.apiserver.storage.store import ADDED, DELETED, Change, Entry, Key

_log = logging.getLogger("bayplan.apiserver.simulation.kubelets.kubelets")
RUN_SECONDS = "bayplan.dev/run-seconds"
EXIT_CODE = "bayplan.dev/exit-code"
UNSIMULATED = "bayplan.dev/kubelet"
"""A node with this annotation set to `none` has no simulated kubelet."""
LEASES, LEASE_NAMESPACE = "leases.coordination.k8s.io", "kube-node-lease"
_SLICE = 100


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """How fast the simulated nodes are."""

    start_seconds: float = 0.2
    stop_seconds: float = 0.2
    lease_seconds: float = 10.0
    """How often a node renews its lease; stretched when there are very many nodes."""
    run_seconds: float | None = None
    """How long pods that may end (restart policy Never or OnFailure) run when no annotation says; None for ever."""


class Kubelets:
    """The kubelets of all nodes."""

    def __init__(self, api: Api, settings: KubeletSettings | None = None) -> None:
        self._api = api
        self._settings = settings or KubeletSettings()
        self._nodes: dict[str, bool] = {}
        """Simulated nodes, and whether each is running."""
        self._pods: dict[str, dict[str, Amounts]] = {}
        """What each node has admitted, by pod uid."""
        self._timers: TimerQueue[Callable[[], None]] = TimerQueue(api.clock)
        self._tasks: list[asyncio.Task[None]] = []
        self._unlisten: list[Callable[[], None]] = []
        self._next_ip = 1
        user = User("system:node", ("system:nodes", "system:masters", "system:authenticated"))
        self._caller = Caller(user, WriteOptions(field_manager="kubelet"), subresource="status")

    # ---- starting and stopping

    @property
    def nodes(self) -> dict[str, bool]:
        """Each simulated node and whether its kubelet runs."""
        return dict(self._nodes)

    def start(self) -> None:
        if self._tasks:
            return
        store = self._api.store
        for resource, listener in (("nodes", self._on_node), ("pods", self._on_pod)):
            self._unlisten.append(store.listen(resource, listener))
            for entry in store.listing(resource).entries:
                listener(resource, Change(ADDED, entry, None))
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._run(), name="kubelets"),
            loop.create_task(self._heartbeat(), name="kubelets heartbeat"),
        ]

    async def stop(self) -> None:
        for unlisten in self._unlisten:
            unlisten()
        tasks, self._tasks, self._unlisten = self._tasks, [], []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._timers.clear()
        self._nodes.clear()
        self._pods.clear()

    def stop_node(self, name: str) -> None:
        """Switch a node off: its heartbeat ends, nothing on it starts or stops any more."""
        self._check_known(name)
        self._nodes[name] = False

    def start_node(self, name: str) -> None:
        """Switch a node on again, and process the changes it missed."""
        self._check_known(name)
        self._nodes[name] = True
        self._register(name)
        for entry in self._api.store.listing("pods").entries:
            if entry.fields and entry.fields[0] == name:
                self._on_pod("pods", Change(ADDED, entry, None))

    def _check_known(self, name: str) -> None:
        if name not in self._nodes:
            raise KeyError(f"no simulated node is called {name!r}; there are {len(self._nodes)}")

    # ---- nodes

    def _on_node(self, resource: str, change: Change) -> None:
        name = change.entry.name
        if change.type == DELETED:
            self._nodes.pop(name, None)
            self._pods.pop(name, None)
        elif name not in self._nodes and not _is_unsimulated(change.entry):
            self._nodes[name] = True
            self._at(0.0, lambda: self._register(name))

    def _register(self, name: str) -> None:
        """Report the node ready, with everything a fresh kubelet reports."""
        if not self._nodes.get(name):
            return
        kind = self._api.kinds.resource("nodes")
        now = timestamp(self._api.clock.now())
        self._api.objects.update(kind, "", name, lambda node: _ready_node(node, now), self._caller)
        self._renew(name)

    async def _heartbeat(self) -> None:
        while True:
            # Heartbeats cost little up to some hundred nodes; with more, the interval grows.
            interval = max(self._settings.lease_seconds, len(self._nodes) / 50)
            await self._api.clock.sleep(interval)
            for index, name in enumerate(list(self._nodes)):
                if self._nodes.get(name):
                    self._guarded(lambda name=name: self._renew(name))  # type: ignore[misc]
                if index % _SLICE == _SLICE - 1:
                    await asyncio.sleep(0)

    def _renew(self, name: str) -> None:
        duration = 4 * max(self._settings.lease_seconds, len(self._nodes) / 50)
        renewed = microtimestamp(self._api.clock.now())
        spec: Json = {"holderIdentity": name, "leaseDurationSeconds": int(duration), "renewTime": renewed}
        metadata = {"name": name, "namespace": LEASE_NAMESPACE}
        if self._api.store.get(LEASES, LEASE_NAMESPACE, name) is None:
            document = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
            create_if_absent(self._api, document)
            return

        def renew(lease: Json) -> Json:
            lease["spec"] = spec
            return lease

        caller = Caller(self._caller.user, self._caller.options)
        self._api.objects.update(self._api.kinds.resource(LEASES), LEASE_NAMESPACE, name, renew, caller)

    # ---- pods

    def _on_pod(self, resource: str, change: Change) -> None:
        entry = change.entry
        node = entry.fields[0] if entry.fields else ""
        if not node or node not in self._nodes:
            return
        if change.type == DELETED:
            self._pods.get(node, {}).pop(entry.uid, None)
            return
        phase = entry.fields[4]
        if b'"deletionTimestamp"' in entry.raw:
            self._stop_later(node, entry)
        elif phase == "Pending" and entry.uid not in self._pods.get(node, {}):
            self._pods.setdefault(node, {})[entry.uid] = {}
            self._at(self._settings.start_seconds, lambda: self._start_pod(node, entry.key, entry.uid))
        elif phase == "Running" and entry.uid not in self._pods.get(node, {}):
            # Found running, after a restart of this process.
            pod = decode_object(entry.raw)
            self._pods.setdefault(node, {})[entry.uid] = pod_requests(pod["spec"])
            self._finish_later(pod)
        elif phase in ("Succeeded", "Failed"):
            self._pods.get(node, {})[entry.uid] = {}

    def _start_pod(self, node: str, key: Key, uid: str) -> None:
        entry = self._api.store.get("pods", *key)
        if entry is None or entry.uid != uid or not self._nodes.get(node) or entry.fields[4] != "Pending":
            self._pods.get(node, {}).pop(uid, None)
            return
        pod = decode_object(entry.raw)
        requests = pod_requests(pod["spec"])
        short = self._short_of(node, requests, uid)
        self._pods[node][uid] = {} if short else requests
        now = timestamp(self._api.clock.now())

        def change(document: Json) -> Json:
            if short:
                message = f"Pod was rejected: Node didn't have enough resource: {short}"
                set_rejected(document, now=now, reason=f"OutOf{short}", message=message)
            else:
                set_running(document, now=now, pod_ip=self._new_ip(), node_ip=_node_ip(node))
            return document

        self._update(key, change)
        if not short:
            self._finish_later(pod)

    def _short_of(self, node: str, requests: Amounts, uid: str) -> str:
        found = self._api.store.get("nodes", "", node)
        if found is None:
            return ""
        used: Amounts = {}
        for other, amounts in self._pods[node].items():
            if other != uid:
                for name, amount in amounts.items():
                    used[name] = used.get(name, amount * 0) + amount
        return lacking(requests, used, allocatable(decode_object(found.raw)))

    def _finish_later(self, pod: Json) -> None:
        annotations = pod["metadata"].get("annotations") or {}
        seconds = _number(annotations.get(RUN_SECONDS))
        if seconds is None and pod["spec"].get("restartPolicy") != "Always":
            seconds = self._settings.run_seconds
        if seconds is None:
            return
        exit_code = int(_number(annotations.get(EXIT_CODE)) or 0)
        key, uid = (pod["metadata"]["namespace"], pod["metadata"]["name"]), pod["metadata"]["uid"]
        self._at(seconds, lambda: self._finish_pod(pod["spec"]["nodeName"], key, uid, exit_code))

    def _finish_pod(self, node: str, key: Key, uid: str, exit_code: int) -> None:
        entry = self._api.store.get("pods", *key)
        if entry is None or entry.uid != uid or not self._nodes.get(node):
            return
        now = timestamp(self._api.clock.now())

        def finish(document: Json) -> Json:
            set_finished(document, now=now, exit_code=exit_code)
            return document

        self._update(key, finish)

    def _stop_later(self, node: str, entry: Entry) -> None:
        grace = decode_object(entry.raw)["metadata"].get("deletionGracePeriodSeconds", 0)
        wait = min(float(grace), self._settings.stop_seconds)
        self._at(wait, lambda: self._stop_pod(node, entry.key, entry.uid))

    def _stop_pod(self, node: str, key: Key, uid: str) -> None:
        entry = self._api.store.get("pods", *key)
        if entry is None or entry.uid != uid or not self._nodes.get(node):
            return
        kind = self._api.kinds.resource("pods")
        delete(self._api.objects, kind, entry, DeleteOptions(grace_seconds=0))

    def _update(self, key: Key, change: Callable[[Json], Json]) -> None:
        self._api.objects.update(self._api.kinds.resource("pods"), *key, change, self._caller)

    def _new_ip(self) -> str:
        number = self._next_ip
        self._next_ip = number % 0x3FFFF + 1
        return f"10.{244 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"

    # ---- time

    def _at(self, seconds: float, action: Callable[[], None]) -> None:
        self._timers.add(seconds, action)

    async def _run(self) -> None:
        done = 0
        while True:
            self._guarded(await self._timers.due())
            done += 1
            if done % _SLICE == 0:
                await asyncio.sleep(0)

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except ApiError as problem:
            _log.debug("a kubelet's write was refused: %s", problem)
        except Exception:
            _log.exception("a simulated kubelet failed")


def _is_unsimulated(entry: Entry) -> bool:
    if UNSIMULATED.encode() not in entry.raw:
        return False
    annotations = decode_object(entry.raw)["metadata"].get("annotations") or {}
    return bool(annotations.get(UNSIMULATED) == "none")


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _node_ip(name: str) -> str:
    number = sum(byte * 131**index for index, byte in enumerate(name.encode())) % 65024
    return f"172.18.{number >> 8}.{number % 254 + 1}"


def _ready_node(node: Json, now: str) -> Json:
    name = node["metadata"]["name"]
    status = node.setdefault("status", {})
    if not status.get("capacity"):
        status["capacity"] = dict(DEFAULT_CAPACITY)
    status.setdefault("allocatable", dict(status["capacity"]))
    for kind in ("MemoryPressure", "DiskPressure", "PIDPressure"):
        reason = f"KubeletHasSufficient{kind.removesuffix('Pressure')}"
        message = f"kubelet has no {kind.removesuffix('Pressure').lower()} pressure"
        set_condition(status, kind, "False", now=now, reason=reason, message=message)
    set_condition(status, "Ready", "True", now=now, reason="KubeletReady", message="kubelet is posting ready status")
    for condition in status["conditions"]:
        condition.pop("lastProbeTime", None)
        condition["lastHeartbeatTime"] = now
    addresses = [{"type": "InternalIP", "address": _node_ip(name)}, {"type": "Hostname", "address": name}]
    status.setdefault("addresses", addresses)
    status.setdefault("nodeInfo", _node_info(name))
    return node


def _node_info(name: str) -> Json:
    return {
        "architecture": "amd64",
        "bootID": name,
        "containerRuntimeVersion": "simulated://1.0",
        "kernelVersion": "simulated",
        "kubeProxyVersion": "",
        "kubeletVersion": KUBELET_VERSION,
        "machineID": name,
        "operatingSystem": "linux",
        "osImage": "Bayplan simulated node",
        "systemUUID": name,
    }
