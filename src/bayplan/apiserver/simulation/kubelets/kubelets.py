"""Simulated kubelets: nodes report, bound pods are admitted, start, run, restart, finish and stop.

One `Kubelets` stands for all nodes. A bound pod becomes Running after `start_seconds`, unless its node refuses it
(`admission`). Annotations of the pod decide what its containers do: they run for `bayplan.dev/run-seconds` and end with
`bayplan.dev/exit-code`, one code or one for each run (`1,1,0`), after which the restart policy holds; stopping takes
`bayplan.dev/stop-seconds`. A pod that is deleted is gone after that, its preStop sleep included, or after its grace
period, whichever is shorter. A pod past its `activeDeadlineSeconds` fails. A node that is stopped does none of this.

Nothing is run; no container, no network.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass

from bayplan.apiserver.objects.deletion import DeleteOptions, delete
from bayplan.apiserver.objects.writing import Caller
from bayplan.apiserver.protocol.encoding import Json, decode_object, microtimestamp, parse_timestamp, timestamp
from bayplan.apiserver.protocol.errors import RequestRefused
from bayplan.apiserver.protocol.exchange import WriteOptions
from bayplan.apiserver.protocol.identity import ApiUser
from bayplan.apiserver.server.api import Api
from bayplan.apiserver.server.own_objects import create_if_absent
from bayplan.apiserver.simulation.kubelets.admission import Admitted, NodeLoad, refusal
from bayplan.apiserver.simulation.kubelets.nodes import extended_capacity, follow_capacity, node_ip, ready_node
from bayplan.apiserver.simulation.kubelets.pod_status import (
    exit_code_of,
    lifetime_of,
    restart_delay,
    restarts,
    set_finished,
    set_rejected,
    set_restarted,
    set_running,
    set_synced,
    set_waiting,
    stop_seconds_of,
)
from bayplan.apiserver.simulation.timers import TimerQueue
from bayplan.apiserver.storage.store import ADDED, DELETED, Change, Entry, Key

_log = logging.getLogger("bayplan.apiserver.simulation.kubelets.kubelets")
UNSIMULATED = "bayplan.dev/kubelet"
"""A node with this annotation set to `none` has no simulated kubelet."""
LEASES, LEASE_NAMESPACE = "leases.coordination.k8s.io", "kube-node-lease"
_GENERATION = re.compile(rb'"generation":(\d+)')
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
        self._pods: dict[str, NodeLoad] = {}
        """What each node has admitted, by pod uid."""
        self._timers: TimerQueue[Callable[[], None]] = TimerQueue(api.clock)
        self._tasks: list[asyncio.Task[None]] = []
        self._unlisten: list[Callable[[], None]] = []
        self._next_ip = 1
        user = ApiUser("system:node", ("system:nodes", "system:masters", "system:authenticated"))
        self._caller = Caller(user, WriteOptions(field_manager="kubelet"), subresource="status", is_reviewed=False)

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
        elif self._nodes.get(name) and change.previous is not None:
            before, after = (extended_capacity(decode_object(entry.raw)) for entry in (change.previous, change.entry))
            if before != after:
                self._at(0.0, lambda: self._offer(name, before | after))

    def _offer(self, name: str, changed: Json) -> None:
        """Offer pods the changed capacity of extended resources, as a kubelet does at its next report."""
        if self._nodes.get(name):
            kind = self._api.kinds.resource("nodes")
            self._api.objects.update(kind, "", name, lambda node: follow_capacity(node, changed), self._caller)

    def _register(self, name: str) -> None:
        """Report the node ready, with everything a fresh kubelet reports."""
        if not self._nodes.get(name):
            return
        kind = self._api.kinds.resource("nodes")
        now = timestamp(self._api.clock.now())
        self._api.objects.update(kind, "", name, lambda node: ready_node(node, now), self._caller)
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

        caller = Caller(self._caller.user, self._caller.options, is_reviewed=False)
        self._api.objects.update(self._api.kinds.resource(LEASES), LEASE_NAMESPACE, name, renew, caller)

    # ---- pods

    def _on_pod(self, resource: str, change: Change) -> None:
        entry = change.entry
        node = entry.fields[0] if entry.fields else ""
        if not node or node not in self._nodes:
            return
        if change.type == DELETED:
            self._forget(node, entry.uid)
            return
        phase = entry.fields[4]
        load = self._pods.setdefault(node, NodeLoad())
        if b'"deletionTimestamp"' in entry.raw:
            self._stop_later(node, entry)
        elif phase == "Pending" and entry.uid not in load:
            load.put(entry.uid, Admitted())
            self._at(self._settings.start_seconds, lambda: self._start_pod(node, entry.key, entry.uid))
        elif phase == "Running" and entry.uid not in load:
            # Found running, after a restart of this process.
            pod = decode_object(entry.raw)
            load.put(entry.uid, Admitted.of(pod))
            self._watch_over(node, pod)
        elif phase in ("Succeeded", "Failed"):
            load.put(entry.uid, Admitted())
        elif phase == "Running" and change.previous is not None and _generation(entry) != _generation(change.previous):
            self._at(self._settings.start_seconds, lambda: self._sync_pod(node, entry.key, entry.uid))

    def _forget(self, node: str, uid: str) -> None:
        if node in self._pods:
            self._pods[node].remove(uid)

    def _start_pod(self, node: str, key: Key, uid: str) -> None:
        pod = self._pod(node, key, uid)
        if pod is None or pod["status"].get("phase") != "Pending":
            self._forget(node, uid)
            return
        found = self._api.store.get("nodes", "", node)
        load, wanted = self._pods[node], Admitted.of(pod)
        refused = refusal(pod, wanted, decode_object(found.raw), load.beside(uid)) if found is not None else None
        load.put(uid, Admitted() if refused else wanted)
        now = timestamp(self._api.clock.now())
        if refused is not None:
            self._change(key, lambda document: set_rejected(document, now=now, reason=refused[0], message=refused[1]))
            return
        address = self._new_ip()
        self._change(key, lambda document: set_running(document, now=now, pod_ip=address, node_ip=node_ip(node)))
        self._watch_over(node, pod)

    def _watch_over(self, node: str, pod: Json) -> None:
        """Plan the end of a pod that runs: its deadline, and that of its containers."""
        self._finish_later(node, pod)
        self._watch_deadline(node, pod)

    def _watch_deadline(self, node: str, pod: Json) -> None:
        deadline = pod["spec"].get("activeDeadlineSeconds")
        if deadline is not None:
            started = parse_timestamp(pod["status"].get("startTime") or timestamp(self._api.clock.now()))
            key, uid = (pod["metadata"]["namespace"], pod["metadata"]["name"]), pod["metadata"]["uid"]
            left = max(0.0, started + deadline - self._api.clock.now())
            self._at(left, lambda: self._exceed_deadline(node, key, uid))

    def _exceed_deadline(self, node: str, key: Key, uid: str) -> None:
        pod = self._pod(node, key, uid)
        if pod is None or pod["status"].get("phase") not in ("Running", "Pending"):
            return
        now = timestamp(self._api.clock.now())

        def fail(document: Json) -> None:
            set_finished(document, now=now, exit_code=137)
            message = "Pod was active on the node longer than the specified deadline"
            document["status"] |= {"reason": "DeadlineExceeded", "message": message}

        self._change(key, fail)

    def _finish_later(self, node: str, pod: Json) -> None:
        seconds = lifetime_of(pod, self._settings.run_seconds)
        if seconds is not None:
            key, uid = (pod["metadata"]["namespace"], pod["metadata"]["name"]), pod["metadata"]["uid"]
            self._at(seconds, lambda: self._finish_pod(node, key, uid))

    def _finish_pod(self, node: str, key: Key, uid: str) -> None:
        pod = self._pod(node, key, uid)
        if pod is None or pod["status"].get("phase") != "Running":
            return
        now, exit_code = timestamp(self._api.clock.now()), exit_code_of(pod)
        if not restarts(pod, exit_code):
            self._change(key, lambda document: set_finished(document, now=now, exit_code=exit_code))
            return
        delay = restart_delay(pod)
        self._change(key, lambda document: set_waiting(document, now=now, exit_code=exit_code, delay=delay))
        self._at(max(delay, self._settings.start_seconds), lambda: self._restart_pod(node, key, uid))

    def _restart_pod(self, node: str, key: Key, uid: str) -> None:
        pod = self._pod(node, key, uid)
        if pod is None or pod["status"].get("phase") != "Running":
            return
        now = timestamp(self._api.clock.now())
        self._change(key, lambda document: set_restarted(document, now=now))
        self._finish_later(node, pod)

    def _sync_pod(self, node: str, key: Key, uid: str) -> None:
        """Carry out a change of the spec: resources that were resized, containers that were added, a new deadline."""
        pod = self._pod(node, key, uid)
        found = self._api.store.get("nodes", "", node)
        if pod is None or found is None:
            return
        self._watch_deadline(node, pod)
        load, wanted, its_node = self._pods[node], Admitted.of(pod), decode_object(found.raw)
        refused = refusal(pod, wanted, its_node, load.beside(uid))
        alone = refusal(pod, wanted, its_node, Admitted())
        now = timestamp(self._api.clock.now())
        if refused is None:
            load.put(uid, wanted)
        pending = "" if refused is None else "Infeasible" if alone is not None else "Deferred"
        self._change(
            key, lambda document: set_synced(document, now=now, pending=pending, message=(refused or ("", ""))[1])
        )

    def _stop_later(self, node: str, entry: Entry) -> None:
        pod = decode_object(entry.raw)
        grace = float(pod["metadata"].get("deletionGracePeriodSeconds", 0))
        wait = min(grace, stop_seconds_of(pod, self._settings.stop_seconds))
        self._at(wait, lambda: self._stop_pod(node, entry.key, entry.uid))

    def _stop_pod(self, node: str, key: Key, uid: str) -> None:
        entry = self._api.store.get("pods", *key)
        if entry is None or entry.uid != uid or not self._nodes.get(node):
            return
        kind = self._api.kinds.resource("pods")
        delete(self._api.objects, kind, entry, DeleteOptions(grace_seconds=0))

    def _pod(self, node: str, key: Key, uid: str) -> Json | None:
        """The pod as it is now, if it is still the same and its node runs."""
        entry = self._api.store.get("pods", *key)
        if entry is None or entry.uid != uid or not self._nodes.get(node):
            return None
        return decode_object(entry.raw)

    def _change(self, key: Key, write: Callable[[Json], None]) -> None:
        def change(document: Json) -> Json:
            write(document)
            return document

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
        except RequestRefused as problem:
            _log.debug("a kubelet's write was refused: %s", problem)
        except Exception:
            _log.exception("a simulated kubelet failed")


def _is_unsimulated(entry: Entry) -> bool:
    if UNSIMULATED.encode() not in entry.raw:
        return False
    annotations = decode_object(entry.raw)["metadata"].get("annotations") or {}
    return bool(annotations.get(UNSIMULATED) == "none")


def _generation(entry: Entry) -> bytes:
    """The generation of a stored pod, which counts the changes of its spec."""
    match = _GENERATION.search(entry.raw)
    return match[1] if match is not None else b""
